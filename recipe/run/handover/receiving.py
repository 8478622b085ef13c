"""A package on the other side: its checksums, and the run in it, opened with what it holds of the pools."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from recipe.errors import Problem, RecipeError
from recipe.mixing.aligning import give_edges, reads_text
from recipe.mixing.opening import close_pools
from recipe.pools import Finding, Pool, open_pool
from recipe.pools.card import CARD_NAME
from recipe.pools.foreign.sidecar import BESIDE
from recipe.pools.metadata import open_metadata
from recipe.pools.views import join_families, open_as
from recipe.run.canonical import Plain
from recipe.run.finding import find_place
from recipe.run.folder import RunFolder
from recipe.run.handover.data import pool_folders
from recipe.run.handover.record import record_of
from recipe.run.handover.staging import SUMS_NAME, is_inside, sha256_of
from recipe.run.handover.statements import INDEX_NAME, POOLS, RUN, TOKENIZER, Subject
from recipe.run.manifest import manifest_path, read_manifest, yaml_value
from recipe.run.place import stream_of
from recipe.run.place import subject_of as subject_at
from recipe.run.state import State
from recipe.run.stream import RunStream
from recipe.text.tokenizers import SPECIALS

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def is_package(path: Path) -> bool:
    """Whether a folder is one that was handed over."""
    return (path / INDEX_NAME).is_file() or (path / SUMS_NAME).is_file()


def check_sums(folder: Path) -> tuple[list[Finding], int]:
    """Every file against the list of checksums, in both directions; links are not followed.

    What was derived from token files when somebody opened the pools is left out: it is made anew where it is
    missing, and can be removed.

    Returns:
        what is wrong, and how many files the list has.
    """
    try:
        lines = (folder / SUMS_NAME).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        return [Finding("checksums", SUMS_NAME, "a list of checksums", str(error))], 0
    findings, listed = list[Finding](), dict[str, str]()
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None or not is_inside(match[2]) or match[2] in listed:
            where = f"{SUMS_NAME}, line {number}"
            findings.append(Finding("checksums", where, "a checksum and a name below the folder", line[:120]))
        else:
            listed[match[2]] = match[1]
    found = _files(folder)
    for name, expected in listed.items():
        observed = found.get(name, "no file")
        observed = sha256_of(folder / name) if observed == "" else observed
        if observed != expected:
            findings.append(Finding("checksums", name, expected, observed))
    strangers = sorted(name for name in set(found) - set(listed) - {SUMS_NAME} if not _is_derived(name))
    findings += [Finding("checksums", name, "nothing: it is not on the list", "a file") for name in strangers]
    return findings, len(listed)


def _is_derived(name: str) -> bool:
    return PurePosixPath(name).parent.name == BESIDE


def _files(folder: Path) -> dict[str, str]:
    """Names of all that is no folder; what is no plain file either says what it is."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = "a symbolic link"
        elif not path.is_dir():
            found[name] = "" if path.is_file() else "no regular file"
    return found


def read_yaml(path: Path) -> Plain:
    """A YAML file of a package.

    Raises:
        RecipeError: no such file, or no mapping.
    """
    try:
        return yaml_value(path, path.read_bytes())
    except OSError as error:
        raise RecipeError.single(
            f"{path.name}: not readable", str(path), given=error.strerror or error,
            expected="a file of the package", fix="take the package from where it is whole",
        ) from error  # fmt: skip


@dataclass(frozen=True, slots=True)
class Received:
    """The run of a package, with pools that may be metadata alone."""

    subject: Subject
    stream: RunStream

    def close(self) -> None:
        """Let go of the pools."""
        close_pools(self.subject.pools.values())


def receive(folder: Path, pools_root: Path | None = None) -> Received:
    """Open the run of a package, on its own metadata or on pools that are elsewhere.

    Raises:
        RecipeError: a damaged record, or a pool that is missing or another one.
    """
    run_folder = RunFolder(folder / RUN)
    tip = record_of(run_folder).manifest
    place = find_place(run_folder)
    pools = _pools(folder, place.state, pools_root)
    said = None if tip is None else read_manifest(manifest_path(run_folder.path, tip))
    subject = Subject(run_folder, place.state, said, pools)
    stream = stream_of(run_folder, subject_at(place, pools), pools, place.state.snapshot)
    return Received(subject, stream)


def tokenizer_in(folder: Path) -> str | None:
    """What loads the tokenizer of a package, if it has the files of one.

    Raises:
        RecipeError: it does not say.
    """
    said = read_yaml(folder / TOKENIZER / "tokenizer.yaml")
    asked = SPECIALS if said.get("special_tokens") == "ids" else ""
    return f"{folder / TOKENIZER / next(iter(said['files']))}{asked}" if said.get("files") else None


def _pools(folder: Path, state: State, pools_root: Path | None) -> dict[str, Pool]:
    folders, recipe = pool_folders(state.recipe), state.recipe
    root = folder / POOLS if pools_root is None else pools_root
    pools: dict[str, Pool] = {}
    problems, tokenizer = list[Problem](), tokenizer_in(folder)
    for name in recipe.pools:
        place = root / folders[name]
        bare = pools_root is None and (place / CARD_NAME).is_file()
        opened = open_metadata if bare else open_pool
        try:
            pools[name] = open_as(recipe, name, place, opened)
            pools[name].num_units  # noqa: B018 - what a view holds is looked up now
            give_edges(recipe, pools[name], tokenizer)
        except RecipeError as error:
            problems += error.problems
        if bare and reads_text(recipe, name):
            expected = "its tokens (--pools-root): cuts are aligned at what they spell"
            problems.append(Problem(f"pools.{name}", "metadata alone", expected, "say --pools-root DIR"))
    if problems:
        close_pools(pools.values())
        raise RecipeError(f"{folder}: pools", problems)
    join_families(recipe, pools)
    return pools
