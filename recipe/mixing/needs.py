"""Whether the pools last: estimated from blocks, or decided by walking the whole run over metadata."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import ceil

from recipe.config import Recipe
from recipe.errors import Problem, RecipeError
from recipe.maths.deadlines import drift_bound
from recipe.mixing.curriculum import Curriculum
from recipe.mixing.cursor_block import BlockCache
from recipe.mixing.ending import ending
from recipe.mixing.estimate import EpochYield
from recipe.mixing.planned import PoolPlan, StagePlan
from recipe.mixing.reading import no_sequences
from recipe.mixing.snapshot import Snapshot, start_of
from recipe.mixing.walker import Ground, Walker
from recipe.mixing.withdrawals import erased_withdrawals
from recipe.pools import Pool

Yields = dict[str, tuple[EpochYield, EpochYield | None]]
"""Per drawn pool of a stage: its epoch under the stage's rule, and under the other packing method."""

Needs = tuple[list[Problem], list[str]]
_SOON = 1 << 16
"""Sequences that are walked in a tenth of a second, or in one where cuts are aligned."""
_BLOCK = 128
"""Sequences that are walked in the time that opening a block takes, however few units it has."""


def needs_exact(recipe: Recipe, pools: Mapping[str, PoolPlan], end: Snapshot) -> Needs:
    """What the walked run really read beyond the readings allowed."""
    problems, warnings = [], []
    for (name, pool), state in zip(pools.items(), end.pools, strict=True):
        cursor, allowed = state.cursor, pool.max_epochs
        over = cursor.epoch > allowed or (cursor.epoch == allowed and (cursor.block > 0 or cursor.stage >= 0))
        if over and recipe.exhaustion(name) == "repeat":
            begun = cursor.epoch + (1 if cursor.block or cursor.stage >= 0 else 0)
            elsewhere = state.dropped.get("elsewhere", 0)
            have = pool.stock_tokens * allowed - int(elsewhere / pool.epochs * allowed)
            problems.append(_exhausted(name, pool, (state.spent, have), begun, elsewhere > 0))
    if end.ended:
        stock = {name: pool.stock_tokens for name, pool in pools.items()}
        why = ending(recipe, Curriculum.from_recipe(recipe), stock, end)
        warnings.append(f"the run ends at step {end.step}: {why}")
    for index in end.left:
        name = list(recipe.pools)[index]
        policy = recipe.exhaustion(name)
        warnings.append(f"pool {name!r} runs dry and leaves the last stage (on_exhausted: {policy})")
    return problems, warnings


def spread_of(yields: Mapping[str, Yields]) -> Fraction:
    """Relative uncertainty of what stages are estimated to read."""
    return max(
        (epoch.spread for stage in yields.values() for epoch, _ in stage.values()), default=Fraction(0)
    )


def needs_estimated(
    recipe: Recipe,
    stages: Mapping[str, StagePlan],
    yields: Mapping[str, Yields],
    pools: Mapping[str, PoolPlan],
) -> Needs:
    """Pools that are certain to run out (problems) or may (warnings), from the estimates and their bound."""
    problems, warnings = [], []
    spread = spread_of(yields)
    for name, pool in pools.items():
        need = sum((stage.pools[name].need for stage in stages.values()), Fraction(0))
        have = _capacity(name, pool, yields)
        policy = recipe.exhaustion(name)
        if pool.epochs * (1 - spread) - _drift(name, stages, yields) > pool.max_epochs:
            if policy == "repeat":
                shared = any("elsewhere" in stage.pools[name].dropped for stage in stages.values())
                problems.append(_exhausted(name, pool, (int(need), have), ceil(pool.epochs), shared))
            else:
                warnings.append(
                    f"pool {name!r} runs dry near position {pool.exhausted_at} of the run "
                    f"(on_exhausted: {policy})"
                )
        elif pool.epochs * (1 + spread) > pool.max_epochs:
            warnings.append(
                f"pool {name!r} may run out: {float(pool.epochs):.3f} of {pool.max_epochs} readings, "
                f"give or take {float(spread):.1%}; `recipe plan --exact` decides"
            )
    return problems, warnings


def _drift(name: str, stages: Mapping[str, StagePlan], yields: Mapping[str, Yields]) -> Fraction:
    """Readings by which the schedule may stay behind a pool's share: below one context a leg."""
    behind = Fraction(0)
    for stage_name, pools in yields.items():
        if name in pools and pools[name][0].counted:
            legs = stages[stage_name].layout.legs
            behind += sum(map(drift_bound, (leg.race for leg in legs)), Fraction(0)) / pools[name][0].counted
    return behind


def _capacity(name: str, pool: PoolPlan, yields: Mapping[str, Yields]) -> int:
    epochs = [y[name][0].counted for y in yields.values() if name in y]
    return int(max(epochs, default=Fraction(0)) * pool.max_epochs)


def _exhausted(
    name: str, pool: PoolPlan, amounts: tuple[int, int], enough: int, is_shared: bool = False
) -> Problem:
    """``amounts``: tokens needed, and what the readings allowed hold; ``enough`` readings would do.

    ``is_shared``: other pools of its folder take a part of its documents.
    """
    need, have = amounts
    what = "what other pools of its folder leave of" if is_shared else "a stock of"
    readings = "1 reading" if pool.max_epochs == 1 else f"{pool.max_epochs} readings"
    return Problem(
        f"pools.{name}",
        f"needs {need:,} tokens",
        f"at most {have:,}: {readings} of {what} {pool.stock_tokens:,}",
        f"set pools.{name}.max_epochs={enough}, lower its quota, shorten the run, add text, "
        f"or say on_exhausted: redistribute",
    )


def empty_pools(recipe: Recipe, yields: Mapping[str, Yields]) -> list[Problem]:
    """Pools with a share that give no sequence."""
    problems = []
    for stage_name, pools in yields.items():
        for name, (epoch, _) in pools.items():
            if epoch.sequences and epoch.counted:
                continue
            problems.append(no_sequences(recipe, stage_name, name))
    return problems


def is_soon_walked(recipe: Recipe, stages: Mapping[str, StagePlan], opened: Mapping[str, Pool]) -> bool:
    """Whether the whole run is walked in about a second, by what its stages are estimated to read.

    Not where a pool has no folder: a walk needs them all.
    """
    work = Fraction(0)
    for stage in stages.values():
        work += stage.layout.positions // stage.layout.context
        for name, planned in stage.pools.items():
            if name not in opened:
                return False
            units = recipe.pools[name].block_units or 1
            read = planned.epochs * opened[name].num_units
            work += read + _BLOCK * ceil(read / units)
    return work <= _SOON


def walk_stages(
    recipe: Recipe, curriculum: Curriculum, opened: Mapping[str, Pool]
) -> list[tuple[Snapshot, Snapshot]]:
    """Walk the whole run over metadata: the state before and after every stage that is reached."""
    missing = [name for name in recipe.pools if name not in opened]
    if missing:
        raise RecipeError(
            recipe.name,
            [
                Problem(f"pools.{name}.path", "no folder", "a pool that can be read", "plan without exact")
                for name in missing
            ],
        )
    pools = tuple(opened[name] for name in recipe.pools)
    gone = erased_withdrawals(recipe, opened)
    ground = Ground(recipe, pools, curriculum, BlockCache(2 * len(pools) + 4), gone)
    walker = Walker(ground, start_of(len(pools)))
    states = []
    for layout in curriculum.stages:
        before = walker.snapshot()
        while walker.step < layout.stop_step and not walker.finished:
            walker.advance(layout.stop_step)
        states.append((before, walker.snapshot()))
        if walker.finished:
            break
    return states
