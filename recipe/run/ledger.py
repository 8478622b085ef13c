"""The ledger: JSON lines, each with its own hash and the hash of the line before.

Rows are only ever added. The bytes of a line are the canonical JSON of its row, so any other byte
is a fault. A last line without line end is an append that was cut short: it counts for nothing
and is cut off by the next write. It is never mistaken for a damaged row: a line that begins with
one whole JSON value was complete, and if it is not what the chain demands it is reported.

Rows that close a stretch of steps (``chunk``, ``data``) and checkpoints hold a snapshot. A rewind
to step ``t`` discards what came before it and ends after ``t``; one that names a manifest discards
all rows after that checkpoint's, so also new data that was accepted at ``t`` itself. Read
backwards, a row therefore counts when it ends at or before the least ``to_step`` met so far and
lies in no such gap: :class:`Bound` keeps both.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from recipe.errors import RecipeError
from recipe.run.canonical import Plain, canonical, digest, hash_of

FORMAT = 1
CLOSING_KINDS = ("created", "chunk", "data")
"""Rows whose snapshot the next chunk row starts from."""
_BLOCK = 1 << 16


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


@dataclass(frozen=True, slots=True)
class Tail:
    """How a ledger ends."""

    last: Row
    end: int
    """Bytes up to the end of the last whole row; what follows is an unfinished append."""
    unended: bool
    """The last whole row lacks its line end."""


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


def read_tail(path: Path) -> Tail:
    """The last whole row of a ledger, at the same cost for any length.

    Raises:
        RecipeError: the last line is no row of a ledger, or there is none.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        for offset, line in _lines_backwards(file.fileno(), size):
            if line.endswith(b"\n"):
                return Tail(
                    Row(offset, parse_line(path, offset, line[:-1])), offset + len(line), unended=False
                )
            if _begins_whole(line):
                return Tail(Row(offset, parse_line(path, offset, line)), offset + len(line), unended=True)
    raise RecipeError.single(
        f"{path}: no rows",
        str(path),
        given=f"{size} bytes without a whole row",
        expected="a ledger, which begins with the row of the run's creation",
        fix="take the run folder from a copy",
    )


def rows_backwards(path: Path, before: int) -> Iterator[Row]:
    """The rows whose lines end at or before byte ``before``, last first; each row's own hash is checked."""
    with path.open("rb") as file:
        for offset, line in _lines_backwards(file.fileno(), before):
            yield Row(offset, parse_line(path, offset, line.removesuffix(b"\n")))


class Bound:
    """Tells, row after row, last first, what no rewind discarded."""

    def __init__(self, limit: int | None = None) -> None:
        """With ``limit``, as if a rewind to that step came now."""
        self._step = limit
        self._manifest: int | None = None

    def keeps(self, row: Row) -> bool:
        """Whether the row counts; every row must be asked about."""
        if self._manifest is not None:
            if row.kind != "checkpoint" or row.data["manifest"] != self._manifest:
                return False
            self._manifest = None
        kept = self._step is None or row.end_step <= self._step
        if row.kind == "rewind":
            to_step = int(row.data["to_step"])
            self._step = to_step if self._step is None else min(self._step, to_step)
            self._manifest = row.data.get("manifest")
        return kept


def surviving(path: Path, tail: Tail, limit: int | None = None) -> Iterator[Row]:
    """Rows that no rewind discarded, last first; with ``limit``, as if a rewind to that step came now.

    Rewind and warning rows themselves are left out once discarded too.
    """
    bound = Bound(limit)
    for row in rows_backwards(path, tail.end):
        if bound.keeps(row):
            yield row


def read_rows(path: Path) -> Iterator[Row]:
    """All whole rows, first to last, with the chain checked.

    Raises:
        RecipeError: a row is not what its hash says, or does not follow the one before.
    """
    previous: str | None = None
    offset = 0
    with path.open("rb") as file:
        for number, line in enumerate(file):
            if not line.endswith(b"\n") and not _begins_whole(line):
                return
            data = parse_line(path, offset, line.removesuffix(b"\n"))
            if data.get("row") != number or data.get("previous") != previous:
                raise _damaged(
                    path, offset, f"row {data.get('row')}", f"row {number}, chained to the one before"
                )
            yield Row(offset, data)
            previous = data["hash"]
            offset += len(line)


def row_at(path: Path, offset: int) -> Row:
    """The row whose line begins at a byte."""
    with path.open("rb") as file:
        file.seek(offset)
        return Row(offset, parse_line(path, offset, file.readline().removesuffix(b"\n")))


def parse_line(path: Path, offset: int, line: bytes) -> Plain:
    """A line as a row.

    Raises:
        RecipeError: it is not the canonical text of a row that its hash covers.
    """
    try:
        row = json.loads(line)
        mark = f'"hash":"{row["hash"]}",'.encode()
        # Over the bytes as they are: what is left without the hash is the text it was made from.
        whole = line.count(mark) == 1 and digest(line.replace(mark, b"")) == row["hash"] and "kind" in row
    except (ValueError, TypeError, KeyError, RecursionError):
        whole = False
    if not whole:
        raise _damaged(
            path, offset, line[:80].decode(errors="replace"), "a row whose hash is that of its text"
        )
    return dict(row)


def now() -> str:
    """The time as rows and manifests state it: UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _begins_whole(line: bytes) -> bool:
    """Whether a line without end holds a whole JSON value: then it was no append cut short."""
    try:
        json.JSONDecoder().raw_decode(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return False
    return True


def _lines_backwards(handle: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Lines before byte ``end`` with their line ends, last first."""
    rest = b""
    start = end
    while start:
        size = min(_BLOCK, start)
        start -= size
        rest = os.pread(handle, size, start) + rest
        while (cut := rest.rfind(b"\n", 0, len(rest) - 1)) >= 0:
            yield start + cut + 1, rest[cut + 1 :]
            rest = rest[: cut + 1]
    if rest:
        yield 0, rest


def _damaged(path: Path, offset: int, given: str, expected: str) -> RecipeError:
    return RecipeError.single(
        f"{path}: damaged",
        f"{path}, byte {offset}",
        given=given,
        expected=expected,
        fix="`recipe audit` names every fault; take the ledger from a copy, it is never repaired here",
    )
