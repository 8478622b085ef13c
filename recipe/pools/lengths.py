"""Lengths of documents in body tokens, and how many documents there are of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from recipe.pools.pool import Pool


def body_lengths(pool: Pool, documents: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n]: body tokens of documents, by number."""
    stored = np.asarray(pool.offsets[documents + 1]) - np.asarray(pool.offsets[documents])
    lengths: NDArray[np.int64] = stored - pool.fronts(documents) - pool.stored_marks(documents)[1]
    return lengths


def length_bits(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n]: bits of lengths below 2**53: 0 of length 0, k of 2**(k-1) .. 2**k - 1.

    >>> length_bits(np.array([0, 1, 2, 3, 4])).tolist()
    [0, 1, 2, 2, 3]
    """
    return np.frexp(lengths.astype(np.float64))[1].astype(np.int64)


def histogram(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Documents by bits of their length.

    >>> histogram(np.array([0, 1, 2, 3, 4])).tolist()
    [1, 1, 2, 1]
    """
    return np.bincount(length_bits(lengths)).astype(np.int64)


def added(first: NDArray[np.int64], second: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum of two histograms of any sizes."""
    total = np.zeros(max(len(first), len(second)), dtype=np.int64)
    total[: len(first)] += first
    total[: len(second)] += second
    return total
