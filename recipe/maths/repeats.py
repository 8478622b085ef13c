"""Stretches of tokens that stand earlier in the same unit: rolling hashes propose, tokens decide."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.maths.kernels import inlined, kernel
from recipe.maths.ngrams import BASE, finished, mixed, power_of


def find_repeats(
    tokens: NDArray[Any], bodies: NDArray[np.int64], units: NDArray[np.int64], size: int
) -> NDArray[np.int64]:
    """Spans of tokens that repeat what stands earlier in their unit.

    A stretch of ``size`` tokens of one body repeats if the same tokens begin at an earlier place of a body of
    the same unit; the two may overlap. Hashes only say where to compare: no span rests on them.

    Args:
        tokens: of a file.
        bodies: int64[n, 2]: where the documents of the units start and stop there, in order.
        units: int64[m + 1]: first body of every unit, then n.
        size: tokens of a stretch, at least 1.

    Returns:
        int64[k, 2]: the union of all stretches that repeat, as the fewest spans; rising, disjoint, each in
        one body.

    Source:
        R. M. Karp and M. O. Rabin, *Efficient randomized pattern-matching algorithms*, 1987.

    >>> some = np.array([1, 2, 3, 4, 9, 1, 2, 3, 4, 2, 3], np.int32)
    >>> find_repeats(some, np.array([[0, 5], [5, 11]]), np.array([0, 2]), 3).tolist()
    [[5, 9]]
    """
    if size < 1:
        raise ValueError(f"stretches have at least 1 token, not {size}")
    return _find_repeats(tokens, bodies, units, size)


@inlined
def _begins(body: tuple[int, int], size: int) -> int:
    """Places of a body at which a stretch begins."""
    return max(0, body[1] - body[0] - size + 1)


@inlined
def _same(tokens: Any, one: int, two: int, size: int) -> bool:
    k = 0
    while k < size and tokens[one + k] == tokens[two + k]:
        k += 1
    return k == size


@inlined
def _place(tokens: Any, first: int, size: int, hashed: np.uint64, slots: Any, mask: np.uint64) -> int:  # noqa: PLR0913 - a compiled loop takes its state as plain arguments
    """Where the stretch at ``first`` stands already; -1, and it is noted, where it is new."""
    at = hashed & mask
    while slots[at] >= 0:
        if _same(tokens, slots[at], first, size):
            return int(slots[at])
        at = (at + np.uint64(1)) & mask
    slots[at] = first
    return -1


@inlined
def _stop_of(bodies: Any, place: int, first: int, last: int) -> int:
    """Where the body ends that holds a token; bodies are ``first`` to ``last``."""
    while first < last:
        middle = (first + last + 1) // 2
        if bodies[middle, 0] <= place:
            first = middle
        else:
            last = middle - 1
    return int(bodies[first, 1])


@kernel
def _room(bodies: NDArray[np.int64], units: NDArray[np.int64], size: int) -> int:
    """Slots of the largest unit: twice its stretches, as a power of two."""
    most = 1
    for unit in range(len(units) - 1):
        count = 0
        for body in range(units[unit], units[unit + 1]):
            count += _begins((bodies[body, 0], bodies[body, 1]), size)
        most = max(most, count)
    room = 2
    while room < 2 * most:
        room *= 2
    return room


@inlined
def _with_room(out: Any, used: int) -> Any:
    """The same rows, with room for one more."""
    if used < len(out):
        return out
    more = np.empty((2 * used, 2), np.int64)
    more[:used] = out
    return more


@kernel
def _find_repeats(
    tokens: NDArray[Any], bodies: NDArray[np.int64], units: NDArray[np.int64], size: int
) -> NDArray[np.int64]:
    out, used = np.empty((16, 2), np.int64), 0
    slots, power = np.empty(_room(bodies, units, size), np.int64), power_of(size)
    for unit in range(len(units) - 1):
        low, high = units[unit], units[unit + 1]
        room = _room(bodies, units[unit : unit + 2], size)
        slots[:room] = -1
        mask = np.uint64(room - 1)
        for body in range(low, high):
            start, stop = bodies[body, 0], bodies[body, 1]
            rolled, earlier, limit, covered = np.uint64(0), -1, 0, -1
            for i in range(start, stop):
                rolled = rolled * np.uint64(BASE) + mixed(tokens[i], 0)
                if i - start >= size:
                    rolled -= power * mixed(tokens[i - size], 0)
                first = i + 1 - size
                if first < start:
                    continue
                # what follows a stretch that stands earlier is most often what followed it there
                if earlier >= 0 and earlier + size < limit and tokens[earlier + size] == tokens[i]:
                    earlier += 1
                else:
                    earlier = _place(tokens, first, size, finished(rolled, size), slots, mask)
                    if earlier >= 0:
                        limit = _stop_of(bodies, earlier, low, high - 1)
                if earlier < 0:
                    continue
                if first > covered:
                    out, used = _with_room(out, used), used + 1
                    out[used - 1, 0] = first
                covered = i + 1
                out[used - 1, 1] = covered
    return out[:used]
