"""Twins: the same documents, tokenised otherwise.

Two pools are twins if they hold documents of the same ids, in the same groups, in the same order. Read under
the same name with the same seed, they give the same units in the same order wherever their extents agree
(pools below 64 Mi tokens have extents of one unit): the order is keyed on the name and permutes units, and
looks at no token. Where blocks end, and rows, depends on lengths, which differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.lengths import length_bits
from recipe.pools.pool import Pool
from recipe.pools.table import either, regrouped, row_groups

_COLUMNS = ("id_int", "id_str", "group_int", "group_str", "tokens")
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Lengths:
    """Documents whose length in the first pool is in one class, and their tokens in both."""

    least: int
    most: int
    documents: int
    tokens: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Twins:
    """Two pools held against each other, document by document."""

    documents: tuple[int, int]
    tokens: tuple[int, int]
    """Body tokens."""
    tokenizers: tuple[str | None, str | None]
    extent_units: tuple[int, int]
    differences: tuple[tuple[int, object, object], ...]
    """The first documents at which they differ: number, id and group here, id and group there."""
    num_different: int
    lengths: tuple[Lengths, ...]
    """Of twins: by powers of two of the tokens in the first pool."""

    @property
    def are_twins(self) -> bool:
        """Whether they hold the same documents, in the same groups and order."""
        return not self.num_different

    @property
    def is_same_order(self) -> bool:
        """Whether, under one name and seed, both are read unit by unit in the same order."""
        return self.are_twins and self.extent_units[0] == self.extent_units[1]

    def to_plain(self) -> dict[str, Any]:
        """Plain values for ``recipe pools twins --json``."""
        return {
            "twins": self.are_twins,
            "same_order": self.is_same_order,
            "documents": list(self.documents),
            "tokens": list(self.tokens),
            "tokenizers": list(self.tokenizers),
            "extent_units": list(self.extent_units),
            "different": self.num_different,
            "differences": [list(one) for one in self.differences],
            "lengths": [
                {"least": one.least, "most": one.most, "documents": one.documents, "tokens": list(one.tokens)}
                for one in self.lengths
            ],
        }


def compare_twins(one: Pool, other: Pool) -> Twins:
    """Hold two own pools against each other; their tables are read once, in bounded memory.

    Raises:
        RecipeError: a pool is imported: nobody knows what its documents are called.
    """
    for pool in (one, other):
        if pool.layout.table is None:
            raise RecipeError.single(
                f"pool {pool.name}", str(pool.path), given="token files without a card",
                expected="a pool of our own: twins are known by the ids of their documents",
                fix="prepare both from the same texts (recipe prepare)",
            )  # fmt: skip
    differences: list[tuple[int, object, object]] = []
    num_different = number = 0
    sums = np.zeros((65, 3), np.int64)
    for left, right in zip_longest(_rows(one), _rows(other)):
        count = max(0 if rows is None else rows.num_rows for rows in (left, right))
        pairs = list(zip_longest(_names(left), _names(right)))
        faults = [k for k, (a, b) in enumerate(pairs) if a != b]
        num_different += len(faults)
        differences += [(number + k, *pairs[k]) for k in faults[: _SHOWN - len(differences)]]
        if left is not None and right is not None:
            sums += _sums(_tokens(left), _tokens(right))
        number += count
    return Twins(
        documents=(one.num_documents, other.num_documents),
        tokens=(one.stock, other.stock),
        tokenizers=(one.card.tokenizer, other.card.tokenizer),
        extent_units=(one.extent_units, other.extent_units),
        differences=tuple(differences),
        num_different=num_different,
        lengths=tuple(
            Lengths(0 if bits == 0 else 1 << (bits - 1), (1 << bits) - 1, documents, (first, second))
            for bits, (documents, first, second) in enumerate(sums.tolist())
            if documents and not num_different
        ),
    )


def _rows(pool: Pool) -> Iterator[pa.Table]:
    return regrouped(row_groups(pool.layout.table_file(), _COLUMNS))


def _names(rows: pa.Table | None) -> list[tuple[object, object]]:
    return [] if rows is None else list(zip(either(rows, "id"), either(rows, "group"), strict=True))


def _tokens(rows: pa.Table) -> NDArray[np.int64]:
    return np.asarray(rows["tokens"].to_numpy(), np.int64)


def _sums(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[65, 3]: documents, and tokens in both, by bits of the length in the first."""
    count = min(len(left), len(right))
    left, right = left[:count], right[:count]
    bits = length_bits(left)
    sums = np.zeros((65, 3), np.int64)
    np.add.at(sums, bits, np.stack([np.ones(count, np.int64), left, right], axis=1))
    return sums
