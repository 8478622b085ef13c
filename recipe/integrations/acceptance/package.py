"""Acceptance of a package that was handed over: on a machine that has the program, and perhaps the pools."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import yaml

from recipe.audit import audit_run
from recipe.audit.findings import compared, shown
from recipe.audit.verify import Acceptance, Check, claim, open_claim
from recipe.errors import RecipeError
from recipe.pools import Finding
from recipe.run.canonical import Plain
from recipe.run.handover.program import files_in_wheel, package_files, source_hash
from recipe.run.handover.receiving import Received, check_sums, is_package, read_yaml, receive, tokenizer_in
from recipe.run.handover.staging import SUMS_NAME, sha256_of
from recipe.run.handover.statements import (
    INDEX_NAME,
    POOLS,
    PROGRAM,
    RUN,
    STATE_NAME,
    TOKENIZER,
    VECTORS_NAME,
    front_pages,
    statements,
)
from recipe.run.handover.tokenizer import is_built_in
from recipe.run.handover.vectors import batch_digest, pieces_digest, synthetic_vectors
from recipe.run.manifest import yaml_value
from recipe.run.state import State
from recipe.text.tokenizers import load_tokenizer


def verify_package(path: str | Path, *, pools_root: str | Path | None = None) -> Acceptance:
    """Hold a package against its checksums, the program, the test vectors, and its own record.

    Args:
        path: the folder that was handed over.
        pools_root: the pools themselves, each in the folder that the package names; default: none, and
            what is served is computed from the lengths in the package.

    Raises:
        RecipeError: it is no package.
    """
    folder = Path(path)
    if not is_package(folder):
        fix = "give the folder that `recipe handover` wrote (unpack an archive first), or the path of a run"
        raise RecipeError.single(
            f"{folder}: no package", str(folder), given="a folder without handover.yaml and SHA256SUMS"
            if folder.is_dir() else "no such folder", expected="a package", fix=fix,
        )  # fmt: skip
    root = None if pools_root is None else Path(pools_root)
    checks = [
        _tried("checksums", lambda: _checksums(folder)),
        _tried("program", lambda: _program(folder)),
        _tried("wheel", lambda: _wheel(folder)),
        _tried("vectors", lambda: _synthetic(folder)),
        _tried("tokenizer", lambda: _tokenizer(folder)),
        _tried("audit", lambda: _audit(folder, root)),
    ]
    is_same = checks[1].ok is True
    if root is None and (lacking := _lacking(folder)):
        why = f"not in the package: {', '.join(lacking)}; name the folder of the pools with --pools-root"
        return Acceptance(str(folder), (*checks, open_claim("state, statements, stream", why)))
    try:
        received = receive(folder, root)
    except RecipeError as error:
        checks.append(Check("record", False, "the run in it", _of_error(error)))
        return Acceptance(str(folder), tuple(checks))
    with closing(received):
        checks += [
            _tried("state", lambda: _state(folder, received)),
            _tried("statements", lambda: _statements(folder, received, is_same=is_same)),
            _tried("stream", lambda: _served(folder, received, has_tokens=root is not None)),
        ]
    return Acceptance(str(folder), tuple(checks))


def _tried(name: str, check: Callable[[], Check]) -> Check:
    """A check; where a file of the package cannot be understood, the claim fails and says so."""
    try:
        return check()
    except RecipeError as error:
        return Check(name, False, "cannot be read", _of_error(error))
    except (LookupError, TypeError, ValueError, AttributeError, OSError, zipfile.BadZipFile) as error:
        said = f"{type(error).__name__}: {error}"
        found = Finding(name, "a file of the package", "what `recipe handover` writes", shown(said))
        return Check(name, False, "cannot be read", (found,))


def _checksums(folder: Path) -> Check:
    findings, count = check_sums(folder)
    mark = sha256_of(folder / SUMS_NAME) if (folder / SUMS_NAME).is_file() else "none"
    return claim("checksums", f"{count} files; the list itself has SHA-256 {mark}", findings)


def _program(folder: Path) -> Check:
    """The program here is the one that was handed over."""
    said = read_yaml(folder / PROGRAM / "program.yaml")
    here = source_hash(package_files())
    if here == said["source_hash"]:
        return claim("program", f"the one that is installed here, source hash {here}")
    why = f"another is installed here, source hash {here}; to compare all, install {PROGRAM}/{said['wheel']}"
    return open_claim("program", why)


def _wheel(folder: Path) -> Check:
    """The wheel holds the sources that it is said to."""
    said = read_yaml(folder / PROGRAM / "program.yaml")
    inside = {"source_hash": source_hash(files_in_wheel(folder / PROGRAM / Path(said["wheel"]).name))}
    expected = {"source_hash": said["source_hash"]}
    return claim("wheel", "holds the sources it says", compared("wheel", said["wheel"], expected, inside))


def _synthetic(folder: Path) -> Check:
    """The built-in recipe gives the same stream here."""
    said = read_yaml(folder / VECTORS_NAME)["synthetic"]
    here = yaml_value(folder / VECTORS_NAME, yaml.safe_dump(synthetic_vectors()).encode())
    steps = len(here["steps"])
    found = compared("vectors", "the built-in recipe", said, here)
    return claim(
        "vectors", f"the built-in recipe gives the same {steps} steps here, stream {here['stream']}", found
    )


def _tokenizer(folder: Path) -> Check:
    said = read_yaml(folder / TOKENIZER / "tokenizer.yaml")
    if said["kind"] == "bytes" or (said["kind"] is None and is_built_in(said["pools"].values())):
        return _built_in(said["pools"])
    if said["kind"] is None:
        return open_claim("tokenizer", f"{said['note']}; its fingerprint is {said['fingerprint']}")
    spec = str(tokenizer_in(folder))
    try:
        found = load_tokenizer(spec, eos=said["eos"]).fingerprint()
    except RecipeError as error:
        return Check("tokenizer", False, "its files", _of_error(error))
    return _of_pools(f"the one that made the pools, {found}", spec, found, said["pools"])


def _built_in(pools: Mapping[str, str | None]) -> Check:
    """The tokenizer that has no files: this program has it."""
    found = load_tokenizer("bytes").fingerprint()
    return _of_pools(f"built in, {found}", "bytes", found, pools)


def _of_pools(what: str, spec: str, found: str, pools: Mapping[str, str | None]) -> Check:
    expected = {name: mark for name, mark in pools.items() if mark is not None}
    observed = dict.fromkeys(expected, found)
    return claim("tokenizer", what, compared("tokenizer", spec, expected, observed))


def _audit(folder: Path, root: Path | None) -> Check:
    """The account computed again: from the lengths in the package, or from the pools where they are here."""
    bare = root is None and not read_yaml(folder / INDEX_NAME)["holds"]["tokens"]
    spec = tokenizer_in(folder)
    audit = audit_run(folder / RUN, metadata_only=bare, pools_root=root or folder / POOLS, tokenizer=spec)
    said = f"{audit.checked.rows} rows and {audit.checked.manifests} manifests; "
    said += f"{audit.checked.positions:,} positions computed again" + (" from lengths alone" if bare else "")
    if audit.checked.unavailable:
        said += f"; {audit.checked.unavailable} rows could not be: their pools are not here"
    absent = tuple(f"pools.{name.removeprefix('pool ')}:" for name in _lacking(folder) if bare)
    findings = [found for found in audit.findings if not (absent and found.where.startswith(absent))]
    return claim("audit", said, (replace(found, where=f"{RUN}/{found.where}") for found in findings))


def _lacking(folder: Path) -> list[str]:
    """Pools of which nothing is in the package: pairs whose marks only their tokens tell."""
    try:
        pools = read_yaml(folder / INDEX_NAME)["pools"]
        return [f"pool {name}" for name, said in pools.items() if said["inside"] == "nothing"]
    except (RecipeError, LookupError, TypeError, AttributeError):
        return []


def _state(folder: Path, received: Received) -> Check:
    """The saved state is the place that the last manifest states."""
    expected = received.subject.state.snapshot.to_plain()
    try:
        state = State.from_bytes((folder / STATE_NAME).read_bytes())
    except (OSError, RecipeError) as error:
        return Check("state", False, "the read state", (Finding("state", STATE_NAME, "a state", str(error)),))
    found = compared("state", STATE_NAME, expected, state.snapshot.to_plain())
    return claim("state", f"of step {state.snapshot.step}: what the last manifest states", found)


def _statements(folder: Path, received: Received, *, is_same: bool) -> Check:
    """Parts 2 to 5, made again from record and lengths, are the ones in the package."""
    made = {**statements(received.subject), **_front(folder, received)}
    differing = {name: data for name, data in made.items() if _bytes(folder / name) != data}
    if differing and not is_same:
        why = f"{', '.join(differing)} differ from what the program that is installed here writes"
        return open_claim("statements", why)
    findings = [
        fault for name, data in differing.items() for fault in _differences(folder / name, name, data)
    ]
    return claim("statements", f"{len(made)} files of parts 2 to 5 follow from the record", findings)


def _front(folder: Path, received: Received) -> Mapping[str, bytes]:
    tokenizer = read_yaml(folder / TOKENIZER / "tokenizer.yaml")
    program = read_yaml(folder / PROGRAM / "program.yaml")
    holds = read_yaml(folder / INDEX_NAME)["holds"]
    return front_pages(received.subject, tokenizer, program, holds)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _differences(path: Path, name: str, expected: bytes) -> list[Finding]:
    """Where a statement differs from what follows from the record, key by key where it is YAML."""
    data = _bytes(path)
    if data is not None and name.endswith(".yaml"):
        try:
            return compared("statements", name, yaml_value(path, expected), yaml_value(path, data))
        except RecipeError:
            pass
    return [Finding("statements", name, "what follows from the record", "other text" if data else "no file")]


def _served(folder: Path, received: Received, *, has_tokens: bool) -> Check:
    """The steps of the run that have test vectors, served here."""
    vectors = read_yaml(folder / VECTORS_NAME)["run"]
    has_tokens = has_tokens or read_yaml(folder / INDEX_NAME)["holds"]["tokens"]
    findings = list[Finding]()
    for text, expected in vectors.items():
        step = int(text)
        findings += _unequal(step, "pieces", expected, lambda at: pieces_digest(received.stream, at))
        if has_tokens:
            findings += _unequal(step, "arrays", expected, lambda at: batch_digest(received.stream.batch(at)))
    if not vectors:
        return open_claim("stream", "no step of the run has a test vector")
    what = "rows and tokens" if has_tokens else "which tokens of which documents; the tokens are not here"
    return claim("stream", f"{len(vectors)} steps of the run are the same here: {what}", findings)


def _unequal(step: int, key: str, expected: Plain, compute: Callable[[int], str]) -> list[Finding]:
    try:
        observed = compute(step)
    except (RecipeError, ValueError) as error:
        observed = shown(str(error))
    said = str(expected.get(key))
    return [] if said == observed else [Finding("stream", f"step {step}: {key}", said, observed)]


def _of_error(error: RecipeError) -> tuple[Finding, ...]:
    return tuple(
        Finding("record", problem.where, problem.expected, shown(str(problem.given)))
        for problem in error.problems
    )
