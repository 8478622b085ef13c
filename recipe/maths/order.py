"""Keyed, invertible order: who comes where, in constant memory.

A balanced Feistel network over the smallest even number of bits that holds the range, walked
until it lands inside (M. Luby and C. Rackoff, 1988; J. Black and P. Rogaway, "Ciphers with
arbitrary finite domains", 2002). Round function: the 64-bit finaliser of SplitMix64 (G. Steele,
D. Lea and C. Flood, 2014). All arithmetic is ours, modulo 2**64, so an order never depends on a
library's generator; ``ORDER_VERSION`` changes when any order would.
"""

from __future__ import annotations

import hashlib
import struct

import numpy as np
from numpy.typing import NDArray

from recipe.maths.kernels import inlined, kernel

ORDER_VERSION = 1
"""Bumped whenever any order, shuffle or key would come out differently."""

ROUNDS = 8
_LANES = 512
_MASK = (1 << 64) - 1
_DOMAINS = ("order", "shuffle", "offset", "density", "separators", "transform")


def key(seed: int, epoch: int, domain: str, pool: str, *indices: int) -> int:
    """A 64-bit key: hash of base seed, epoch seed, domain, pool name and indices.

    Args:
        seed: the recipe's base seed; in ``0..2**63-1``.
        epoch: reading of the pool, from 0; the epoch seed is ``seed + epoch``.
        domain: what the key is for: order, shuffle, offset, density, separators or transform.
        pool: the pool's name.
        indices: further numbers, such as the block.

    Raises:
        ValueError: an argument is out of its range.

    >>> key(1, 1, "order", "web") == key(2, 0, "order", "web")
    False
    """
    if not 0 <= seed < 1 << 63 or epoch < 0 or domain not in _DOMAINS:
        raise ValueError(f"seed {seed}, epoch {epoch}, domain {domain!r}")
    name = pool.encode()
    numbers = [seed, seed + epoch, *indices]
    message = struct.pack(f"<{len(numbers)}Q", *numbers) + f"{domain}\0{len(name)}\0".encode() + name
    person = f"recipe-order{ORDER_VERSION}".encode()
    return int.from_bytes(hashlib.blake2b(message, digest_size=8, person=person).digest(), "little")


def half_bits(n: int) -> int:
    """Bits of one half of the network for a range of ``n``."""
    return (max(1, (n - 1).bit_length()) + 1) // 2


