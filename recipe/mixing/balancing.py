"""Rows of one global batch change places, so that every micro-batch has about the same work.

Attention inside a document costs the square of its length: with packed rows, micro-batches of equal
positions differ. Which rows a batch has, and so its sums and its gradient, stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from recipe.mixing.dealing import check_dealing


@dataclass(frozen=True, slots=True)
class Balance:
    """How even the micro-batches of a step are: the largest sum of squared lengths over the mean."""

    scheduled: Fraction
    """With rows dealt in schedule order."""
    dealt: Fraction
    """As the rows are dealt; never more."""


def balanced_order(costs: NDArray[np.int64], size: int, micro_batch: int | None = None) -> NDArray[np.int64]:
    """The order in which the rows of a batch are dealt, so that micro-batches cost about the same.

    A pure function of whole numbers: every rank computes it alone. Where the largest micro-batch, and with
    equal ones the largest rank, is not smaller than in the order of the schedule, it is that.

    Args:
        costs: int64[batch], not negative: the sum of squared lengths of every row, in schedule order.
        size: data-parallel ranks.
        micro_batch: rows of a micro-batch; None: each rank's rows are one.

    Returns:
        int64[batch]: place p, dealt as ever, has row ``order[p]`` of the schedule. Micro-batches that are
        processed at the same time cost about the same; within one, rows keep the order of the schedule.

    Raises:
        RecipeError: the batch cannot be dealt evenly.

    Source:
        The balanced largest-first differencing method: N. Karmarkar and R. Karp, *The differencing method
        of set partitioning*, 1982, with equally many numbers in each part as in L.-H. Tsai, *Asymptotic
        analysis of an algorithm for balanced parallel processor scheduling*, SIAM J. Comput. 21, 1992, and
        W. Michiels et al., *Performance ratios for the differencing method applied to the balanced
        number partitioning problem*, STACS 2003.

    >>> balanced_order(np.array([9, 8, 2, 1]), 2).tolist()
    [0, 3, 1, 2]
    """
    check_dealing((len(costs),), size, micro_batch)
    each = len(costs) // size if micro_batch is None else micro_batch
    scheduled = np.arange(len(costs))
    dealt = _dealt(_parts(costs, len(costs) // each), costs, size)
    return dealt if _most(costs[dealt], size, each) < _most(costs, size, each) else scheduled


def balance(costs: NDArray[np.int64], order: NDArray[np.int64], num_parts: int) -> Fraction:
    """The largest sum of costs of a part over the mean; 1 where all parts cost the same.

    >>> balance(np.array([9, 8, 2, 1]), np.array([0, 1, 2, 3]), 2)
    Fraction(17, 10)
    """
    sums = costs[order].reshape(num_parts, -1).sum(axis=1)
    total = int(sums.sum())
    return Fraction(int(sums.max()) * num_parts, total) if total else Fraction(1)


def _most(costs: NDArray[np.int64], size: int, each: int) -> tuple[int, int]:
    """The largest sum of a micro-batch, then of a rank; of rows in the order of places."""
    sums = costs.reshape(-1, size, each).sum(axis=2)
    return int(sums.max()), int(sums.sum(axis=0).max())


def _parts(costs: NDArray[np.int64], num_parts: int) -> NDArray[np.int64]:
    """int64[num_parts, rows of a part]: rows in parts of about equal costs, rising in each part.

    Starts from layers of ``num_parts`` rows each, most expensive first; the two layers that are the least
    even are joined, the largest sums of one to the smallest of the other, until one is left.
    """
    by_cost = np.argsort(-costs, kind="stable").reshape(-1, num_parts)
    layers = {number: (costs[rows], rows[:, None]) for number, rows in enumerate(by_cost)}
    heap = [(int(sums[-1] - sums[0]), number) for number, (sums, _) in layers.items()]
    heapify(heap)
    following = len(layers)
    while len(heap) > 1:
        (one, rows), (other, more) = (layers.pop(heappop(heap)[1]) for _ in range(2))
        sums = one + other[::-1]
        joined = np.concatenate([rows, more[::-1]], axis=1)
        order = np.argsort(-sums, kind="stable")
        layers[following] = (sums[order], joined[order])
        heappush(heap, (int(sums[order[-1]] - sums[order[0]]), following))
        following += 1
    [(_, parts)] = layers.values()
    return np.sort(parts, axis=1)


def _dealt(bins: NDArray[np.int64], costs: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Parts in the order of places: those of similar cost at the same time, ranks changing ends."""
    order = np.argsort(-costs[bins].sum(axis=1), kind="stable").reshape(-1, size)
    order[1::2] = order[1::2, ::-1]
    placed: NDArray[np.int64] = bins[order.reshape(-1)].reshape(-1)
    return placed
