"""Pools as a run reads them: whole, or shrunk so that a short run repeats data as the full one will.

With ``simulate_budget`` every epoch of a pool is a part of it (:mod:`recipe.sequences.reading_order`): as
much of the pool as the run is of the full one. Stocks and readings are those of that part.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from recipe.config import Recipe
from recipe.pools import Pool
from recipe.sequences.pieces import measure
from recipe.sequences.reading_order import BlockPlace, block_documents, epoch_units, num_blocks

EXACT_UNITS = 1 << 20
"""Units whose lengths are added up; of more, the tokens are what they are on average."""
_PIECE = 1 << 15


def read_units(recipe: Recipe, pool: Pool) -> int:
    """Units that one epoch of a pool reads."""
    return epoch_units(pool, None, recipe.simulated_fraction)


def read_stock(recipe: Recipe, pool: Pool) -> int:
    """Body tokens that one epoch of a pool reads."""
    fraction = recipe.simulated_fraction
    if fraction is None:
        return pool.stock
    units = read_units(recipe, pool)
    if units > EXACT_UNITS:
        return pool.stock * units // pool.num_units
    place = BlockPlace(recipe.seed, 0, 0, _PIECE, recipe.order_name(pool.name), None, fraction)
    pieces = (replace(place, block=block) for block in range(num_blocks(pool, _PIECE, None, fraction)))
    return sum(int(measure(pool, block_documents(pool, piece)).tokens.sum()) for piece in pieces)


def declared_stock(recipe: Recipe, pool_name: str) -> int | None:
    """The stock that a recipe declares for a pool, as much of it as an epoch reads."""
    stock = recipe.pools[pool_name].stock
    return None if stock is None else part_of(recipe, stock)


def part_of(recipe: Recipe, stock: int) -> int:
    """As much of a stock as an epoch reads, by the fraction alone."""
    fraction = recipe.simulated_fraction
    return stock if fraction is None else ceil(stock * fraction)
