"""Rows that count: those that no rewind discarded.

A rewind to step ``t`` discards what came before it and ends after ``t``; one that names a manifest discards
all rows after that checkpoint's, so also a turn at ``t`` itself, and one that names a turn's row
discards all rows from there on; but a checkpoint that was committed late, for a step before ``t``, goes
on counting. Read backwards, a row therefore counts when it ends at or before the
least ``to_step`` met so far and lies in no such gap: :class:`Bound` keeps all three.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from recipe.run.ledger import Tail, rows_backwards
from recipe.run.row import Row


def surviving(path: Path, tail: Tail, limit: int | None = None) -> Iterator[Row]:
    """Rows that no rewind discarded, last first; with ``limit``, as if a rewind to that step came now.

    Rewind and warning rows themselves are left out once discarded too.
    """
    bound = Bound(limit)
    for row in rows_backwards(path, tail.end):
        if bound.keeps(row):
            yield row


class Bound:
    """Tells, row after row, last first, what no rewind discarded."""

    def __init__(self, limit: int | None = None) -> None:
        """With ``limit``, as if a rewind to that step came now."""
        self._step = limit
        self._manifest: int | None = None
        self._turn: int | None = None
        self._gap = 0
        """Step that the rewind of ``_manifest`` goes back to."""

    def keeps(self, row: Row) -> bool:
        """Whether the row counts; every row must be asked about."""
        if row.data.get("late") and self._keeps_late(row):
            return True
        if self._turn is not None:
            if row.number >= self._turn:
                return False
            self._turn = None
        if self._manifest is not None:
            if row.kind != "checkpoint" or row.data["manifest"] != self._manifest:
                return False
            self._manifest = None
        kept = self._step is None or row.end_step <= self._step
        if row.kind == "rewind":
            to_step = int(row.data["to_step"])
            self._step = to_step if self._step is None else min(self._step, to_step)
            self._manifest, self._turn, self._gap = row.data.get("manifest"), row.data.get("turn"), to_step
        return kept

    def _keeps_late(self, row: Row) -> bool:
        """A late checkpoint says something of an earlier step: what came between does not touch it."""
        if self._turn is not None and row.data["turn"]["row"] >= self._turn:
            return False
        if self._manifest is not None and row.end_step >= self._gap:
            return False
        return self._step is None or row.end_step <= self._step
