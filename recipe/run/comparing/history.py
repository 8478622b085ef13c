"""What counts in a run's record, light enough to hold thousands of checkpoints at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from recipe.errors import RecipeError
from recipe.run.canonical import Plain, hash_of
from recipe.run.folder import RunFolder
from recipe.run.ledger import read_tail, row_at, rows_backwards
from recipe.run.manifest import manifest_path, read_manifest
from recipe.run.row import CLOSING_KINDS, SAYING_KINDS, Row
from recipe.run.sayings import that_count
from recipe.run.surviving import Bound


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A checkpoint that no rewind discarded."""

    row: int
    offset: int
    """Where its row begins in the ledger."""
    step: int
    manifest: int
    manifest_hash: str
    time: str
    gpu_hours: int | float | None
    positions: int
    version: int
    """Of the recipe in force."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """Where the course of the run changed, and to which recipe if it was an amendment."""

    row: int
    kind: str
    step: int
    version: int | None
    """Of the recipe that an amendment put in force."""
    mark: str
    """Digest of what any other turn did."""


@dataclass(frozen=True, kw_only=True)
class History:
    """A run, as its record tells it."""

    folder: RunFolder
    end: int
    """Bytes of the ledger that were read: what is added meanwhile is not looked at."""
    created: Row
    points: tuple[Point, ...]
    """In the order of the ledger; late ones come after those they precede."""
    turns: tuple[Turn, ...]
    """After the creation."""
    sayings: tuple[Row, ...]
    """Metrics, decisions, openings and what was forgotten, as far as they count."""

    @property
    def name(self) -> str:
        """The run's name."""
        return str(self.created.data["run"])

    @property
    def id(self) -> str:
        """What tells the run from all others."""
        return str(self.created.data["id"])

    @property
    def is_complete(self) -> bool:
        """Whether no step is left after its furthest checkpoint."""
        if not self.points:
            return False
        last = self.manifest(max(self.points, key=lambda point: (point.step, point.row)))
        return bool(last["snapshot"]["ended"] or last["checkpoint"]["step"] == last["num_steps"])

    @property
    def parent(self) -> Plain | None:
        """Where the run branched from another one; None for a run that began at step 0."""
        parent: Plain | None = self.created.data.get("parent")
        return parent

    @property
    def base(self) -> int:
        """The step it began at."""
        return self.created.end_step

    def at(self, step: int) -> list[Point]:
        """Its checkpoints at a step, in order."""
        return [point for point in self.points if point.step == step]

    def said(self, kind: str) -> list[Row]:
        """The rows of one kind that count, in order."""
        return [row for row in self.sayings if row.kind == kind]

    def manifest(self, point: Point) -> Plain:
        """The manifest of a checkpoint, checked against its row."""
        return read_manifest(manifest_path(self.folder.path, point.manifest), point.manifest_hash)

    def row(self, point: Point) -> Row:
        """The ledger's row of a checkpoint."""
        return row_at(self.folder.ledger, point.offset)


def read_history(path: str | Path) -> History:
    """Read a run's ledger once, from its end; nothing is locked or written.

    Raises:
        RecipeError: no run, or a record that is not what was written.
    """
    folder = RunFolder(Path(path))
    folder.check()
    points: list[Point] = []
    turns: list[Turn] = []
    sayings: list[Row] = []
    created: Row | None = None
    end = read_tail(folder.ledger).end
    for row, is_counted in _rows(folder.ledger, end):
        if row.kind in SAYING_KINDS:
            sayings.append(row)
        elif row.kind == "created":
            created = row
        elif is_counted and row.kind == "checkpoint":
            points.append(_point(row))
        elif is_counted and row.kind in CLOSING_KINDS and row.kind != "chunk":
            turns.append(_turn(row))
    assert created is not None, f"{path}: the chain begins with the row of the creation"
    counted = [(point.manifest, point.manifest_hash) for point in points]
    kept = that_count(sayings[::-1], counted, str(created.data["id"]))
    return History(
        folder=folder,
        end=end,
        created=created,
        points=tuple(points[::-1]),
        turns=tuple(turns[::-1]),
        sayings=tuple(kept),
    )


def common_steps(histories: list[History]) -> list[int]:
    """The steps at which each of some runs has a checkpoint, first to last."""
    steps = [{point.step for point in history.points} for history in histories]
    return sorted(set.intersection(*steps)) if steps else []


def decisions_about(histories: Sequence[History]) -> list[Row]:
    """The decisions on record in some runs for one of them."""
    ids = {history.id for history in histories}
    return [row for history in histories for row in history.said("decision") if row.data["id"] in ids]


def counted_chunks(history: History, step: int) -> Iterator[Row]:
    """The chunk rows that lead to a step, last first."""
    bound = Bound(step)
    for row in rows_backwards(history.folder.ledger, history.end):
        if row.kind not in SAYING_KINDS and bound.keeps(row) and row.kind == "chunk":
            yield row


def _rows(ledger: Path, end: int) -> Iterator[tuple[Row, bool]]:
    """Every row, last first, and whether no rewind discarded it."""
    bound = Bound()
    for row in rows_backwards(ledger, end):
        yield row, row.kind not in SAYING_KINDS and bound.keeps(row)


def _turn(row: Row) -> Turn:
    told = [row.data.get(key) for key in ("steps", "returned", "file_hash", "pools")]
    is_amendment = row.kind == "amend"
    return Turn(
        row=row.number,
        kind=row.kind,
        step=row.end_step,
        version=int(row.data["recipe"]) if is_amendment else None,
        mark="" if is_amendment else hash_of(told),
    )


def _point(row: Row) -> Point:
    data = row.data
    try:
        return Point(
            row=row.number,
            offset=row.offset,
            step=row.end_step,
            manifest=int(data["manifest"]),
            manifest_hash=str(data["manifest_hash"]),
            time=str(data["time"]),
            gpu_hours=data["gpu_hours"],
            positions=int(data["positions"]),
            version=int(data["recipe"]),
        )
    except (LookupError, TypeError, ValueError) as error:
        raise RecipeError.single(
            "the ledger is damaged",
            f"ledger.jsonl row {row.number}",
            given=f"a checkpoint without {error}",
            expected="a checkpoint row as it was written",
            fix="`recipe audit` names every fault; take the ledger from a copy",
        ) from error
