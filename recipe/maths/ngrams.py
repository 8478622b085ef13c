"""Stretches of n tokens that two bodies of text share: rolling hashes, a filter, a sorted table.

A hash only proposes: who finds a stretch here compares the tokens themselves before saying so.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.maths.kernels import inlined, kernel

BASE = 0x9E3779B97F4A7C15 | 1
"""Odd, so that every token of a stretch counts modulo 2**64."""
_FILTER_BITS = 16
"""Bits of the filter for each entry of the table, at least."""


class Table(NamedTuple):
    """Hashes looked for.

    ``hashes`` uint64[n], rising, each once; ``entries`` int64[n]: what each stands for, as the caller
    numbered it; ``bits`` uint64[2**k / 64]: the hashes' low k bits that occur; ``salt``: of the hashes.
    """

    hashes: NDArray[np.uint64]
    entries: NDArray[np.int64]
    bits: NDArray[np.uint64]
    salt: int


def table_of(hashes: NDArray[np.uint64], entries: NDArray[np.int64], salt: int = 0) -> Table:
    """A table of hashes; of equal ones the first entry stays.

    >>> table_of(np.array([7, 3, 7], np.uint64), np.arange(3)).entries.tolist()
    [1, 0]
    """
    kept, first = np.unique(hashes, return_index=True)
    size = 64
    while size < _FILTER_BITS * len(kept):
        size *= 2
    bits = np.zeros(size // 64, np.uint64)
    low = kept & np.uint64(size - 1)
    np.bitwise_or.at(bits, (low >> np.uint64(6)).astype(np.int64), np.uint64(1) << (low & np.uint64(63)))
    return Table(kept, entries[first], bits, salt)


@inlined
def mixed(token: int, salt: int) -> np.uint64:
    """A token as 64 well mixed bits (the finaliser of S. Vigna's SplitMix64, 2015)."""
    z = np.uint64(token) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(salt + 1)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inlined
def finished(rolled: np.uint64, size: int) -> np.uint64:
    """The hash of a stretch from its rolling sum."""
    z = rolled ^ np.uint64(size)
    z = (z ^ (z >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    return z ^ (z >> np.uint64(32))


@kernel
def power_of(size: int) -> np.uint64:
    """The base to this power: what a token that a stretch leaves behind weighs in its rolling sum."""
    power = np.uint64(1)
    for _ in range(size):
        power *= np.uint64(BASE)
    return power


def window_hashes(tokens: NDArray[Any], size: int, salt: int = 0) -> NDArray[np.uint64]:
    """uint64[max(0, len(tokens) - size + 1)]: the hash of every stretch of ``size`` tokens, under a salt.

    Source:
        R. M. Karp and M. O. Rabin, *Efficient randomized pattern-matching algorithms*, 1987.

    >>> same = window_hashes(np.array([5, 1, 2, 3, 5, 1, 2], np.int32), 3)
    >>> len(same), bool(same[0] == same[4]), len(set(same.tolist()))
    (5, True, 4)
    """
    return _window_hashes(tokens, size, salt)


@kernel
def _window_hashes(tokens: NDArray[Any], size: int, salt: int) -> NDArray[np.uint64]:
    out = np.empty(max(0, len(tokens) - size + 1), np.uint64)
    rolled, power = np.uint64(0), power_of(size)
    for i in range(len(tokens)):
        rolled = rolled * np.uint64(BASE) + mixed(tokens[i], salt)
        if i >= size:
            rolled -= power * mixed(tokens[i - size], salt)
        if i + 1 >= size:
            out[i + 1 - size] = finished(rolled, size)
    return out


@inlined
def _look(table: Table, wanted: np.uint64) -> int:
    """The place of a hash in a table, or -1."""
    low = wanted & np.uint64(len(table.bits) * 64 - 1)
    if table.bits[low >> np.uint64(6)] >> (low & np.uint64(63)) & np.uint64(1) == np.uint64(0):
        return -1
    at = int(np.searchsorted(table.hashes, wanted))
    return at if at < len(table.hashes) and table.hashes[at] == wanted else -1


class Places(NamedTuple):
    """Where a table's hashes were found: ``place`` the first token, ``entry`` what was found there."""

    place: NDArray[np.int64]
    entry: NDArray[np.int64]


def find_windows(
    tokens: NDArray[Any], bodies: NDArray[np.int64], size: int, table: Table, *, at_once: int = 1 << 16
) -> Places:
    """Stretches of ``size`` tokens of some bodies whose hash is in a table.

    Args:
        tokens: of a file.
        bodies: int64[n, 2]: where each body starts and stops there; no stretch crosses from one to the next.
        size: tokens of a stretch, at least 1.
        table: hashes of stretches of as many tokens.
        at_once: places that are gathered before memory for more is taken.

    Returns:
        the places, rising.
    """
    found: list[NDArray[np.int64]] = []
    body, token = 0, -1
    while body < len(bodies):
        out = np.empty((at_once, 2), np.int64)
        body, token, used = _find_windows(tokens, bodies, size, table, (body, token), out)
        found.append(out[:used])
    whole = np.concatenate(found) if found else np.empty((0, 2), np.int64)
    return Places(whole[:, 0], whole[:, 1])


@kernel
def _find_windows(  # noqa: PLR0913 - a compiled loop takes its state as plain arguments
    tokens: NDArray[Any],
    bodies: NDArray[np.int64],
    size: int,
    table: Table,
    begin: tuple[int, int],
    out: NDArray[np.int64],
) -> tuple[int, int, int]:
    """From a body and the first stretch of it not looked at (-1: its first) until ``out`` is full."""
    used, power = 0, power_of(size)
    for body in range(begin[0], len(bodies)):
        start, stop = bodies[body, 0], bodies[body, 1]
        if body == begin[0] and begin[1] >= 0:
            start = begin[1]
        rolled = np.uint64(0)
        for i in range(start, stop):
            rolled = rolled * np.uint64(BASE) + mixed(tokens[i], table.salt)
            if i - start >= size:
                rolled -= power * mixed(tokens[i - size], table.salt)
            first = i + 1 - size
            if first >= start:
                at = _look(table, finished(rolled, size))
                if at >= 0:
                    if used == len(out):
                        return body, first, used
                    out[used, 0], out[used, 1] = first, table.entries[at]
                    used += 1
    return len(bodies), -1, used


def body_hashes(tokens: NDArray[Any], bodies: NDArray[np.int64], salt: int = 0) -> NDArray[np.uint64]:
    """uint64[n]: the hash of every whole body, under a salt.

    >>> some = np.array([1, 2, 9, 1, 2], np.uint16)
    >>> of = body_hashes(some, np.array([[0, 2], [3, 5], [1, 3]]))
    >>> bool(of[0] == of[1]), bool(of[0] == of[2])
    (True, False)
    """
    return _body_hashes(tokens, bodies, salt)


@kernel
def _body_hashes(tokens: NDArray[Any], bodies: NDArray[np.int64], salt: int) -> NDArray[np.uint64]:
    out = np.empty(len(bodies), np.uint64)
    for body in range(len(bodies)):
        rolled = np.uint64(0)
        for i in range(bodies[body, 0], bodies[body, 1]):
            rolled = rolled * np.uint64(BASE) + mixed(tokens[i], salt)
        out[body] = finished(rolled, bodies[body, 1] - bodies[body, 0])
    return out
