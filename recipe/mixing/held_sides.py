"""Pools that were split off to be measured, and are trained on."""

from __future__ import annotations

from collections.abc import Mapping

from recipe.config import Recipe
from recipe.config.drawing import drawing_stages
from recipe.pools import Pool
from recipe.pools.versions import held_out_side


def held_side_warnings(recipe: Recipe, pools: Mapping[str, Pool]) -> list[str]:
    """A sentence for each pool that a stage draws from though its card says it is a held-out side."""
    return [
        f"pool {name!r} is the side {side!r} of a split, which is held out: a model that reads it cannot be "
        "measured on it. Take it out of the quotas, or name it under evaluation.pools instead"
        for name, pool in pools.items()
        if (side := held_out_side(pool.card.source)) is not None and drawing_stages(recipe, name)
    ]
