"""Turns of a run: its creation, and every later row from which the steps go on another way.

From a turn on the stream is a function of the recipe in force, the pools, and the snapshot that the
turn's row holds. Every turn names the one before it, so any step of a run is found again, at a cost
that does not depend on the ledger's length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recipe.errors import RecipeError
from recipe.run.canonical import Plain, hash_of
from recipe.run.ledger import damaged, read_tail, row_at
from recipe.run.row import TURN_KINDS, Row, is_aside
from recipe.run.surviving import surviving


@dataclass(frozen=True, slots=True)
class TurnAt:
    """A turn's row: its number, where its line begins, the step from which it holds, and its mark."""

    row: int
    """-1 while the turn is not on record."""
    offset: int
    step: int
    mark: str
    """Digest of what the turn is, which is known before its row is."""

    @classmethod
    def of(cls, row: Row) -> TurnAt:
        """Of a row that is a turn."""
        return cls(row.number, row.offset, row.end_step, mark_of(row.data))

    @classmethod
    def pending(cls, body: Plain) -> TurnAt:
        """Of a turn whose row is still to be written."""
        return cls(-1, -1, int(body["step"]), mark_of(body))

    @property
    def is_pending(self) -> bool:
        """Whether its row is still to be written."""
        return self.row < 0

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> TurnAt:
        """From what :meth:`to_plain` gave."""
        return cls(**plain)

    def to_plain(self) -> Plain:
        """As manifests and states hold it."""
        return asdict(self)

    @property
    def pointer(self) -> Plain:
        """As rows hold it."""
        return {"row": self.row, "offset": self.offset, "step": self.step}


def mark_of(body: Mapping[str, Any]) -> str:
    """Digest of a turn: its kind, step, recipe, the state it goes on from, and the file it names."""
    keys = ("kind", "step", "recipe_hash", "snapshot", "file_hash")
    return hash_of([body.get(key) for key in keys])


def turn_in_force(path: Path) -> Row:
    """The last turn of a ledger that no rewind discarded."""
    for row in surviving(path, read_tail(path)):
        if row.kind in TURN_KINDS:
            return row
        if row.kind == "checkpoint" and not is_aside(row):
            return _named(path, row)
    raise AssertionError(f"{path}: the first row is a turn")


def turns_backwards(path: Path) -> Iterator[Row]:
    """The turns of the lineage, last first; the last one is the run's creation.

    Raises:
        RecipeError: a row names no turn: the ledger is damaged.
    """
    row = turn_in_force(path)
    yield row
    while row.kind != "created":
        before = _named(path, row)
        if before.end_step > row.end_step:
            raise damaged(path, row.offset, f"a turn at step {before.end_step}", f"one up to {row.end_step}")
        yield before
        row = before


def find_turn(path: Path, turn: TurnAt) -> tuple[Row | None, Row | None]:
    """The row of a turn, if it is one of the lineage, and the turn after it, if there is one."""
    after: Row | None = None
    for row in turns_backwards(path):
        if mark_of(row.data) == turn.mark:
            return row, after
        if row.end_step < turn.step:
            break
        after = row
    return None, after


def turn_before(path: Path, row: Row) -> Row | None:
    """The turn before another one; None before the run's creation."""
    return None if row.kind == "created" else _named(path, row)


def _named(path: Path, row: Row) -> Row:
    """The turn that a row names as the one before it."""
    pointer = row.data.get("turn")
    pointer = pointer if isinstance(pointer, dict) else {}
    offset = pointer.get("offset")
    if type(offset) is not int or not 0 <= offset < row.offset:
        raise _misled(path, row)
    named = row_at(path, offset)
    if named.kind not in TURN_KINDS or named.number != pointer.get("row"):
        raise _misled(path, row)
    return named


def _misled(path: Path, row: Row) -> RecipeError:
    return damaged(path, row.offset, f"turn {row.data.get('turn')!s:.80}", f"row {row.number} to name a turn")
