"""The delivery of a run in five parts, with its record: a folder that proves itself on another machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.mixing.opening import close_pools, open_pools
from recipe.pools import Pool
from recipe.run.canonical import Plain
from recipe.run.finding import find_place
from recipe.run.folder import RunFolder
from recipe.run.handover.data import pool_folders
from recipe.run.handover.pool_files import pool_bytes, put_pool
from recipe.run.handover.program import package_files, program_plain, requirements, wheel, wheel_name
from recipe.run.handover.record import Record, record_of
from recipe.run.handover.staging import (
    SUMS_NAME,
    Archive,
    Staging,
    Watch,
    archive_path,
    check_free,
    check_space,
    sha256_of,
    staged,
    watch_nothing,
)
from recipe.run.handover.statements import (
    POOLS,
    PROGRAM,
    RUN,
    TOKENIZER,
    VECTORS_NAME,
    Subject,
    front_pages,
    statements,
)
from recipe.run.handover.tokenizer import put_tokenizer
from recipe.run.handover.vectors import chosen_steps, run_vectors, synthetic_vectors, vectors_plain
from recipe.run.holdings import changed, known_paths, refuse_changed
from recipe.run.manifest import latest_path, manifest_path, read_manifest, yaml_bytes
from recipe.run.opening import open_run
from recipe.run.run import Run
from recipe.run.state import State

PATHS_NOTE = "the run's record names folders of this machine, and its hashes cover them: it is left as it is"


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What goes into a package beside what always does, and how it is packed."""

    archive: Archive = "tar.zst"
    tokenizer: str | Path | None = None
    """A tokenizer whose files are added: ``bytes``, a ``tokenizer.json``, a folder; default: the recipe's."""
    tokens: bool = False
    """Copy the pools whole: their tokens may be licensed, and are large."""
    documents: bool = False
    """Copy the pools' document tables: ids, groups, tags, and places in the source."""
    pools_root: Path | None = None
    """Where the pools are on this machine; default: where the record says."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Handover:
    """What was handed over, and what the giver should know."""

    path: Path
    archive: Path | None
    archive_sha256: str | None
    sums_sha256: str
    """SHA-256 of the list of checksums: one line that answers for every byte of the folder."""
    files: int
    bytes: int
    step: int
    notes: tuple[str, ...]

    def to_plain(self) -> dict[str, Any]:
        """What ``recipe handover --json`` prints."""
        return {
            "path": str(self.path),
            "archive": None if self.archive is None else str(self.archive),
            "archive_sha256": self.archive_sha256,
            "sums_sha256": self.sums_sha256,
            "files": self.files,
            "bytes": self.bytes,
            "step": self.step,
            "notes": list(self.notes),
        }


def hand_over_run(
    path: str | Path, out: str | Path, wanted: Wanted | None = None, *, watch: Watch = watch_nothing
) -> Handover:
    """Write the five-part delivery of a run, as it stands at its last checkpoint, to a new folder.

    The run is only read, and may go on meanwhile. The same run gives the same bytes.

    Args:
        path: the run's folder.
        out: a folder that is not there yet, or is empty.
        wanted: what else goes in, and how it is packed.
        watch: called with bytes that were copied or packed, some at a time.

    Raises:
        RecipeError: no run, a damaged record, a pool that is missing or another one, a tokenizer that is not
            the pools', something at ``out``, no space. Nothing is left behind.
    """
    wanted = wanted or Wanted()
    place = Path(out)
    _check_outside(place, Path(path))
    check_free(place, wanted.archive)
    record = record_of(RunFolder(Path(path)))
    check_space(place, _with_archive(record.num_bytes, wanted))
    with staged(place, wanted.archive, watch) as staging:
        put_record(staging, record)
        subject = subject_of(RunFolder(staging.folder / RUN), record.manifest, wanted.pools_root)
        try:
            check_space(place, _with_archive(_pool_bytes(subject, wanted), wanted))
            notes = _put_parts(staging, subject, wanted)
        finally:
            close_pools(subject.pools.values())
        files, step = staging.num_files + 1, subject.state.snapshot.step
    packed = archive_path(place, wanted.archive)
    return Handover(
        path=place,
        archive=packed,
        archive_sha256=None if packed is None else sha256_of(packed),
        sums_sha256=sha256_of(place / SUMS_NAME),
        files=files,
        bytes=sum(file.stat().st_size for file in place.rglob("*") if file.is_file()),
        step=step,
        notes=(*record.notes, *notes, PATHS_NOTE),
    )


def _check_outside(out: Path, run: Path) -> None:
    """Raise RecipeError when the package would lie in the run's own folder."""
    if out.resolve().is_relative_to(run.resolve()):
        raise RecipeError.single(
            f"{out}: in the run's folder",
            "OUT",
            given=str(out),
            expected="a folder outside the run's: nothing but the run's record is written there",
            fix="choose a place beside it",
        )


