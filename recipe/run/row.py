"""A row of the ledger: what kinds there are, what each tells of the run's course, and how rows are made.

Rows that close a stretch of steps (chunks and turns) and checkpoints hold a snapshot. A chunk's row that
ends before the chunk does (:func:`is_cut`) is part of an append with the turn that ended it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from recipe.run.canonical import Plain, canonical, hash_of

FORMAT = 1
TURN_KINDS = ("created", "data", "amend", "skip", "withdraw")
"""Rows where the course of a run turns: the steps after them go on from their snapshot."""
CLOSING_KINDS = (*TURN_KINDS, "chunk")
"""Rows whose snapshot the next chunk row starts from."""
SAYING_KINDS = ("metrics", "opened", "decision", "forgotten")
"""Rows that only say something about a run: they change nothing of its course and may stand anywhere."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row and where its line begins in the file."""

    offset: int
    data: Plain

    @property
    def kind(self) -> str:
        """What the row says: created, chunk, checkpoint, rewind, warning, data …"""
        return str(self.data["kind"])

    @property
    def number(self) -> int:
        """Rows before it."""
        return int(self.data["row"])

    @property
    def end_step(self) -> int:
        """The step a closing row or a checkpoint ends at; 0 for the first row."""
        return int(self.data["steps"][1] if self.kind == "chunk" else self.data.get("step", 0))


def is_cut(row: Row) -> bool:
    """Whether a chunk's row ends before the chunk does: then a turn follows in the same append.

    As the last row of a ledger it is part of an append that was cut short, and counts for nothing.
    """
    number, snapshot = row.data.get("chunk"), row.data.get("snapshot")
    if row.kind != "chunk" or number is None or not isinstance(snapshot, dict):
        return False
    return snapshot.get("chunk") == number and not snapshot.get("ended")


def is_aside(row: Row) -> bool:
    """Whether a row leaves the end of the run's course where it is.

    Rows that only say something do, and checkpoints that were committed after later ones.
    """
    return row.kind in SAYING_KINDS or bool(row.data.get("late"))


def sealed_row(body: Plain, *, number: int, previous: str | None, time: str) -> Plain:
    """A row with the fields every row has, and its hash."""
    row: Plain = {"format": FORMAT, "row": number, **body, "time": time, "previous": previous}
    return {**row, "hash": hash_of(row)}


def first_line(body: Plain, *, time: str) -> bytes:
    """The bytes of a ledger with one row."""
    return canonical(sealed_row(body, number=0, previous=None, time=time)) + b"\n"


def chained(last: Row, bodies: Iterable[Plain], *, time: str) -> list[Plain]:
    """Rows that follow ``last``, in order."""
    rows = []
    number, previous = last.number, str(last.data["hash"])
    for body in bodies:
        number += 1
        rows.append(sealed_row(body, number=number, previous=previous, time=time))
        previous = rows[-1]["hash"]
    return rows


def now() -> str:
    """The time as rows and manifests state it: UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
