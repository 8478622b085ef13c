"""The delivery of a run in five parts, with its record: a folder that proves itself on another machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recipe.config import Recipe, fingerprint, recipe_from_plain, recipe_to_plain
from recipe.errors import RecipeError
from recipe.mixing.curriculum import Curriculum
from recipe.mixing.opening import close_pools, open_pools
from recipe.pools import Pool
from recipe.run.canonical import Plain
from recipe.run.folder import RunFolder
from recipe.run.handover.data import data_list, pool_folders
from recipe.run.handover.pool_files import inside, pool_bytes, put_pool
from recipe.run.handover.program import package_files, program_plain, requirements, wheel, wheel_name
from recipe.run.handover.quotas import quota_table
from recipe.run.handover.readme import readmes
from recipe.run.handover.record import Record, record_of
from recipe.run.handover.rules import sequence_rules
from recipe.run.handover.staging import (
    SUMS_NAME,
    Archive,
    Staging,
    archive_path,
    check_free,
    check_space,
    sha256_of,
    staged,
)
from recipe.run.handover.tokenizer import put_tokenizer
from recipe.run.handover.trainer import trainer_settings
from recipe.run.handover.vectors import chosen_steps, run_vectors, synthetic_vectors, vectors_plain
from recipe.run.holdings import changed, known_paths, refuse_changed
from recipe.run.ledger import read_tail, surviving
from recipe.run.manifest import latest_path, manifest_path, read_manifest, yaml_bytes
from recipe.run.opening import find_place, open_run
from recipe.run.run import Run
from recipe.run.state import State

FORMAT = 1
INDEX_NAME = "handover.yaml"
RUN = "run"
TOKENIZER, DATA, SEQUENCES, QUOTAS, PROGRAM = (
    "1-tokenizer", "2-data", "3-sequences", "4-quotas", "5-program",
)  # fmt: skip
POOLS = f"{DATA}/pools"
PATHS_NOTE = "the run's record names folders of this machine, and its hashes cover them: it is left as it is"
STATE_NAME, VECTORS_NAME = f"{PROGRAM}/state.bin", f"{PROGRAM}/vectors.yaml"


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


@dataclass(frozen=True, slots=True)
class Subject:
    """What the parts are about: a run as its record has it, and its pools."""

    folder: RunFolder
    state: State
    manifest: Plain | None
    """The last one; None before the first checkpoint."""
    pools: Mapping[str, Pool]

    @property
    def recipe(self) -> Recipe:
        """The recipe in force."""
        return self.state.recipe


def hand_over_run(path: str | Path, out: str | Path, wanted: Wanted | None = None) -> Handover:
    """Write the five-part delivery of a run, as it stands at its last checkpoint, to a new folder.

    The run is only read, and may go on meanwhile. The same run gives the same bytes.

    Args:
        path: the run's folder.
        out: a folder that is not there yet, or is empty.
        wanted: what else goes in, and how it is packed.

    Raises:
        RecipeError: no run, a damaged record, a pool that is missing or another one, a tokenizer that is not
            the pools', something at ``out``, no space. Nothing is left behind.
    """
    wanted = wanted or Wanted()
    place = Path(out)
    check_free(place, wanted.archive)
    record = record_of(RunFolder(Path(path)))
    check_space(place, _with_archive(record.num_bytes, wanted))
    with staged(place, wanted.archive) as staging:
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


def statements(subject: Subject) -> dict[str, bytes]:
    """The parts that follow from record and pools alone, by file: whoever has both can make them again."""
    recipe, pools = subject.recipe, subject.pools
    ledger = subject.folder.ledger
    rows = surviving(ledger, read_tail(ledger))
    plains = {
        f"{DATA}/data.yaml": data_list(recipe, pools),
        f"{SEQUENCES}/rules.yaml": sequence_rules(recipe, pools),
        f"{SEQUENCES}/trainer.yaml": trainer_settings(recipe),
        f"{QUOTAS}/quotas.yaml": quota_table(recipe, subject.manifest, rows),
        f"{PROGRAM}/reading.yaml": _reading(subject),
    }
    files = {name: yaml_bytes(plain) for name, plain in plains.items()}
    return {**files, STATE_NAME: portable_state(subject.state)}


def portable_state(state: State) -> bytes:
    """The state without paths of this machine: every pool is named by its folder below a root of pools."""
    folders = pool_folders(state.recipe)
    plain = recipe_to_plain(state.recipe)
    plain.pop("pools_root", None)
    for name, folder in folders.items():
        plain["pools"][name]["path"] = folder
    return replace(
        state,
        recipe=recipe_from_plain(plain, source="the state"),
        holdings={name: replace(held, path=folders[name]) for name, held in state.holdings.items()},
    ).to_bytes()


def _reading(subject: Subject) -> Plain:
    """Seeds, and where the reading of every pool stands."""
    state, recipe = subject.state, subject.recipe
    places = zip(recipe.pools, state.snapshot.to_plain()["pools"], strict=True)
    return {
        "step": state.snapshot.step,
        "seed": recipe.seed,
        "pools": {name: {"epoch_seed": recipe.seed + plain["cursor"][0], **plain} for name, plain in places},
        "words": {
            "cursor": "epoch, block, stage (-1: the block was not begun), sequence of the block",
            "epoch_seed": "base seed + epoch; orders are keyed on both and on the pool's name",
        },
    }


def _put_parts(staging: Staging, subject: Subject, wanted: Wanted) -> list[str]:
    recipe, pools = subject.recipe, subject.pools
    tokenizer = put_tokenizer(staging, TOKENIZER, recipe, pools, wanted.tokenizer)
    staging.put(f"{TOKENIZER}/tokenizer.yaml", yaml_bytes(tokenizer))
    folders = pool_folders(recipe)
    said = [
        put_pool(staging, f"{POOLS}/{folders[name]}", pool, tokens=wanted.tokens, documents=wanted.documents)
        for name, pool in pools.items()
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


def front_pages(subject: Subject, tokenizer: Plain, program: Plain, holds: Plain) -> dict[str, bytes]:
    """``handover.yaml`` and what a person reads first; they follow from everything else."""
    index = _index(subject, tokenizer, program, holds)
    texts = readmes(index, subject.recipe, _facts(subject))
    return {INDEX_NAME: yaml_bytes(index), **{name: text.encode() for name, text in texts.items()}}


def _vectors_of(run: Run, subject: Subject) -> Plain:
    stream, at = run.stream(), subject.state.snapshot.step
    return run_vectors(stream, chosen_steps(stream, subject.state.turn.step, at))


def _index(subject: Subject, tokenizer: Plain, program: Plain, holds: Plain) -> Plain:
    state, manifest = subject.state, subject.manifest
    last = read_tail(subject.folder.ledger).last
    return {
        "format": FORMAT,
        "run": state.run,
        "step": state.snapshot.step,
        "positions": state.snapshot.positions,
        "manifest": None if manifest is None else manifest["number"],
        "manifest_hash": None if manifest is None else manifest["hash"],
        "recipe": {"version": state.version, "fingerprint": fingerprint(subject.recipe)},
        "ledger": {"rows": last.number + 1, "head": last.data["hash"]},
        "tokenizer": tokenizer["fingerprint"],
        "program": {"wheel": program["wheel"], "source_hash": program["source_hash"]},
        "holds": holds,
        "pools": {
            name: {
                "folder": folder,
                "fingerprint": state.holdings[name].fingerprint,
                "inside": inside(subject.pools[name], tokens=holds["tokens"]),
            }
            for name, folder in pool_folders(subject.recipe).items()
        },
    }


def _facts(subject: Subject) -> Plain:
    """What the README tells of where the run stands."""
    curriculum, snapshot = Curriculum.from_recipe(subject.recipe), subject.state.snapshot
    spent = {name: pool.spent for name, pool in zip(subject.recipe.pools, snapshot.pools, strict=True)}
    return {
        "stage": curriculum.stages[snapshot.stage].name,
        "num_steps": curriculum.num_steps,
        "spent": spent,
    }


def _pool_bytes(subject: Subject, wanted: Wanted) -> int:
    return sum(
        pool_bytes(pool, tokens=wanted.tokens, documents=wanted.documents) for pool in subject.pools.values()
    )


def _with_archive(num_bytes: int, wanted: Wanted) -> int:
    """Bytes on disk while a folder and its archive are made; a little more for what is computed."""
    return (num_bytes + (16 << 20)) * (1 if wanted.archive == "none" else 2)