def subject_of(folder: RunFolder, manifest: int | None, pools_root: Path | None) -> Subject:
    """A run at its last checkpoint, with its pools open."""
    state = find_place(folder).state
    said = None if manifest is None else read_manifest(manifest_path(folder.path, manifest))
    paths = known_paths(state.recipe, state.holdings, pools_root)
    return Subject(folder, state, said, _same_pools(state, open_pools(state.recipe, paths)))


def _same_pools(state: State, pools: dict[str, Pool]) -> dict[str, Pool]:
    """The pools, if they are the ones on record."""
    try:
        refuse_changed(changed(state.holdings, pools), fix="put the data back that the run was served from")
    except RecipeError:
        close_pools(pools.values())
        raise
    return pools


def put_record(staging: Staging, record: Record) -> None:
    """Copy the record, with the ledger cut where it stops to count, and the copy of the last manifest."""
    source = record.folder.path
    for name in record.files:
        staging.copy(f"{RUN}/{name}", source / name)
    staging.copy(f"{RUN}/ledger.jsonl", record.folder.ledger, most=record.ledger_bytes)
    if record.manifest is not None:
        latest = latest_path(Path()).as_posix()
        staging.copy(f"{RUN}/{latest}", manifest_path(source, record.manifest))


_TABLES_NOTE = (
    "document tables (ids, groups, tags, sources) are in the package although nobody asked for them: `where` "
    "of a pool says by them which documents it holds, and no row can be computed without"
)


def _with_documents(recipe: Recipe, wanted: Wanted) -> bool:
    """Whether document tables travel: asked for, or what tells which documents a pool holds."""
    return wanted.documents or any(pool.where is not None for pool in recipe.pools.values())


def _folders(recipe: Recipe, pools: Mapping[str, Pool]) -> dict[str, Pool]:
    """The pools whose files are copied: one of each folder."""
    return {name: pool for name, pool in pools.items() if recipe.pools[name].of is None}


def _put_parts(staging: Staging, subject: Subject, wanted: Wanted) -> list[str]:
    recipe, pools = subject.recipe, subject.pools
    tokenizer = put_tokenizer(staging, TOKENIZER, recipe, pools, wanted.tokenizer)
    staging.put(f"{TOKENIZER}/tokenizer.yaml", yaml_bytes(tokenizer))
    folders = pool_folders(recipe)
    documents = _with_documents(recipe, wanted)
    said: list[str | None] = [_TABLES_NOTE] if documents and not wanted.documents else []
    said += [
        put_pool(staging, f"{POOLS}/{folders[name]}", pool, tokens=wanted.tokens, documents=documents)
        for name, pool in _folders(recipe, pools).items()
    ]
    for name, data in statements(subject).items():
        staging.put(name, data)
    files = package_files()
    program = program_plain(files)
    staging.put(f"{PROGRAM}/{wheel_name()}", wheel(files))
    staging.put(f"{PROGRAM}/program.yaml", yaml_bytes(program))
    staging.put(f"{PROGRAM}/requirements.txt", requirements().encode())
    with open_run(subject.folder.path, pools_root=wanted.pools_root) as run:
        staging.put(VECTORS_NAME, yaml_bytes(vectors_plain(synthetic_vectors(), _vectors_of(run, subject))))
    holds = {
        "tokens": wanted.tokens,
        "documents": wanted.documents,
        "tokenizer_files": sorted(tokenizer["files"]),
    }
    for name, data in front_pages(subject, tokenizer, program, holds).items():
        staging.put(name, data)
    if tokenizer["kind"] is None:
        said.append(f"tokenizer: {tokenizer['note']}")
    return [note for note in said if note is not None]


def _vectors_of(run: Run, subject: Subject) -> Plain:
    stream, at = run.stream(), subject.state.snapshot.step
    return run_vectors(stream, chosen_steps(stream, subject.state.turn.step, at))


def _pool_bytes(subject: Subject, wanted: Wanted) -> int:
    documents = _with_documents(subject.recipe, wanted)
    return sum(
        pool_bytes(pool, tokens=wanted.tokens, documents=documents)
        for pool in _folders(subject.recipe, subject.pools).values()
    )


def _with_archive(num_bytes: int, wanted: Wanted) -> int:
    """Bytes on disk while a folder and its archive are made; a little more for what is computed."""
    return (num_bytes + (16 << 20)) * (1 if wanted.archive == "none" else 2)
