"""The plan: what a recipe will spend, read and need, before the first step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from recipe.config import Recipe, Rule
from recipe.errors import RecipeError
from recipe.mixing.advice import advice_on
from recipe.mixing.curriculum import Curriculum, StageLayout
from recipe.mixing.cursor_block import block_place
from recipe.mixing.estimate import EpochYield, epoch_yield, stock_yield
from recipe.mixing.families import families_of, reading_problems
from recipe.mixing.held_sides import held_side_warnings
from recipe.mixing.needs import (
    Yields,
    empty_pools,
    is_soon_walked,
    needs_estimated,
    needs_exact,
    spread_of,
    walk_stages,
)
from recipe.mixing.opening import close_pools, open_pools, pool_problems, settle_with
from recipe.mixing.packing_cost import other_packing, packing_costs
from recipe.mixing.parallel import parallel_warnings
from recipe.mixing.planned import Plan, StagePlan
from recipe.mixing.pool_plan import planned_pool, seen_dry
from recipe.mixing.simulated import declared_stock, read_stock
from recipe.mixing.snapshot import Cursor, Snapshot
from recipe.mixing.stage_plan import planned_stage, walked_stage
from recipe.mixing.trial import policy_problems
from recipe.mixing.weighing import loss_warnings
from recipe.mixing.withdrawals import erased_withdrawals
from recipe.pools import Pool
from recipe.pools.same_tokenizer import doubts, tokenizer_warnings


def make_plan(
    recipe: Recipe,
    *,
    exact: bool | None = False,
    compare_packing: bool = True,
    allow_targets: Sequence[str] = (),
) -> Plan:
    """Lay a recipe out over its pools.

    Args:
        recipe: as loaded; pools need a folder or a declared stock.
        exact: walk the whole run over metadata instead of estimating from blocks; needs every pool. None:
            walk it where that takes about a second.
        compare_packing: also plan the other packing method, for the comparison.
        allow_targets: dotted names that ``policy._target_`` may have beside the shipped ones.

    Returns:
        the plan, with its problems; nothing is refused here but pools that cannot be opened or cut.

    Raises:
        RecipeError: a pool cannot be opened, or lacks what its cuts are made by.
    """
    opened = open_pools(recipe)
    settled = settle_with(recipe, opened)
    of_pools = [*pool_problems(settled, opened), *doubts(opened)[0]]
    curriculum = Curriculum.from_recipe(settled)
    try:
        yields = _yields(settled, curriculum, opened, compare_packing)
    except RecipeError as error:  # of one pool: what the others lack is told with it
        close_pools(opened.values())
        others = [problem for problem in error.problems if problem not in of_pools]
        raise RecipeError(recipe.name, [*of_pools, *others]) from error
    stages = _estimated(settled, curriculum, yields, compare_packing)
    end, walked = None, []
    empty = empty_pools(settled, yields)
    if exact is None:
        exact = not empty and is_soon_walked(settled, stages, opened)
    if exact:
        walked = walk_stages(settled, curriculum, opened)
        end = walked[-1][1]
        stages = _as_walked(settled, stages, walked, opened)
    pools = {name: planned_pool(settled, name, stages, opened) for name in settled.pools}
    if exact:
        pools = {name: seen_dry(pool, k, walked) for k, (name, pool) in enumerate(pools.items())}
    if end is not None:
        run_out, warnings = needs_exact(settled, pools, end)
    else:
        run_out, warnings = needs_estimated(settled, stages, yields, pools)
    epochs = {name: {pool: of.epochs for pool, of in stage.pools.items()} for name, stage in stages.items()}
    families = families_of(settled, opened, epochs)
    too_often, perhaps = reading_problems(settled, families, Fraction(0) if exact else spread_of(yields))
    problems = [*of_pools, *empty, *run_out, *too_often]
    problems += policy_problems(settled, allow_targets)
    return Plan(
        recipe=settled,
        stages=stages,
        pools=pools,
        exact=exact,
        end_step=end.step if end is not None and end.ended else None,
        problems=tuple(problems),
        unfit=tuple(of_pools),
        warnings=(
            *_warnings_of(settled, opened),
            *warnings,
            *perhaps,
            *parallel_warnings(settled),
            *loss_warnings(settled),
        ),
        advice=advice_on(settled, stages, {name: pool.num_documents for name, pool in opened.items()}),
        families=families,
        opened=opened,
    )


def _estimated(
    recipe: Recipe, curriculum: Curriculum, yields: Mapping[str, Yields], compare_packing: bool
) -> dict[str, StagePlan]:
    """All stages, from what their pools yield."""
    stages = {}
    for layout in curriculum.stages:
        of = yields[layout.name]
        stage = planned_stage(recipe, layout, {name: own for name, (own, _) in of.items()})
        costs = packing_costs(recipe, layout.name, of, stage) if compare_packing else {}
        stages[layout.name] = replace(stage, packing=costs)
    return stages


def _as_walked(
    recipe: Recipe,
    stages: Mapping[str, StagePlan],
    walked: Sequence[tuple[Snapshot, Snapshot]],
    opened: Mapping[str, Pool],
) -> dict[str, StagePlan]:
    """All stages, as a walk saw them; those that it did not reach draw nothing."""
    end = walked[-1][1]
    stocks = {name: read_stock(recipe, pool) for name, pool in opened.items()}
    unreached = [(end, end)] * (len(stages) - len(walked))
    seen = zip(stages.items(), [*walked, *unreached], strict=True)
    return {name: walked_stage(stage, states, stocks) for (name, stage), states in seen}


def _warnings_of(recipe: Recipe, opened: Mapping[str, Pool]) -> Iterator[str]:
    """What there is to know of the pools, whatever is drawn from them."""
    yield from tokenizer_warnings(opened)
    yield from (f"pool {name!r}: {note}" for name, pool in opened.items() for note in pool.layout.notes)
    for name, known in erased_withdrawals(recipe, opened).pools.items():
        yield (
            f"pool {name!r}: {len(known.documents):,} documents were erased; they are withdrawn from the "
            "first step on, and counted"
        )
    yield from held_side_warnings(recipe, opened)


_Known = dict[tuple[str, Rule], EpochYield]
"""Yields of pools under rules: stages that have the same rule plan the same blocks."""


def _yields(
    recipe: Recipe, curriculum: Curriculum, opened: Mapping[str, Pool], other: bool
) -> dict[str, Yields]:
    """By stage, what its pools yield; ``other``: under the other packing method, too."""
    known: _Known = {}
    return {
        layout.name: _yields_in_stage(recipe, layout, (opened, known), other) for layout in curriculum.stages
    }


def _yields_in_stage(
    recipe: Recipe, layout: StageLayout, of: tuple[Mapping[str, Pool], _Known], other: bool
) -> Yields:
    """Per drawn pool of a stage: its epoch under the stage's rule, and under the other packing method."""
    out: Yields = {}
    opened, known = of
    for name, share in zip(recipe.pools, layout.mean_shares, strict=True):
        if share == 0:
            continue
        pool = opened.get(name)
        if pool is None:
            out[name] = (stock_yield(declared_stock(recipe, name) or 0, layout.context), None)
            continue
        rule = recipe.rule(layout.name, name)
        rules = (rule, other_packing(rule) if other else rule)
        place, stock = block_place(recipe, pool, Cursor()), read_stock(recipe, pool)
        for one in rules:
            if (name, one) not in known:
                known[name, one] = epoch_yield(pool, one, place, recipe.count, stock)
        out[name] = (known[name, rule], known[name, rules[1]] if other else None)
    return out
