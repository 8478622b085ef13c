"""The ledger: JSON lines, each with its own hash and the hash of the line before.

Rows are only ever added. The bytes of a line are the canonical JSON of its row, so any other byte
is a fault. A last line without line end is an append that was cut short: it counts for nothing
and is cut off by the next write. It is never mistaken for a damaged row: a line that begins with
one whole JSON value was complete, and if it is not what the chain demands it is reported. A last row
that ends a chunk early is part of such an append too: only a turn ends chunks early, and it follows
in the same append (:func:`recipe.run.row.is_cut`).

No place in the file is trusted: a row is taken only if its own hash is right and the line before it
is the row that it names, so that rows which were dropped, swapped or repeated are found wherever
they are used. Opening a run checks the whole chain of a ledger of up to ``CHAIN_BYTES``; of a larger
one its last ``CHAIN_ROWS`` rows and what is used of the rest, at the same cost for any length.
`recipe audit` always checks all of it.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from recipe.errors import RecipeError
from recipe.run.canonical import Plain, digest
from recipe.run.row import Row, is_aside, is_cut
from recipe.run.shapes import fault_of

CHAIN_BYTES = 8 << 20
"""Size up to which the whole chain is checked when a run is opened."""
CHAIN_ROWS = 64
"""Rows checked at the end of a larger ledger."""
_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Tail:
    """How a ledger ends."""

    last: Row
    end: int
    """Bytes up to the end of the last whole row; what follows is an unfinished append."""
    unended: bool
    """The last whole row lacks its line end."""
    size: int
    """Bytes of the file."""


def check_chain(path: Path) -> None:
    """Check every row of a ledger of up to ``CHAIN_BYTES``; of a larger one the last ``CHAIN_ROWS``.

    Raises:
        RecipeError: a row is not what its hash says, or does not follow the one before.
    """
    with _opened(path) as file:
        is_small = os.fstat(file.fileno()).st_size <= CHAIN_BYTES
    rows = read_rows(path) if is_small else islice(rows_backwards(path, read_tail(path).end), CHAIN_ROWS)
    deque(rows, maxlen=0)


def read_tail(path: Path) -> Tail:
    """The last whole row of a ledger, at the same cost for any length.

    Raises:
        RecipeError: the last line is no row of a ledger or does not follow the one before, or there is none.
    """
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        tail = _tail(path, file.fileno(), size, size)
        if tail is not None and is_cut(tail.last):
            tail = _tail(path, file.fileno(), tail.last.offset, size)
    if tail is not None:
        return tail
    raise RecipeError.single(
        f"{path}: no rows",
        str(path),
        given=f"{size} bytes without a whole row",
        expected="a ledger, which begins with the row of the run's creation",
        fix="take the run folder from a copy; `recipe audit` names what is left of the record",
    )


def _tail(path: Path, handle: int, end: int, size: int) -> Tail | None:
    """How the first ``end`` bytes of a ledger end; None where they hold no whole row."""
    lines = _lines_backwards(path, handle, end)
    for offset, line in lines:
        ended = line.endswith(b"\n")
        if ended or _begins_whole(line):
            last = _row(path, offset, line)
            _check_before(path, last, next(lines, None))
            return Tail(last, offset + len(line), unended=not ended, size=size)
    return None


def last_of_course(path: Path, tail: Tail) -> Row:
    """The last row of a ledger that does more than say something."""
    if not is_aside(tail.last):
        return tail.last
    return next(row for row in rows_backwards(path, tail.end) if not is_aside(row))


def rows_backwards(path: Path, before: int) -> Iterator[Row]:
    """The rows whose lines end at or before byte ``before``, last first.

    Raises:
        RecipeError: a row is not what its hash says, or not the one that its successor names.
    """
    after: Row | None = None
    with _opened(path) as file:
        for offset, line in _lines_backwards(path, file.fileno(), before):
            row = _row(path, offset, line)
            if after is not None:
                _check_follows(path, after, row)
            yield row
            after = row
    if after is not None:
        _check_follows(path, after, None)


def read_rows(path: Path) -> Iterator[Row]:
    """All rows that count as written, first to last, with the chain checked.

    Raises:
        RecipeError: a row is not what its hash says, or does not follow the one before.
    """
    before: Row | None = None
    offset = 0
    with _opened(path) as file:
        for line in file:
            if not line.endswith(b"\n") and not _begins_whole(line):
                return
            row = _row(path, offset, line)
            _check_follows(path, row, before)
            if before is not None and is_cut(before):
                yield before
            if not is_cut(row):
                yield row
            before = row
            offset += len(line)


def row_at(path: Path, offset: int) -> Row:
    """The row whose line begins at a byte.

    Raises:
        RecipeError: no line begins there, or it is no row, or not the one after the line before it.
    """
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if not 0 <= offset < size:
            raise damaged(path, size, "the end of the file", f"a row at byte {offset}")
        file.seek(offset)
        row = _row(path, offset, file.readline())
        _check_before(path, row, next(_lines_backwards(path, file.fileno(), offset), None))
    return row


def parse_line(path: Path, offset: int, line: bytes) -> Plain:
    """A line as a row.

    Raises:
        RecipeError: it is not the canonical text of a row that its hash covers.
    """
    try:
        row = json.loads(line)
        mark = f'"hash":"{row["hash"]}",'.encode()
        # Over the bytes as they are: what is left without the hash is the text it was made from.
        whole = line.count(mark) == 1 and digest(line.replace(mark, b"")) == row["hash"]
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise damaged(
            path, offset, line[:80].decode(errors="replace"), "a row whose hash is that of its text"
        )
    if (key := fault_of(row)) is not None:
        given = f"{row.get('kind')!s:.20} row {row.get('row')!s:.20}: {key} {row.get(key)!s:.60}"
        raise damaged(path, offset, given, f"a {key} as this version writes it")
    return dict(row)


def damaged(path: Path, offset: int, given: str, expected: str) -> RecipeError:
    """The error that a ledger is not what was written, at a byte."""
    return RecipeError.single(
        f"{path}: damaged",
        f"{path}, byte {offset}",
        given=given,
        expected=expected,
        fix="`recipe audit` names every fault; take the ledger from a copy, it is never repaired here",
    )


def _row(path: Path, offset: int, line: bytes) -> Row:
    return Row(offset, parse_line(path, offset, line.removesuffix(b"\n")))


def _check_before(path: Path, row: Row, line: tuple[int, bytes] | None) -> None:
    """Raise RecipeError unless ``line`` (its offset and bytes; None: nothing) is the row before ``row``."""
    if line is not None and not line[1].endswith(b"\n"):
        raise damaged(path, row.offset, f"row {row.number} within a line", "a row as a line of its own")
    _check_follows(path, row, None if line is None else _row(path, *line))


def _check_follows(path: Path, row: Row, before: Row | None) -> None:
    number, previous = (0, None) if before is None else (before.number + 1, before.data["hash"])
    if row.number != number or row.data.get("previous") != previous:
        given = f"row {row.number} after {'nothing' if before is None else f'row {before.number}'}"
        raise damaged(path, row.offset, given, f"row {number}, chained to the one before")
    if (row.kind == "created") is not (before is None):
        raise damaged(path, row.offset, f"a {row.kind} row as row {number}", "creation as the first row only")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise RecipeError.single(
            f"{path}: not readable",
            str(path),
            given=error.strerror or error,
            expected="the run's ledger, a file",
            fix="take the run folder from a copy; `recipe audit` names what is left of the record",
        ) from error
    with file:
        yield file


def _begins_whole(line: bytes) -> bool:
    """Whether a line without end holds a whole JSON value: then it was no append cut short."""
    try:
        json.JSONDecoder().raw_decode(line.decode(errors="replace"))
    except (ValueError, RecursionError):
        return False
    return True


def _lines_backwards(path: Path, handle: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Lines before byte ``end`` with their line ends, last first."""
    rest = b""
    start = end
    while start:
        size = min(_BLOCK, start)
        start -= size
        block = os.pread(handle, size, start)
        if len(block) != size:
            raise damaged(path, start + len(block), "the end of the file", f"at least {end} bytes")
        rest = block + rest
        while (cut := rest.rfind(b"\n", 0, len(rest) - 1)) >= 0:
            yield start + cut + 1, rest[cut + 1 :]
            rest = rest[: cut + 1]
    if rest:
        yield 0, rest
