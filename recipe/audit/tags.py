"""What was read of a pool by the tags of its documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recipe.audit.spread import Counted
from recipe.pools import Pool
from recipe.pools.table import row_groups
from recipe.pools.tags import tag_values

MOST_VALUES = 50
"""Values of a tag that are told apart, those with most tokens; the others are added up."""
MOST_TEXTS = 1 << 20
"""Pools with more different sets of tags than this are not counted by tag: they are names, not attributes."""


@dataclass(slots=True)
class Tagged:
    """Documents with one value of a tag."""

    documents: int = 0
    distinct: int = 0
    """Of them, those that were read."""
    tokens: int = 0
    covered: int = 0
    """Of these, tokens that were served fresh at least once."""

    def add(self, numbers: tuple[int, ...]) -> None:
        """More documents."""
        self.documents += numbers[0]
        self.distinct += numbers[1]
        self.tokens += numbers[2]
        self.covered += numbers[3]


Tags = dict[str, dict[str, Tagged]]
"""By tag and value."""


def has_tags(pool: Pool) -> bool:
    """Whether any document of the pool has tags, as its document table says; False without one."""
    return any(True for _ in _by_text(pool, None))


def by_tags(pool: Pool, counted: Counted | None) -> Tags | None:
    """Of every value of every tag; {} for a pool without tags, or without its document table.

    ``counted``: what was read of each document; None: every token of all of them. The answer is None
    where there are too many sets of tags.
    """
    found: Tags = {}
    for met, (text, numbers) in enumerate(_by_text(pool, counted)):
        if met == MOST_TEXTS:
            return None
        for key, value in tag_values(text):
            found.setdefault(key, {}).setdefault(value, Tagged()).add(numbers)
    return {key: _shortened(values) for key, values in sorted(found.items())}


def _by_text(pool: Pool, counted: Counted | None) -> Iterator[tuple[str, tuple[int, ...]]]:
    """For every text of tags: documents, those read, tokens, those covered; a row group at a time."""
    path, first = pool.layout.table, 0
    if path is None or not path.is_file() or not path.stat().st_size:
        return
    for rows in row_groups(path, ["tags", "tokens"]):
        here = slice(first, first + rows.num_rows)
        first = here.stop
        texts = rows["tags"].combine_chunks().dictionary_encode()
        codes = np.asarray(pa.compute.fill_null(texts.indices, -1)) + 1
        tokens = rows["tokens"].to_numpy()
        read = tokens > 0 if counted is None else counted.times[here] > 0
        covered = tokens if counted is None else counted.covered[here]
        held = pool.holds(np.arange(here.start, here.stop))
        weights: tuple[NDArray[Any], ...] = (held, read & held, tokens * held, covered * held)
        sums = [np.bincount(codes, weight, len(texts.dictionary) + 1).astype(np.int64) for weight in weights]
        for code, text in enumerate(texts.dictionary.to_pylist(), start=1):
            yield text, tuple(int(column[code]) for column in sums)


def _shortened(values: Mapping[str, Tagged]) -> dict[str, Tagged]:
    order = sorted(values, key=lambda value: (-values[value].tokens, value))
    kept = {value: values[value] for value in order[:MOST_VALUES]}
    if len(order) > MOST_VALUES:
        others = Tagged()
        for value in order[MOST_VALUES:]:
            others.add(tuple(asdict(values[value]).values()))
        kept[f"({len(order) - MOST_VALUES:,} others)"] = others
    return kept
