"""Whether the files of a pool say the same of its documents: lengths, hashes, ids, groups, places.

Hashes tell that a file is the one that was written. What was written wrong, or written over together with its
hash, is told by holding the files against each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.blocks import DIGEST_BYTES, block_digest, raw_bytes
from recipe.pools.card import CARD_NAME
from recipe.pools.finding import Finding
from recipe.pools.lengths import body_lengths
from recipe.pools.pool import Pool
from recipe.pools.table import row_groups
from recipe.pools.unique import Keys

_NO_LENGTHS: NDArray[np.int64] = np.empty(0, np.int64)
_PIECE = 1 << 22
"""Tokens that are hashed together, of documents that are not longer."""
_SHOWN = 8
"""Documents that are named of each fault."""


@dataclass
class _Faults:
    """Findings by fault, the first few of each."""

    table: Path
    erased: NDArray[np.int64]
    """Documents whose tokens were taken away on purpose: their tokens and marks are not looked at."""
    found: dict[str, list[Finding]] = field(default_factory=dict)
    more: dict[str, int] = field(default_factory=dict)

    def note(self, check: str, documents: NDArray[np.int64], told: Callable[[int], tuple[str, str]]) -> None:
        """Documents at fault; ``told`` gives what was expected and what is there."""
        own = self.found.setdefault(check, [])
        if check in ("tokens", "bos", "eos") and len(self.erased):
            documents = np.setdiff1d(documents, self.erased)
        for number in documents.tolist():
            if len(own) < _SHOWN:
                own.append(Finding(check, f"{self.table} document {number}", *told(number)))
            else:
                self.more[check] = self.more.get(check, 0) + 1

    def findings(self) -> list[Finding]:
        """All that is told."""
        rest = [
            Finding(check, str(self.table), "none", f"{count:,} more documents like these")
            for check, count in self.more.items()
        ]
        return [*(one for own in self.found.values() for one in own), *rest]


@dataclass
class _Totals:
    """What the card states of all documents together, counted."""

    body_tokens: int = 0
    max_document_tokens: int = 0
    max_id: int = -1

    def take(self, lengths: NDArray[np.int64], tokens: NDArray[Any] | None = None) -> None:
        """Add documents, or what is stored of them."""
        self.body_tokens += int(lengths.sum())
        self.max_document_tokens = max(self.max_document_tokens, int(lengths.max(initial=0)))
        if tokens is not None and len(tokens):
            self.max_id = max(self.max_id, int(tokens.max()))

    def findings(self, pool: Pool) -> list[Finding]:
        """Where the card says otherwise; the largest id may have been of a document that was erased."""
        card, stored = pool.card, int(pool.offsets[-1])
        most = -1 if card.max_id is None else card.max_id.id
        counted = {
            "body_tokens": (card.body_tokens, self.body_tokens),
            "special_tokens": (card.special_tokens, stored - self.body_tokens),
            "max_document_tokens": (card.max_document_tokens, self.max_document_tokens),
            "max_id": (most, most if len(pool.erased) and self.max_id < most else self.max_id),
        }
        where = str(pool.path / CARD_NAME)
        return [
            Finding("counts", where, f"{name}: {found:,}, as counted", f"{stated:,}")
            for name, (stated, found) in counted.items()
            if stated != found
        ]


def document_findings(
    pool: Pool, tell: Callable[[int, int], None] = lambda done, total: None
) -> list[Finding]:
    """Where the document table, the token files and the boundaries of an own pool do not agree.

    Reads every token once. ``tell`` is called with documents done and their number.

    Raises:
        RecipeError: a file that cannot be opened.
    """
    assert pool.layout.table is not None, pool
    faults = _Faults(pool.layout.table, pool.erased)
    ids, groups, totals = Keys("id"), Keys("group"), _Totals()
    number, before = 0, None
    for rows in row_groups(pool.layout.table):
        number = min(number, pool.num_documents)
        rows = rows.slice(0, pool.num_documents - number)
        if not rows.num_rows:
            break
        numbers = np.arange(number, number + rows.num_rows)
        _check_places(pool, numbers, rows, faults)
        totals.take(rows["tokens"].to_numpy())
        _check_contents(pool, numbers, rows, (faults, totals))
        begins = _unit_begins(pool, numbers)
        _check_groups(numbers, rows, before, (begins, faults))
        ids.take(rows, np.ones(rows.num_rows, np.bool_))
        groups.take(rows, begins)
        before, number = rows.slice(rows.num_rows - 1), number + rows.num_rows
        tell(number, pool.num_documents)
    again = (ids, "id"), (groups, "group")
    return [
        *faults.findings(),
        *totals.findings(pool),
        *_too_large(pool),
        *(f for keys, name in again for f in _twice(pool, keys, name)),
    ]


def _check_places(pool: Pool, numbers: NDArray[np.int64], rows: pa.Table, faults: _Faults) -> None:
    """Part and length of each document, as offsets, marks and leads have them."""
    parts = np.searchsorted(pool.part_documents, numbers, side="right") - 1
    stated = rows["part"].to_numpy()
    off = numbers[stated != parts]
    faults.note("part", off, lambda n: (str(parts[n - numbers[0]]), str(stated[n - numbers[0]])))
    bodies = body_lengths(pool, numbers)
    tokens = rows["tokens"].to_numpy()
    off = numbers[tokens != bodies]
    faults.note(
        "length",
        off,
        lambda n: (f"{bodies[n - numbers[0]]} tokens, as offsets say", f"{tokens[n - numbers[0]]}"),
    )
    for mark, place in (("bos", pool.offsets[numbers]), ("eos", pool.offsets[numbers + 1] - 1)):
        id, stored = getattr(pool, mark), getattr(pool.card, f"{mark}_stored")
        if id is not None and stored == "all":
            off = numbers[pool.token_files.gather(np.asarray(place)) != id]
            faults.note(mark, off, lambda n, id=id: (f"the mark {id}", "another token"))  # type: ignore[misc]


def _check_contents(
    pool: Pool, numbers: NDArray[np.int64], rows: pa.Table, to: tuple[_Faults, _Totals]
) -> None:
    """The hash of each document's body tokens."""
    faults, totals = to
    stated = b"".join(rows["content_hash"].to_pylist())
    found = b"".join(_hashes(pool, numbers, totals))
    both = [np.frombuffer(data, np.uint8).reshape(-1, DIGEST_BYTES) for data in (stated, found)]
    off = numbers[(both[0] != both[1]).any(axis=1)]

    def told(number: int) -> tuple[str, str]:
        place = number - int(numbers[0])
        return tuple(f"tokens with hash {one[place].tobytes().hex()}" for one in both)  # type: ignore[return-value]

    faults.note("tokens", off, told)


