"""A pool in the plan, over all stages: what is drawn, how often it is read, and where it runs out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from recipe.config import Recipe
from recipe.mixing.planned import PoolPlan, StagePlan
from recipe.mixing.simulated import declared_stock, read_stock
from recipe.mixing.snapshot import Snapshot
from recipe.pools import Pool


def planned_pool(
    recipe: Recipe, name: str, stages: Mapping[str, StagePlan], opened: Mapping[str, Pool]
) -> PoolPlan:
    """The pool with what the stages draw from it."""
    declared = declared_stock(recipe, name)
    measured = read_stock(recipe, opened[name]) if name in opened else None
    allowed = recipe.epochs_allowed(name)
    epochs, exhausted_at = Fraction(0), None
    for stage in stages.values():
        more = stage.pools[name].epochs
        if exhausted_at is None and epochs + more > allowed:
            inside = (allowed - epochs) / more * stage.layout.positions
            exhausted_at = stage.layout.first_position + int(inside)
        epochs += more
    return PoolPlan(
        stock_tokens=measured if measured is not None else declared or 0,
        declared=declared,
        measured=measured,
        tokens=sum(stage.pools[name].tokens for stage in stages.values()),
        epochs=epochs,
        max_epochs=allowed,
        exhausted_at=exhausted_at,
    )


def seen_dry(pool: PoolPlan, index: int, walked: Sequence[tuple[Snapshot, Snapshot]]) -> PoolPlan:
    """The pool with the end of the first stage in which a walk saw it leave, or the run end at its turn."""
    for _, after in walked:
        done = after.pools[index].cursor.epoch >= pool.max_epochs
        if done and (index in after.left or after.ended):
            return replace(pool, exhausted_at=after.positions)
    return pool
