"""Where a branch starts: a checkpoint of another run, read without touching that run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from recipe.errors import RecipeError
from recipe.run.accounts import Accounts
from recipe.run.canonical import Plain
from recipe.run.folder import RecipeVersion, RunFolder, read_identity, read_version
from recipe.run.forgotten import is_forgotten, refuse_forgotten
from recipe.run.head import ancestor, closing_of, read_head
from recipe.run.ledger import check_chain, damaged, read_tail, row_at
from recipe.run.lost import check_nothing_lost
from recipe.run.manifest import manifest_path, read_manifest
from recipe.run.row import CLOSING_KINDS, Row
from recipe.run.rows_of_kind import rows_of_kind
from recipe.run.state import State
from recipe.run.surviving import surviving

_PLACE = re.compile(r"(?P<run>.+)@(?:(?P<manifest>[0-9]{1,12})|step:(?P<step>[0-9]{1,18}))", re.ASCII)
_SHOWN = 6


@dataclass(frozen=True, kw_only=True)
class Origin:
    """A checkpoint that branches start from, with all that they take from it."""

    folder: RunFolder
    identity: Plain
    """The run's run.yaml."""
    row: Row
    """Its checkpoint row."""
    manifest: Plain
    data: bytes
    """The manifest's bytes."""
    state: State
    version: RecipeVersion
    stage: str
    """Of the stretch that ends here."""
    planned_to: int
    """Positions of that stage that are planned for in the run's rows up to here."""

    @property
    def number(self) -> int:
        """Of the manifest."""
        return int(self.manifest["number"])

    @property
    def step(self) -> int:
        """Steps consumed."""
        return self.state.snapshot.step

    @property
    def uri(self) -> str | None:
        """Where the weights are."""
        uri: str | None = self.manifest["checkpoint"]["uri"]
        return uri


def split_place(text: str) -> tuple[Path, int | None, int | None]:
    """A run and the manifest or step in it: ``RUN``, ``RUN@NUMBER`` or ``RUN@step:N``.

    >>> split_place("runs/a@3"), split_place("runs/a@step:400")[1:]
    ((PosixPath('runs/a'), 3, None), (None, 400))
    """
    match = _PLACE.fullmatch(text)
    if match is None or Path(text).is_dir():
        return Path(text), None, None
    manifest, step = match["manifest"], match["step"]
    return (
        Path(match["run"]),
        None if manifest is None else int(manifest),
        None if step is None else int(step),
    )


def find_origin(path: Path, manifest: int | None = None, step: int | None = None) -> Origin:
    """The checkpoint of a manifest, of a step, or the last one; nothing is locked or written.

    Raises:
        RecipeError: no run, a damaged record, no such checkpoint, one that a rewind discarded, or one
            whose weights were deleted (``forgotten``).
    """
    folder = RunFolder(path)
    folder.check()
    check_chain(folder.ledger)
    check_nothing_lost(folder)
    row = _checkpoint(folder, manifest, step)
    number = int(row.data["manifest"])
    refuse_forgotten(folder, row)
    file = manifest_path(folder.path, number)
    told = read_manifest(file, row.data["manifest_hash"])
    state = State.from_manifest(told, str(file))
    stage, planned_to = _planned(folder, row, state)
    return Origin(
        folder=folder,
        identity=read_identity(folder),
        row=row,
        manifest=told,
        data=file.read_bytes(),
        state=state,
        version=read_version(folder, state.version, told["recipe"]["hash"]),
        stage=stage,
        planned_to=planned_to,
    )


def _checkpoint(folder: RunFolder, manifest: int | None, step: int | None) -> Row:
    if manifest is None and step is None:
        row = read_head(folder.ledger).parent
        row = row and _kept(folder, row.end_step)
    elif manifest is None:
        row = _kept(folder, step or 0)
    else:
        row = _numbered(folder, manifest)
    return row if row is not None else _search(folder, manifest, step)