def _hashes(pool: Pool, numbers: NDArray[np.int64], totals: _Totals) -> Iterator[bytes]:
    """Of the body of each document, many at a time."""
    fronts, has_eos = pool.fronts(numbers), pool.stored_marks(numbers)[1]
    offsets = np.asarray(pool.offsets[numbers[0] : numbers[-1] + 2])
    begins, ends = offsets[:-1] + fronts, offsets[1:] - has_eos
    first = 0
    while first < len(numbers):
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + _PIECE, side="right")) - 1)
        last = min(last, len(numbers))
        base = int(offsets[first])
        stored = _stretch(pool, base, int(offsets[last]))
        totals.take(_NO_LENGTHS, stored)
        data = raw_bytes(np.ascontiguousarray(stored, "<i4"))
        for begin, end in zip(begins[first:last].tolist(), ends[first:last].tolist(), strict=True):
            yield block_digest(data[4 * (begin - base) : 4 * (end - base)])
        first = last


def _stretch(pool: Pool, start: int, stop: int) -> NDArray[Any]:
    """Stored tokens of a pool, its parts taken as one."""
    pieces = []
    for index, (first, last) in enumerate(zip(pool.part_offsets[:-1], pool.part_offsets[1:], strict=True)):
        if first < stop and start < last:
            low, high = max(start, int(first)) - int(first), min(stop, int(last)) - int(first)
            pieces.append(np.asarray(pool.span(index, low, high)))
    return pieces[0] if len(pieces) == 1 else np.concatenate([*pieces, np.zeros(0, pool.token_dtype)])


def _unit_begins(pool: Pool, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which documents begin a unit."""
    if pool.units is None:
        return np.ones(len(numbers), np.bool_)
    units = np.asarray(pool.units)
    places = np.minimum(np.searchsorted(units, numbers), len(units) - 1)
    found: NDArray[np.bool_] = units[places] == numbers
    return found


def _check_groups(
    numbers: NDArray[np.int64], rows: pa.Table, before: pa.Table | None, to: tuple[NDArray[np.bool_], _Faults]
) -> None:
    """No unit goes on with a document of another group, or of none."""
    begins, faults = to
    joined = pa.concat_tables([rows.slice(0, 0) if before is None else before, rows])
    same = np.zeros(joined.num_rows, np.bool_)
    for name in ("group_int", "group_str"):
        column = joined[name].combine_chunks()
        equal = pc.fill_null(pc.equal(column.slice(1), column.slice(0, len(column) - 1)), False)
        same[1:] |= np.asarray(equal.to_numpy(zero_copy_only=False), np.bool_)
    goes_on = same[joined.num_rows - rows.num_rows :]
    off = numbers[~begins & ~goes_on]
    faults.note("units", off, lambda n: ("a document of the group before it", "another group in its unit"))


def _too_large(pool: Pool) -> list[Finding]:
    """The largest id is below what the card says of the tokenizer."""
    card = pool.card
    most = None if card.max_id is None else card.max_id.id
    if most is None or card.vocab_size is None or most < card.vocab_size:
        return []
    return [Finding("ids", str(pool.path), f"ids below {card.vocab_size}", str(most))]


def _twice(pool: Pool, keys: Keys, name: str) -> list[Finding]:
    table = pool.layout.table
    assert table is not None, pool
    try:
        keys.check(pool.path, lambda: row_groups(table))
    except RecipeError as error:
        return [Finding(name, f"{table} {one.where}", one.expected, str(one.given)) for one in error.problems]
    return []
