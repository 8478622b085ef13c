"""Keyed draws: numbers that depend on a key and two indices alone, like dice thrown once for each pair.

In counter mode over the 64-bit finaliser of SplitMix64 (G. Steele, D. Lea and C. Flood, 2014), as the keyed
orders of :mod:`recipe.maths.order`; all arithmetic is modulo 2**64.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

_MASK = (1 << 64) - 1


def draws(
    order_key: int, pairs: tuple[NDArray[np.int64], NDArray[np.int64]], number: int
) -> NDArray[np.uint64]:
    """uint64[number, n]: the draws of n pairs of indices.

    >>> draws(7, (np.array([3]), np.array([5])), 2)[:, 0].tolist() == draw(7, (3, 5), 2)
    True
    """
    first, second = (index.astype(np.uint64) for index in pairs)
    state = _mixed(_mixed(np.uint64(order_key) ^ _mixed(first)) ^ second)
    counters = np.arange(number, dtype=np.uint64)[:, None]
    return _mixed(state + counters)


def draw(order_key: int, pair: tuple[int, int], number: int) -> list[int]:
    """The draws of one pair, in plain integers: each in ``0..2**64 - 1``."""
    state = _mix(_mix(order_key ^ _mix(pair[0])) ^ pair[1])
    return [_mix((state + counter) & _MASK) for counter in range(number)]


def below(drawn: NDArray[np.uint64], share: Fraction) -> NDArray[np.bool_]:
    """bool[n]: whether each draw falls in the given share of all there are: draw / 2**64 < share, exactly.

    >>> below(np.array([0, 2**63 - 1, 2**63], np.uint64), Fraction(1, 2)).tolist()
    [True, True, False]
    """
    limit = ceil(share * (1 << 64))
    if limit > _MASK:
        return np.ones(drawn.shape, np.bool_)
    return drawn < np.uint64(limit)


def _mix(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = x ^ (x >> np.uint64(31))
    return mixed
