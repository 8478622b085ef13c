"""How often a pool was read, by the tokens that came of it."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from recipe.config import Recipe
from recipe.mixing.simulated import part_of

PASSED_OVER = frozenset({"unread", "skipped"})
"""Reasons of dropped tokens that nobody read: a change of the pool, or a skip, went past them."""


def epochs_read(recipe: Recipe, stock: int, fresh: int, dropped: Mapping[str, int]) -> Fraction | None:
    """Tokens served fresh, and those dropped while they were read, over an epoch's stock; None of none.

    A place in the reading is another quantity (`recipe.mixing.outlook`): what was passed over is behind it.

    Args:
        recipe: whose ``simulate_budget`` makes an epoch a part of the stock.
        stock: body tokens of the pool as it is now.
        fresh: tokens served that are no overlap.
        dropped: tokens not served, by reason; those of `PASSED_OVER` were not read.
    """
    read = fresh + sum(count for reason, count in dropped.items() if reason not in PASSED_OVER)
    whole = part_of(recipe, stock)
    return Fraction(read, whole) if whole else None
