"""The documents of a pool in stored order, a few at a time: tokens as they are stored, rows of the table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recipe.pools.pool import Pool
from recipe.pools.table import ROW_GROUP, SCHEMA, row_groups

STRETCH_TOKENS = 1 << 20
"""Tokens that are looked at together, unless one document is longer."""
KEPT = ("id", "group", "tags", "source")
_COLUMNS = ("id_int", "id_str", "group_int", "group_str", "tags", "source")

Kind = Literal["none", "int", "text", "both"]


@dataclass(frozen=True, kw_only=True)
class Documents:
    """Documents that stand one after another in a part."""

    lengths: NDArray[np.int64]
    """int64[n]: stored tokens of each, marks included."""
    tokens: NDArray[Any]
    """Stored tokens of all of them; mapped where none was left out."""
    rows: pa.Table
    """What the pool's table says of each: ``id_int``, ``id_str``, ``group_int``, ``group_str``, ``tags``,
    ``source``; the last two are JSON."""

    def arrays(self) -> list[NDArray[Any]]:
        """The tokens of each document."""
        ends = np.cumsum(self.lengths).tolist()
        return [self.tokens[end - length : end] for end, length in zip(ends, self.lengths, strict=True)]


def documents_of(pool: Pool, most_tokens: int = STRETCH_TOKENS) -> Iterator[Documents]:
    """All documents that a pool or view holds, in stored order; without those that were erased.

    Args:
        pool: any that is open.
        most_tokens: of a stretch, unless one document has more.
    """
    first = 0
    for rows in _rows(pool):
        stop = first + rows.num_rows
        held = kept(pool, np.arange(first, stop))
        for start, end, part in _stretches(pool, first, stop, most_tokens):
            chosen = held[start - first : end - first]
            if chosen.any():
                yield _documents(pool, (start, end, part), chosen, rows.slice(start - first, end - start))
        first = stop


def kept(pool: Pool, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of these documents are the pool's and have their tokens."""
    held: NDArray[np.bool_] = pool.holds(numbers)
    return held & ~np.isin(numbers, pool.erased) if len(pool.erased) else held


def _documents(
    pool: Pool, stretch: tuple[int, int, int], chosen: NDArray[np.bool_], rows: pa.Table
) -> Documents:
    start, end, part = stretch
    edges = pool.offsets[start : end + 1] - pool.part_offsets[part]
    tokens, lengths = pool.span(part, int(edges[0]), int(edges[-1])), np.diff(edges)
    if chosen.all():
        return Documents(lengths=lengths, tokens=tokens, rows=rows)
    spans = np.column_stack([edges[:-1], edges[1:]])[chosen] - edges[0]
    return Documents(
        lengths=lengths[chosen],
        tokens=np.concatenate([tokens[begin:stop] for begin, stop in spans.tolist()]),
        rows=rows.filter(pa.array(chosen)),
    )


def _stretches(pool: Pool, first: int, stop: int, most: int) -> Iterator[tuple[int, int, int]]:
    """Documents ``start`` to ``end - 1`` of a part, with so many tokens at most, or a single one."""
    offsets, start = pool.offsets, first
    while start < stop:
        part = int(np.searchsorted(pool.part_documents, start, side="right")) - 1
        last = min(stop, int(pool.part_documents[part + 1]))
        fitting = int(np.searchsorted(offsets[start : last + 1], offsets[start] + most, side="right")) - 1
        end = start + max(1, fitting)
        yield start, end, part
        start = end


def _rows(pool: Pool) -> Iterator[pa.Table]:
    """The document table a few rows at a time; of files without one, the numbers as ids."""
    if pool.layout.table is not None:
        yield from row_groups(pool.layout.table_file(), list(_COLUMNS))
        return
    for start in range(0, pool.num_numbers, ROW_GROUP):
        numbers = pa.array(range(start, min(start + ROW_GROUP, pool.num_numbers)), pa.int64())
        empty = {name: pa.nulls(len(numbers), SCHEMA.field(name).type) for name in _COLUMNS[1:]}
        yield pa.table({"id_int": numbers, **empty})


def kinds_of(pool: Pool) -> tuple[Kind, Kind]:
    """What ids are, and what groups are: whole numbers, texts, some of each, or none at all."""
    if pool.layout.table is None:
        return "int", "none"
    given = dict.fromkeys(_COLUMNS[:4], 0)
    for rows in row_groups(pool.layout.table_file(), list(given)):
        for name in given:
            given[name] += rows.num_rows - rows[name].null_count
    kinds: dict[tuple[bool, bool], Kind] = {
        (False, False): "none", (True, False): "int", (False, True): "text", (True, True): "both",
    }  # fmt: skip
    ids, groups = ((bool(given[f"{name}_int"]), bool(given[f"{name}_str"])) for name in ("id", "group"))
    return kinds[ids], kinds[groups]


def table_of(rows: pa.Table, kinds: Sequence[Kind]) -> pa.Table:
    """``id``, ``group``, ``tags``, ``source``; where some are numbers and some texts, all are texts."""
    columns = {name: _column(rows, name, kind) for name, kind in zip(KEPT, kinds, strict=False)}
    return pa.table(columns | {"tags": rows["tags"], "source": rows["source"]})


def _column(rows: pa.Table, name: str, kind: Kind) -> Any:
    if kind == "both":
        return pc.coalesce(rows[f"{name}_str"], rows[f"{name}_int"].cast(pa.string()))
    return rows[f"{name}_int" if kind == "int" else f"{name}_str"]