def _mix(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def round_keys(order_key: int) -> NDArray[np.uint64]:
    """uint64[ROUNDS]: the keys of the rounds, drawn from the order's key."""
    return np.array([_mix((order_key + _mix(i)) & _MASK) for i in range(ROUNDS)], dtype=np.uint64)


def permute(index: int, n: int, order_key: int) -> int:
    """What stands at place ``index`` of the keyed order of ``0..n-1`` (plain integers).

    Raises:
        ValueError: the index is outside ``0..n-1``.

    >>> sorted(permute(i, 10, 7) for i in range(10)) == list(range(10))
    True
    """
    return _walk(index, n, [int(k) for k in round_keys(order_key)])


def invert(value: int, n: int, order_key: int) -> int:
    """The place at which ``value`` stands: ``permute(invert(v)) == v``.

    >>> [permute(invert(v, 10, 7), 10, 7) for v in range(10)]
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    return _walk(value, n, [int(k) for k in round_keys(order_key)], inverse=True)


def _walk(x: int, n: int, keys: list[int], *, inverse: bool = False) -> int:
    if not 0 <= x < n:
        raise ValueError(f"{x} is outside 0..{n - 1}")
    half = half_bits(n)
    low = (1 << half) - 1
    while True:
        left, right = x >> half, x & low
        if inverse:
            for k in reversed(keys):
                left, right = right ^ (_mix(left ^ k) & low), left
        else:
            for k in keys:
                left, right = right, left ^ (_mix(right ^ k) & low)
        x = left << half | right
        if x < n:
            return x


@inlined
def _mix64(x: np.uint64) -> np.uint64:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@inlined
def _rounds(
    left: NDArray[np.uint64], right: NDArray[np.uint64], low: np.uint64, keys: NDArray[np.uint64]
) -> None:
    """All rounds over many values; a loop over values inside, so that it becomes vector instructions."""
    for k in keys:
        for i in range(len(left)):
            half = right[i]
            right[i] = left[i] ^ (_mix64(half ^ k) & low)
            left[i] = half


@kernel
def _permute_places(
    places: NDArray[np.int64], n: int, half: int, keys: NDArray[np.uint64]
) -> NDArray[np.int64]:
    out = np.empty(len(places), np.int64)
    shift = np.uint64(half)
    low = (np.uint64(1) << shift) - np.uint64(1)
    values, left, right = np.empty((3, _LANES), np.uint64)
    at = np.empty(_LANES, np.int64)
    for first in range(0, len(places), _LANES):
        walking = min(_LANES, len(places) - first)
        for i in range(walking):
            values[i] = np.uint64(places[first + i])
            at[i] = first + i
        while walking > 0:
            for i in range(walking):
                left[i] = values[i] >> shift
                right[i] = values[i] & low
            _rounds(left[:walking], right[:walking], low, keys)
            outside = 0  # those that have to walk on move to the front
            for i in range(walking):
                x = (left[i] << shift) | right[i]
                out[at[i]] = np.int64(x)
                values[outside] = x
                at[outside] = at[i]
                outside += x >= np.uint64(n)
            walking = outside
    return out


def permute_places(places: NDArray[np.int64], n: int, order_key: int) -> NDArray[np.int64]:
    """int64[len(places)]: what stands at some places of the keyed order of ``0..n-1``.

    Raises:
        ValueError: a place is outside ``0..n-1``.

    >>> permute_places(np.array([4, 2]), 10, 7).tolist() == [permute(4, 10, 7), permute(2, 10, 7)]
    True
    """
    if len(places) and not 0 <= int(places.min()) <= int(places.max()) < n:
        raise ValueError(f"{places.min()}..{places.max()} is not inside 0..{n - 1}")
    return _permute_places(places, n, half_bits(n), round_keys(order_key))


def permute_range(start: int, stop: int, n: int, order_key: int) -> NDArray[np.int64]:
    """int64[stop - start]: what stands at places ``start..stop-1`` of the keyed order of ``0..n-1``.

    Raises:
        ValueError: the range is not inside ``0..n``.

    >>> permute_range(2, 5, 10, 7).tolist() == [permute(i, 10, 7) for i in range(2, 5)]
    True
    """
    if not 0 <= start <= stop <= n:
        raise ValueError(f"{start}..{stop} is not inside 0..{n}")
    return _permute_places(np.arange(start, stop, dtype=np.int64), n, half_bits(n), round_keys(order_key))


def units_at(start: int, stop: int, num_units: int, extent_units: int, order_key: int) -> NDArray[np.int64]:
    """int64[stop - start]: stored numbers of the units at places ``start..stop-1`` of the reading order.

    ``extent_units`` consecutive units are read together; the extents are permuted. The last extent
    may be short: it stands where it falls, and later units move up.

    >>> units_at(0, 10, 10, 4, 3).tolist()
    [4, 5, 6, 7, 8, 9, 0, 1, 2, 3]
    """
    if not 0 <= start <= stop <= num_units:
        raise ValueError(f"{start}..{stop} is not inside 0..{num_units}")
    if extent_units == 1 or start == stop:
        return permute_range(start, stop, num_units, order_key)
    extent, inside = _extents_of(np.arange(start, stop, dtype=np.int64), num_units, extent_units, order_key)
    first = int(extent[0])
    num_extents = -(-num_units // extent_units)
    extents = permute_range(first, int(extent[-1]) + 1, num_extents, order_key)
    return extents[extent - first] * extent_units + inside


def units_in(
    places: NDArray[np.int64], num_units: int, extent_units: int, order_key: int
) -> NDArray[np.int64]:
    """int64[len(places)]: stored numbers of the units at any places of the reading order.

    >>> units_in(np.array([9, 0, 5]), 10, 4, 3).tolist()
    [3, 4, 9]
    """
    if extent_units == 1:
        return permute_places(places, num_units, order_key)
    extent, inside = _extents_of(places, num_units, extent_units, order_key)
    found, at = np.unique(extent, return_inverse=True)
    return permute_places(found, -(-num_units // extent_units), order_key)[at] * extent_units + inside


def _extents_of(
    places: NDArray[np.int64], num_units: int, extent_units: int, order_key: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Places of the extents that some places lie in, and where in them; units behind a short one move up."""
    num_extents = -(-num_units // extent_units)
    gap = num_extents * extent_units - num_units
    short = invert(num_extents - 1, num_extents, order_key)
    moved = np.where(places >= (short + 1) * extent_units - gap, places + gap, places)
    return moved // extent_units, moved % extent_units


def place_of(unit: int, num_units: int, extent_units: int, order_key: int) -> int:
    """The place of a stored unit in the reading order: the inverse of :func:`units_at`.

    >>> [place_of(u, 10, 4, 3) for u in units_at(0, 10, 10, 4, 3).tolist()]
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]
    """
    num_extents = -(-num_units // extent_units)
    extent, inside = divmod(unit, extent_units)
    place = invert(extent, num_extents, order_key)
    short = invert(num_extents - 1, num_extents, order_key)
    gap = num_extents * extent_units - num_units if place > short else 0
    return place * extent_units + inside - gap
