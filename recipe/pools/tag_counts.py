"""The most frequent values of every tag of a pool: exact numbers, in memory that does not grow with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from recipe.pools.pool import Pool
from recipe.pools.table import row_groups
from recipe.pools.tags import tag_values

CANDIDATES = 1 << 14
"""Values of a tag that are remembered at once, at least; twice as many at most."""
MOST_KEYS = 1 << 10
"""Tags that are told apart; the others are named in a number."""


@dataclass(frozen=True, slots=True)
class Value:
    """Documents in which a tag has one value."""

    value: str
    """A text as it is, anything else as JSON; a list sorted, each value once."""
    documents: int
    tokens: int
    """Their body tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tag:
    """One tag over a pool."""

    documents: int
    """That have it."""
    tokens: int
    values: int | None
    """Different ones; None where there are more than are remembered."""
    below: int
    """Values that are not among ``top`` have at most so many documents each."""
    top: tuple[Value, ...]


@dataclass(slots=True)
class _Counter:
    """Documents by value; of many values those that may be frequent."""

    documents: int = 0
    tokens: int = 0
    found: dict[str, list[int]] = field(default_factory=dict)
    missed: int = 0
    """A value that is not in ``found`` has at most so many documents; those in it may lack as many."""

    def add(self, value: str, documents: int, tokens: int) -> None:
        self.documents += documents
        self.tokens += tokens
        counts = self.found.setdefault(value, [0, 0])
        counts[0] += documents
        counts[1] += tokens
        if len(self.found) >= 2 * CANDIDATES:
            self._prune()

    def _prune(self) -> None:
        """Keep the most frequent; what the first that goes has, all lose (Misra and Gries, in batches)."""
        sizes = sorted((counts[0] for counts in self.found.values()), reverse=True)
        cut = sizes[CANDIDATES]
        self.missed += cut
        self.found = {v: [c[0] - cut, c[1]] for v, c in self.found.items() if c[0] > cut}


def tag_counts(pool: Pool, most: int) -> dict[str, Tag]:
    """Every tag of a pool's documents with its ``most`` most frequent values.

    Tags with up to ``CANDIDATES`` values are counted in one reading of the document table. Of others the
    candidates are found first, every value with more than one in ``CANDIDATES`` documents among them, and
    counted in a second reading.

    Source:
        J. Misra and D. Gries, "Finding repeated elements", Science of Computer Programming 2, 1982; in
        batches as in P. K. Agarwal et al., "Mergeable summaries", PODS 2012.
    """
    counters: dict[str, _Counter] = {}
    for key, value, documents, tokens in _said(pool):
        if key in counters or len(counters) < MOST_KEYS:
            counters.setdefault(key, _Counter()).add(value, documents, tokens)
    many = {key: dict.fromkeys(one.found, (0, 0)) for key, one in counters.items() if one.missed}
    if many:
        for key, value, documents, tokens in _said(pool):
            if key in many and value in many[key]:
                before = many[key][value]
                many[key][value] = (before[0] + documents, before[1] + tokens)
    return {key: _tag(one, many.get(key), most) for key, one in sorted(counters.items())}


def _tag(counter: _Counter, counted: Mapping[str, tuple[int, int]] | None, most: int) -> Tag:
    found = {v: (c[0], c[1]) for v, c in counter.found.items()} if counted is None else counted
    order = sorted(found, key=lambda value: (-found[value][0], value))
    top = [value for value in order[:most] if found[value][0] > counter.missed]
    others = [counter.missed, *(found[value][0] for value in order[len(top) : len(top) + 1])]
    return Tag(
        documents=counter.documents,
        tokens=counter.tokens,
        values=len(found) if counted is None else None,
        below=max(others),
        top=tuple(Value(value, *found[value]) for value in top),
    )


def _said(pool: Pool) -> Iterator[tuple[str, str, int, int]]:
    """Tag, value, documents and tokens, a row group of the document table at a time."""
    if pool.layout.table is None:
        return
    first = 0
    for rows in row_groups(pool.layout.table, ["tags", "tokens"]):
        numbers = np.arange(first, first + rows.num_rows)
        first += rows.num_rows
        texts = rows["tags"].combine_chunks().dictionary_encode()
        codes = np.asarray(pc.fill_null(texts.indices, -1)) + 1
        held = pool.holds(numbers)
        tokens = rows["tokens"].to_numpy() * held
        documents = _sums(codes, held.astype(np.int64), len(texts.dictionary))
        sums = _sums(codes, tokens, len(texts.dictionary))
        for code, text in enumerate(texts.dictionary.to_pylist(), start=1):
            if documents[code]:
                for key, value in tag_values(text):
                    yield key, value, int(documents[code]), int(sums[code])


def _sums(codes: NDArray[Any], weights: NDArray[Any], most: int) -> NDArray[np.int64]:
    """Whole numbers added up by code; a row group's are exact as floats."""
    return np.bincount(codes, weights, most + 1).astype(np.int64)