def _kept(folder: RunFolder, step: int) -> Row | None:
    """The last checkpoint at a step whose weights were not deleted; the last one, where all were."""
    rows = list(_at_step(folder, step))
    return next((row for row in rows if not is_forgotten(folder, row)), rows[0] if rows else None)


def _at_step(folder: RunFolder, step: int) -> Iterator[Row]:
    """The checkpoints of the lineage at a step, last first, found by the pointers of later ones."""
    if step < row_at(folder.ledger, 0).end_step:
        return  # before the branch
    row = read_head(folder.ledger, step).parent
    while row is not None and row.end_step == step:
        yield row
        row = ancestor(folder.ledger, row, "parent")


def _numbered(folder: RunFolder, manifest: int) -> Row | None:
    """The checkpoint of a manifest, where its file says at which step to look."""
    file = manifest_path(folder.path, manifest)
    if not file.is_file():
        return None
    step = int(read_manifest(file)["checkpoint"]["step"])
    return next((row for row in _at_step(folder, step) if row.data["manifest"] == manifest), None)


def _search(folder: RunFolder, manifest: int | None, step: int | None) -> Row:
    """Look through all rows that count: late checkpoints stand beside the others.

    Raises:
        RecipeError: there is none; it names the nearest ones.
    """
    known: list[Row] = []
    for row in surviving(folder.ledger, read_tail(folder.ledger)):
        if row.kind == "checkpoint":
            if row.data["manifest"] == manifest or (manifest is None and row.end_step == step):
                return row
            known.append(row)
    raise _none(folder, known, manifest, step)


def _none(folder: RunFolder, known: list[Row], manifest: int | None, step: int | None) -> RecipeError:
    wanted = manifest if manifest is not None else step or 0
    nearest = sorted(known, key=lambda row: abs(_measure(row, manifest) - wanted))[:_SHOWN]
    shown = ", ".join(
        f"{row.data['manifest']} (step {row.end_step:,})" for row in sorted(nearest, key=_number)
    )
    given = f"manifest {manifest}" if manifest is not None else f"step {step}" if step is not None else "none"
    if manifest is not None and manifest_path(folder.path, manifest).is_file():
        given += ", which a rewind discarded, or whose checkpoint was cut short"
    return RecipeError.single(
        f"{folder.path}: no such checkpoint",
        "RUN@MANIFEST" if step is None else "RUN@step:N",
        given=given if known or manifest is not None or step is not None else "a run without checkpoints",
        expected=f"a manifest that counts; the nearest are {shown}" if shown else "a run with a checkpoint",
        fix=f"branch from one of these, such as {folder.path}@{nearest[0].data['manifest']}"
        if nearest
        else "let the run write a checkpoint first; or start another run (recipe run … --name NAME)",
    )


def _number(row: Row) -> int:
    return int(row.data["manifest"])


def _measure(row: Row, manifest: int | None) -> int:
    return _number(row) if manifest is not None else row.end_step


def later_withdrawals(origin: Origin) -> int:
    """How often the run withdrew documents after its checkpoint."""
    rows = rows_of_kind(origin.folder.ledger, "withdraw", origin.row)
    return sum(row.end_step >= origin.step for row in rows)


def _planned(folder: RunFolder, checkpoint: Row, state: State) -> tuple[str, int]:
    """Stage of the stretch that ends at a checkpoint, and how far that stage is planned for there."""
    pointer = checkpoint.data["closing"]
    closing = row_at(folder.ledger, int(pointer["offset"]))
    if closing.kind not in CLOSING_KINDS or closing.number != pointer["row"]:
        given, expected = f"closing {pointer}", f"row {checkpoint.number} to name the closing row before it"
        raise damaged(folder.ledger, checkpoint.offset, given, expected)
    stages = tuple(state.recipe.stages)
    start = closing_of(closing, stages)
    if checkpoint.end_step == start.snapshot.step:
        return stages[start.stage], start.planned_to
    accounts = Accounts(state.recipe)
    stage, _, planned_from = accounts.place(start)
    length = accounts.curriculum.stages[stage].length
    return stages[stage], min(max(planned_from, state.snapshot.stage_positions), length)
