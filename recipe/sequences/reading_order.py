"""Which documents a block holds: a pool's reading order, epoch by epoch.

An epoch reads N units in extents of e. Both are the pool's, unless the pool has grown since the epoch
began (``BlockPlace.prefix``): then the epoch goes on over the units that were there before, in their order.
Place i of an epoch holds unit ``units_at(i; N, e)`` under ``key(seed, epoch, "order", name)``; block b
holds places ``b * block_units`` up to ``(b + 1) * block_units``.

A simulated budget (``BlockPlace.fraction`` f) shrinks the pool to the first M = ceil(N * f) places of
epoch 0's order: a keyed random subset, the same for every mixture under one seed. Epoch 0 reads these
places as they are. Epoch k > 0 reads at place i what stands at place ``units_at(i; M, d)``, under
``key(seed, k, "order", name)``, of epoch 0's order: the subset again, in another order. d is e, but 1
where M < 64 * e, as small pools have extents of one unit.

The name is the pool's, or the one it had before it was renamed.

A view of a folder has N units of its own, which it numbers in their order in the folder; everything above is
said of these numbers. Of a unit that it holds in part the other documents are left out of the block.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from recipe.maths.order import key, place_of, units_at, units_in
from recipe.pools import Pool

FEWEST_EXTENTS = 64
"""A shrunk pool with fewer is permuted unit by unit."""


@dataclass(frozen=True, slots=True)
class BlockPlace:
    """Which block: a function of these alone."""

    seed: int
    epoch: int
    block: int
    block_units: int
    name: str | None = None
    """What orders are keyed on; None: the pool's name."""
    prefix: tuple[int, int] | None = None
    """Units of the epoch and of an extent, where the pool has grown since the epoch began."""
    fraction: Fraction | None = None
    """Share of the pool that every epoch reads; None: all of it."""


def epoch_units(pool: Pool, prefix: tuple[int, int] | None = None, fraction: Fraction | None = None) -> int:
    """Units that one epoch of a pool reads."""
    units = pool.num_units if prefix is None else prefix[0]
    return units if fraction is None else ceil(units * fraction)


def num_blocks(
    pool: Pool, block_units: int, prefix: tuple[int, int] | None = None, fraction: Fraction | None = None
) -> int:
    """Blocks of one epoch of a pool."""
    return -(-epoch_units(pool, prefix, fraction) // block_units)


def order_name(pool: Pool, place: BlockPlace) -> str:
    """What the pool's orders are keyed on."""
    return pool.name if place.name is None else place.name


def block_documents(pool: Pool, place: BlockPlace) -> NDArray[np.int64]:
    """int64[n]: the documents of a block, in reading order; the documents of a unit stay adjacent."""
    units = _block_units(pool, place)
    if pool.members is not None:
        units = pool.members[units]
    if pool.units is None:
        return units
    firsts: NDArray[np.int64] = np.asarray(pool.units[units])
    sizes = np.asarray(pool.units[units + 1]) - firsts
    inside = np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    documents: NDArray[np.int64] = np.repeat(firsts, sizes) + inside
    return documents if pool.members is None else documents[pool.holds(documents)]


def first_of_unit(pool: Pool, unit: int) -> int:
    """The first document, by number, of a unit or of any after it; their end behind the last one."""
    if pool.members is not None:
        if unit == len(pool.members):
            return pool.num_numbers
        unit = int(pool.members[unit])
    return unit if pool.units is None else int(pool.units[unit])


def _sizes(pool: Pool, place: BlockPlace) -> tuple[int, int, int]:
    """Units of the pool and of an extent, and units that the epoch reads of them."""
    units, extent = place.prefix or (pool.num_units, pool.extent_units)
    return units, extent, epoch_units(pool, place.prefix, place.fraction)


def _key(pool: Pool, place: BlockPlace, epoch: int) -> int:
    return key(place.seed, epoch, "order", order_name(pool, place))


def _block_units(pool: Pool, place: BlockPlace) -> NDArray[np.int64]:
    units, extent, read = _sizes(pool, place)
    start = place.block * place.block_units
    stop = min(start + place.block_units, read)
    order = _key(pool, place, place.epoch)
    if place.fraction is None or place.epoch == 0:
        return units_at(start, stop, units, extent, order)
    places = units_at(start, stop, read, _within(read, extent), order)
    return units_in(places, units, extent, _key(pool, place, 0))


def _within(read: int, extent: int) -> int:
    """Places that stay together in later epochs of a shrunk pool."""
    return extent if read >= FEWEST_EXTENTS * extent else 1


def place_of_unit(pool: Pool, place: BlockPlace, unit: int) -> int | None:
    """The place of a unit in the order of ``place.epoch``: the inverse; its block is that // ``block_units``.

    None: the epoch does not read the unit, or the pool is a view that does not hold it.
    """
    units, extent, read = _sizes(pool, place)
    if pool.members is not None:
        at = int(np.searchsorted(pool.members, unit))
        if at == len(pool.members) or pool.members[at] != unit:
            return None
        unit = at
    if unit >= units:
        return None
    if place.fraction is None:
        return place_of(unit, units, extent, _key(pool, place, place.epoch))
    first = place_of(unit, units, extent, _key(pool, place, 0))
    if first >= read or place.epoch == 0:
        return first if first < read else None
    return place_of(first, read, _within(read, extent), _key(pool, place, place.epoch))
