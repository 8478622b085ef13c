"""Snapshots on record between two others, found without reading a ledger through.

Checkpoints of one lineage are reached by the pointers of their rows. Between two that follow one
another, chunk rows are met by halving the bytes between them. Rows that a rewind discarded are as
good as others, for a snapshot is a function of the step; unless a turn was discarded with them: then
only what follows the last rewind is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from recipe.mixing.snapshot import Snapshot
from recipe.run.head import ancestor, snapshot_of
from recipe.run.ledger import row_at
from recipe.run.row import TURN_KINDS, Row

_BLOCK = 1 << 20
_KIND = b'"kind":"'
_LONGEST_KIND = 16
_TURNS = frozenset(kind.encode() for kind in TURN_KINDS)
_KEPT_ROWS = 1 << 10


@dataclass(frozen=True, slots=True)
class RowMark:
    """A row of a turn that holds a snapshot."""

    row: Row
    snapshot: Snapshot
    gap_end: int
    """Byte of the lineage's next checkpoint (of a checkpoint: its own), or of another row that is known."""

    @classmethod
    def of(cls, row: Row, gap_end: int | None = None) -> RowMark:
        """The mark of a row."""
        return cls(row, snapshot_of(row), row.offset if gap_end is None else gap_end)

    @property
    def step(self) -> int:
        """Steps consumed there."""
        return self.snapshot.step


class Record:
    """The rows of one turn in a ledger, read where they are needed."""

    def __init__(self, path: Path) -> None:
        """``path``: of the ledger."""
        self.path = path
        self._usable: dict[int, int] = {}
        self._row = lru_cache(maxsize=_KEPT_ROWS)(lambda offset: row_at(path, offset))
        self._before: dict[tuple[int, str], Row | None] = {}

    def between(self, low: RowMark, high: RowMark) -> RowMark | None:
        """A mark strictly between two marks of one turn, about half-way; None where none is known."""
        if high.step - low.step < 2:
            return None
        found = self._checkpoint_between(low, high) if high.row.kind == "checkpoint" else None
        return found or self._chunk_between(low, high)

    def nearest(self, low: RowMark, high: RowMark, step: int) -> RowMark:
        """The last mark at or before a step that lies between two marks."""
        while (middle := self.between(low, high)) is not None:
            low, high = (middle, high) if middle.step <= step else (low, middle)
        return low

    def numbered(self, number: int) -> Row | None:
        """The row with a number, if the ledger has one: found by halving its bytes, for numbers only rise."""
        first, end = 0, self.path.stat().st_size
        while first < end:
            middle = (first + end) // 2
            offset = self._line_after(middle) if middle else 0
            row = self._row(offset) if offset < end else None
            if row is None or row.number > number:
                end = middle
            elif row.number < number:
                first = row.offset + 1
            else:
                return row
        return None

    def _checkpoint_between(self, low: RowMark, high: RowMark) -> RowMark | None:
        """A checkpoint of the lineage of ``high``: the one half-way, or the one after it."""
        half = (low.step + high.step) // 2
        row, child = _at_or_before(self._ancestor, high.row, half)
        for found in (row, child):
            if found is not None and low.step < found.end_step < high.step:
                return RowMark.of(found)
        return None

    def _ancestor(self, row: Row, pointer: str) -> Row | None:
        """As `recipe.run.head.ancestor`, read once."""
        key = row.offset, pointer
        if key not in self._before:
            if len(self._before) >= _KEPT_ROWS:
                self._before = {}
            self._before[key] = ancestor(self.path, row, pointer)
        return self._before[key]

    def last_before(self, tip: Row | None, turn: Row) -> Row | None:
        """The last checkpoint of the lineage of a checkpoint that was written before a turn."""
        row = tip
        if row is not None and row.end_step > turn.end_step:
            row, _ = _at_or_before(self._ancestor, row, turn.end_step)
        while row is not None and row.offset > turn.offset:
            row = self._ancestor(row, "parent")
        return row

    def _chunk_between(self, low: RowMark, high: RowMark) -> RowMark | None:
        """A chunk row between two rows, found by halving the bytes between them."""
        first, end = max(low.row.offset + 1, self._usable_from(low, high)), high.row.offset
        while first < end:
            middle = (first + end) // 2
            row = self._chunk_in(middle, end)
            if row is None or row.end_step >= high.step:
                end = middle
            elif row.end_step <= low.step:
                first = row.offset + 1
            else:
                return RowMark.of(row, high.gap_end)
        return None

    def _chunk_in(self, first: int, end: int) -> Row | None:
        """The first chunk row whose line begins in some bytes."""
        while (offset := self._line_after(first)) < end:
            row = self._row(offset)
            if row.kind == "chunk":
                return row
            first = offset + 1
        return None

    def _line_after(self, byte: int) -> int:
        """Where the first line begins that does so at or after a byte (not the ledger's first)."""
        at = byte - 1
        with self.path.open("rb") as file:
            file.seek(at)
            while block := file.read(1 << 14):
                if (found := block.find(b"\n")) >= 0:
                    return at + found + 1
                at += len(block)
        return at

    def _usable_from(self, low: RowMark, high: RowMark) -> int:
        """The byte from which the rows between a mark and the end of its gap are of the same turn."""
        known = self._usable.get(high.gap_end)
        if known is None:
            known = self._usable[high.gap_end] = self._scan(
                self._line_after(low.row.offset + 1), high.gap_end
            )
        return known

    def _scan(self, first: int, end: int) -> int:
        """``first``, or the last rewind's byte if a turn is among the rows that begin in these bytes."""
        turned, rewound = False, first
        with self.path.open("rb") as file:
            at = first
            while at < end:
                file.seek(at)
                block = file.read(min(_BLOCK, end - at) + _LONGEST_KIND)
                place = block.find(_KIND)
                while 0 <= place < _BLOCK:
                    kind = (
                        block[place + len(_KIND) :][:_LONGEST_KIND]
                        .partition(b'"')[0]
                        .decode(errors="replace")
                    )
                    turned = turned or kind in TURN_KINDS
                    rewound = at + place if kind == "rewind" else rewound
                    place = block.find(_KIND, place + 1)
                at += _BLOCK
        return rewound if turned else first


def _at_or_before(
    ancestor_of: Callable[[Row, str], Row | None], last: Row, step: int
) -> tuple[Row | None, Row]:
    """The last checkpoint of a lineage at or before a step, and the one after it; ``last`` is later."""
    child = last
    while True:
        for pointer in ("skip", "parent"):
            row = ancestor_of(child, pointer)
            if row is None:
                return None, child
            if row.end_step > step:
                break
        else:
            return row, child
        child = row
