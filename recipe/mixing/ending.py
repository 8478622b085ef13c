"""Why a run ended before its planned length."""

from __future__ import annotations

from collections.abc import Mapping

from recipe.config import Recipe
from recipe.mixing.curriculum import Curriculum
from recipe.mixing.simulated import part_of
from recipe.mixing.snapshot import Snapshot


def ending(recipe: Recipe, curriculum: Curriculum, stock: Mapping[str, int], end: Snapshot) -> str:
    """The pool that was due and had nothing left, and the policy in force.

    A snapshot does not say which it was, but it had less left than the next step may take. Where
    that holds for several pools, all are named.

    Args:
        recipe: the run's.
        curriculum: the recipe's.
        stock: body tokens of the pools.
        end: where the run ended.
    """
    stretch = curriculum.stretch(end.step)
    shares = recipe.shares(list(recipe.stages)[end.stage])
    left: dict[str, int] = {}
    for index, (name, pool) in enumerate(zip(recipe.pools, end.pools, strict=True)):
        if shares[name] and recipe.exhaustion(name) != "repeat" and index not in end.left:
            given = pool.body - pool.overlap + sum(pool.dropped.values())
            left[name] = recipe.epochs_allowed(name) * part_of(recipe, stock[name]) - given
    names = [name for name, tokens in left.items() if tokens <= stretch.step_positions] or list(left)
    pools = ", ".join(f"{name} (on_exhausted: {recipe.exhaustion(name)})" for name in names)
    return (
        f"pool {pools} has nothing left" if len(names) == 1 else f"one of the pools {pools} has nothing left"
    )
