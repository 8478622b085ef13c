"""Rows of one kind, found by their text: only lines that may be such rows are read as rows.

The text of a row is its canonical JSON, so that a row of a kind holds ``"kind":"…"``; a line that
holds it elsewhere is read and passed over.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recipe.run.ledger import Tail, parse_line, read_tail
from recipe.run.row import Row


def last_of_kind(path: Path, kind: str) -> Row | None:
    """The last row of a kind, discarded or not; None where there is none.

    Raises:
        RecipeError: a line that holds the kind is no row.
    """
    tail, mark = read_tail(path), _mark(kind)
    with _text(path, tail) as data:
        found = data.rfind(mark, 0, tail.end)
        while found >= 0:
            start = data.rfind(b"\n", 0, found) + 1
            row = Row(start, parse_line(path, start, _line(data, start, tail)))
            if row.kind == kind:
                return row
            found = data.rfind(mark, 0, start)
    return None


def rows_of_kind(path: Path, kind: str, since: Row | None = None) -> Iterator[Row]:
    """The rows of a kind after another row, or all of them; discarded or not.

    Raises:
        RecipeError: a line that holds the kind is no row.
    """
    tail, mark = read_tail(path), _mark(kind)
    with _text(path, tail) as data:
        found = data.find(mark, 0 if since is None else since.offset, tail.end)
        while found >= 0:
            start = data.rfind(b"\n", 0, found) + 1
            line = _line(data, start, tail)
            row = Row(start, parse_line(path, start, line))
            if row.kind == kind and (since is None or row.number > since.number):
                yield row
            found = data.find(mark, start + len(line), tail.end)


def _mark(kind: str) -> bytes:
    return f'"kind":"{kind}"'.encode()


def _line(data: mmap.mmap, start: int, tail: Tail) -> bytes:
    end = data.find(b"\n", start, tail.end)
    return data[start : end if end >= 0 else tail.end]


@contextmanager
def _text(path: Path, tail: Tail) -> Iterator[mmap.mmap]:
    """The bytes of a ledger; it held whole rows a moment ago."""
    assert tail.end, path
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data
