"""Pieces into rows: best fit, decreasing, exactly and fast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recipe.maths.kernels import kernel


def padded(sizes: NDArray[np.int64], multiple: int) -> NDArray[np.int64]:
    """Positions that pieces take where each is padded to a multiple.

    >>> padded(np.array([1, 4, 5]), 4).tolist()
    [4, 4, 8]
    """
    return sizes + -sizes % multiple


def best_fit_reference(
    sizes: Sequence[int], alone: Sequence[bool], context: int, grain: int = 1
) -> list[int]:
    """The rule in plain words: what :func:`best_fit` must return.

    Longer pieces first, equal ones in the order given; each into the fullest row it fits, of equally full
    ones the oldest, else into a new row. A piece that is alone shares its row with nobody. Lengths and rooms
    are compared in whole multiples of ``grain``, lengths rounded up where it is asked whether they fit.

    >>> best_fit_reference([5, 3, 6, 2], [False] * 4, 8)
    [1, 1, 0, 0]
    """
    rows: list[int] = [0] * len(sizes)
    free: list[int] = []
    for i in sorted(range(len(sizes)), key=lambda i: -(sizes[i] // grain)):
        needed = -(-sizes[i] // grain)
        fits = [r for r, room in enumerate(free) if room // grain >= needed] if not alone[i] else []
        if fits:
            row = min(fits, key=lambda r: (free[r] // grain, r))
            free[row] -= sizes[i]
        else:
            row = len(free)
            free.append(-1 if alone[i] else context - sizes[i])
        rows[i] = row
    return rows


def best_fit(
    sizes: NDArray[np.int64], alone: NDArray[np.bool_], context: int, grain: int = 1
) -> NDArray[np.int64]:
    """Row of every piece, by best-fit-decreasing.

    Args:
        sizes: positions of each piece, marks included; in ``1..context``.
        alone: pieces that take a row of their own.
        context: positions of a row.
        grain: sizes, and rooms of rows, are told apart by their multiples of so many positions; those with
            the same are taken in the order given, so that neighbours in a row change with the order. A row
            that has less room than this is full.

    Returns:
        int64[num_pieces]: rows are numbered in the order in which they were opened.

    Source:
        D. S. Johnson, *Near-optimal bin packing algorithms*, 1973; for packing of training
        sequences: H. Ding et al., *Fewer truncations improve language modeling*, 2024.

    >>> best_fit(np.array([5, 3, 6, 2]), np.zeros(4, bool), 8).tolist()
    [1, 1, 0, 0]
    """
    order = _longest_first(sizes if grain == 1 else sizes // grain, context)
    return _best_fit(sizes, alone, (context, grain), order)


@kernel
def _merge(left: NDArray[np.int32], right: NDArray[np.int32], a: int, b: int) -> int:
    """Skew heaps of rows (D. Sleator and R. Tarjan, 1986): the root is the oldest row."""
    if a < 0:
        return b
    if b < 0:
        return a
    if b < a:
        a, b = b, a
    root = a
    while True:
        rest = right[a]
        right[a] = left[a]
        if rest < 0:
            left[a] = b
            return root
        if b < rest:
            rest, b = b, rest
        left[a] = rest
        a = rest


@kernel
def _smallest_room(tree: NDArray[np.uint8], leaves: int, size: int) -> int:
    """The smallest room of at least ``size`` that some row has, or -1."""
    node = size + leaves
    if tree[node]:
        return size
    while node > 1:
        if node % 2 == 0 and tree[node + 1]:
            node += 1
            while node < leaves:
                node = 2 * node if tree[2 * node] else 2 * node + 1
            return node - leaves
        node //= 2
    return -1


@kernel
def _longest_first(sizes: NDArray[np.int64], context: int) -> NDArray[np.int64]:
    """A stable counting sort."""
    begin = np.zeros(context + 2, np.int64)
    for size in sizes:
        begin[context - size + 1] += 1
    for s in range(context + 1):
        begin[s + 1] += begin[s]
    order = np.empty(len(sizes), np.int64)
    for i in range(len(sizes)):
        slot = context - sizes[i]
        order[begin[slot]] = i
        begin[slot] += 1
    return order


@kernel
def _best_fit(
    sizes: NDArray[np.int64], alone: NDArray[np.bool_], of: tuple[int, int], order: NDArray[np.int64]
) -> NDArray[np.int64]:
    context, grain = of
    leaves = 1
    while leaves < context // grain + 1:
        leaves *= 2
    tree = np.zeros(2 * leaves, np.uint8)
    heap = np.full(context // grain + 1, -1, np.int32)
    free = np.empty(len(sizes), np.int64)
    left = np.full(len(sizes), -1, np.int32)
    right = np.full(len(sizes), -1, np.int32)
    rows = np.empty(len(sizes), np.int64)
    opened = 0
    for i in order:
        size = sizes[i]
        needed = (size + grain - 1) // grain
        room = -1 if alone[i] or needed > context // grain else _smallest_room(tree, leaves, needed)
        if room < 0:
            row = opened
            opened += 1
            free[row] = context
        else:
            row = heap[room]
            rest = _merge(left, right, left[row], right[row])
            heap[room] = rest
            if rest < 0:
                node = room + leaves
                tree[node] = 0
                while node > 1 and not tree[node ^ 1]:
                    node //= 2
                    tree[node] = 0
        rows[i] = row
        free[row] -= size
        room = free[row] // grain
        if room > 0 and not alone[i]:
            left[row] = -1
            right[row] = -1
            heap[room] = _merge(left, right, heap[room], row)
            node = room + leaves
            while node >= 1 and not tree[node]:
                tree[node] = 1
                node //= 2
    return rows
