"""The schedule of a leg, compiled: the rule of :mod:`recipe.maths.deadlines`, many sequences at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.maths.deadlines import Race, choose, serve
from recipe.maths.kernels import kernel


class Queue(NamedTuple):
    """What every pool has ready: sequences ``next[p]..stop[p]`` of its open block.

    ``counted`` holds the counted tokens of all pools' open blocks end to end; pool p's sequence i
    is at ``begin[p] + i``. ``next`` is advanced in place.
    """

    counted: NDArray[np.int64]
    begin: NDArray[np.int64]
    next: NDArray[np.int64]
    stop: NDArray[np.int64]


class Served(NamedTuple):
    """Sequences scheduled: per sequence its pool and its index in the pool's block.

    ``waiting`` is the pool that was chosen and had nothing ready, or -1; ``counted`` their sum.
    """

    pools: NDArray[np.int64]
    indices: NDArray[np.int64]
    counted: int
    waiting: int


def fits_int64(race: Race) -> bool:
    """Whether every intermediate number of the compiled rule stays inside 64 bits.

    Debts stay within one context of zero, times the denominator; fractions are compared without
    products.
    """
    return 8 * race.scale * race.denominator * race.context < 1 << 62


def schedule(race: Race, debts: list[int], queue: Queue, num: int) -> tuple[Served, list[int]]:
    """Schedule up to ``num`` sequences; stops early when the chosen pool has nothing ready.

    Args:
        race: shares and context of the leg.
        debts: per pool, as in :mod:`recipe.maths.deadlines`.
        queue: what is ready; its ``next`` is advanced.
        num: sequences wanted.

    Returns:
        what was scheduled, and the debts after it. The choice of a waiting pool is not applied: with
        its next block ready, the same call makes it again.
    """
    if not fits_int64(race):
        return _schedule_exactly(race, debts, queue, num)
    pools, indices = np.empty(num, np.int64), np.empty(num, np.int64)
    now = np.array(debts, np.int64)
    constants = (race.denominator, race.context, race.scale, race.head_start)
    parts = np.array(race.parts, np.int64)
    done, counted, waiting = _schedule(parts, constants, now, queue, (pools, indices))
    return Served(pools[:done], indices[:done], int(counted), int(waiting)), now.tolist()


def _schedule_exactly(race: Race, debts: list[int], queue: Queue, num: int) -> tuple[Served, list[int]]:
    """The same on Python integers, for shares whose denominators are out of 64 bits' reach."""
    pools: list[int] = []
    indices: list[int] = []
    counted, waiting = 0, -1
    for _ in range(num):
        pool = choose(race, debts)
        index = int(queue.next[pool])
        if index == queue.stop[pool]:
            waiting = pool
            break
        tokens = int(queue.counted[queue.begin[pool] + index])
        debts = serve(race, debts, pool, tokens)
        queue.next[pool] += 1
        counted += tokens
        pools.append(pool)
        indices.append(index)
    return Served(np.array(pools, np.int64), np.array(indices, np.int64), counted, waiting), debts


@kernel
def _is_less(a: int, b: int, c: int, d: int) -> bool:
    """Whether a/b < c/d, for a, c >= 0 and b, d > 0: whole parts, then the rests turned over (Euclid)."""
    while True:
        whole, other = a // b, c // d
        if whole != other:
            return whole < other
        a -= whole * b
        c -= other * d
        if a == 0 or c == 0:
            return a == 0 and c > 0
        a, b, c, d = d, c, b, a


@kernel
def _schedule(
    parts: NDArray[np.int64],
    constants: tuple[int, int, int, int],
    debts: NDArray[np.int64],
    queue: Queue,
    out: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> tuple[int, int, int]:
    denominator, context, scale, head_start = constants
    pools, indices = out
    counted = 0
    for i in range(len(pools)):
        best = -1
        best_whole = 0
        best_rest = 0
        for p in range(len(parts)):
            part = parts[p]
            if part == 0 or scale * (debts[p] + context * (denominator - part)) > head_start:
                continue
            deadline = scale * debts[p] + head_start
            whole = deadline // part
            if best >= 0 and whole > best_whole:
                continue
            rest = deadline - whole * part
            if best < 0 or whole < best_whole or _is_less(rest, part, best_rest, parts[best]):
                best, best_whole, best_rest = p, whole, rest
        index = queue.next[best]
        if index == queue.stop[best]:
            return i, counted, best
        tokens = queue.counted[queue.begin[best] + index]
        for p in range(len(parts)):
            debts[p] -= parts[p] * tokens
        debts[best] += denominator * tokens
        queue.next[best] = index + 1
        counted += tokens
        pools[i] = best
        indices[i] = index
    return len(pools), counted, -1
