"""The plan: what a recipe will spend, read and need, before the first step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from recipe.config import Recipe, Rule
from recipe.errors import RecipeError
from recipe.maths.shares import effective_share
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
from recipe.mixing.parallel import parallel_warnings
from recipe.mixing.planned import PackingCost, Plan, PoolInStage, PoolPlan, StagePlan
from recipe.mixing.simulated import declared_stock, read_stock
from recipe.mixing.snapshot import Cursor, Snapshot
from recipe.mixing.trial import policy_problems
from recipe.mixing.weighing import loss_warnings
from recipe.mixing.withdrawals import erased_withdrawals
from recipe.pools import Pool
from recipe.pools.same_tokenizer import doubts, tokenizer_warnings

__all__ = ["Plan", "make_plan"]


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
    known: _Known = {}
    try:
        yields = {
            layout.name: _yields(settled, layout, (opened, known), compare_packing)
            for layout in curriculum.stages
        }
    except RecipeError as error:  # of one pool: what the others lack is told with it
        close_pools(opened.values())
        others = [problem for problem in error.problems if problem not in of_pools]
        raise RecipeError(recipe.name, [*of_pools, *others]) from error
    stages = {
        layout.name: _stage(settled, layout, {k: own for k, (own, _) in yields[layout.name].items()})
        for layout in curriculum.stages
    }
    if compare_packing:
        stages = {
            name: replace(stage, packing=_packing(settled, name, yields[name], stage))
            for name, stage in stages.items()
        }
    end, walked = None, []
    empty = empty_pools(settled, yields)
    if exact is None:
        exact = not empty and is_soon_walked(settled, stages, opened)
    if exact:
        walked = walk_stages(settled, curriculum, opened)
        end = walked[-1][1]
        stocks = {name: read_stock(settled, pool) for name, pool in opened.items()}
        unreached = [(end, end)] * (len(stages) - len(walked))
        stages = {
            name: _walked(stage, states, stocks)
            for (name, stage), states in zip(stages.items(), [*walked, *unreached], strict=True)
        }
    pools = {name: _pool(settled, name, stages, opened) for name in settled.pools}
    if exact:
        pools = {name: _seen_dry(pool, k, walked) for k, (name, pool) in enumerate(pools.items())}
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
        warnings=(
            *tokenizer_warnings(opened),
            *(f"pool {name!r}: {note}" for name, pool in opened.items() for note in pool.layout.notes),
            *(
                f"pool {name!r}: {len(known.documents):,} documents were erased; they are withdrawn from the "
                "first step on, and counted"
                for name, known in erased_withdrawals(settled, opened).pools.items()
            ),
            *held_side_warnings(settled, opened),
            *(*warnings, *perhaps, *parallel_warnings(settled), *loss_warnings(settled)),
        ),
        advice=advice_on(settled, stages, {name: pool.num_documents for name, pool in opened.items()}),
        families=families,
        opened=opened,
    )


_Known = dict[tuple[str, Rule], EpochYield]
"""Yields of pools under rules: stages that have the same rule plan the same blocks."""


def _yields(
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
        rules = (rule, _other(rule) if other else rule)
        place, stock = block_place(recipe, pool, Cursor()), read_stock(recipe, pool)
        for one in rules:
            if (name, one) not in known:
                known[name, one] = epoch_yield(pool, one, place, recipe.count, stock)
        out[name] = (known[name, rule], known[name, rules[1]] if other else None)
    return out


def _other(rule: Rule) -> Rule:
    """The rule with the other packing method: concat takes whole documents, without a window of its own.

    Of a rule that pads documents to a multiple, the same without that: what the multiple costs.
    """
    if rule.document_multiple > 1:
        return replace(rule, document_multiple=1)
    if rule.method == "concat":
        return replace(rule, method="best_fit")
    return replace(
        rule,
        method="concat",
        window=rule.context,
        tail="keep",
        oversize="split",
        align="none",
        align_within=0,
    )


def _stage(recipe: Recipe, layout: StageLayout, yields: Mapping[str, EpochYield]) -> StagePlan:
    shares = dict(zip(recipe.pools, layout.mean_shares, strict=True))
    planned = layout.planned(0, layout.length)
    chunk = layout.planned(0, layout.chunk)
    total = _counted_total(layout, shares, yields)
    pools = {}
    objective, weights = recipe.objective(layout.name), recipe.loss_weights(layout.name) or ()
    for name, tokens in zip(recipe.pools, planned, strict=True):
        epoch = yields.get(name)
        need = Fraction(tokens) if epoch is not None and epoch.is_declared else shares[name] * total
        times = need / epoch.counted if epoch is not None and epoch.counted else Fraction(0)
        pools[name] = PoolInStage(
            share=shares[name],
            tokens=tokens,
            need=need,
            sequences=round(times * epoch.sequences) if epoch else 0,
            epochs=times,
            body=round(times * epoch.body) if epoch else 0,
            overlap=round(times * epoch.overlap) if epoch else 0,
            special=round(times * epoch.special) if epoch else 0,
            padding=round(times * epoch.padding) if epoch else 0,
            dropped={reason: round(times * n) for reason, n in epoch.dropped.items()} if epoch else {},
            epoch=epoch.to_plain() if epoch else {},
            objective=None if objective is None else objective[name],
            loss_weights=tuple(leg[name] for leg in weights),
        )
    allotment = dict(zip(recipe.pools, chunk, strict=True))
    groups = dict(recipe.group_shares(layout.name))
    effective = None if objective is None else effective_share(objective, recipe.shares(layout.name))
    return StagePlan(
        layout=layout,
        chunk_allotment=allotment,
        pools=pools,
        groups=groups,
        packing={},
        effective_share=effective,
    )


def _counted_total(
    layout: StageLayout, shares: Mapping[str, Fraction], yields: Mapping[str, EpochYield]
) -> Fraction:
    """Counted tokens of the stage: its sequences, divided so that every pool has its share of the tokens."""
    per_token = Fraction(0)
    for name, epoch in yields.items():
        if not epoch.per_sequence:
            return Fraction(0)
        per_token += shares[name] / epoch.per_sequence
    return Fraction(layout.positions, layout.context) / per_token


def _walked(stage: StagePlan, states: tuple[Snapshot, Snapshot], stocks: Mapping[str, int]) -> StagePlan:
    """The stage with what a walk from its first step to its end really drew in place of the estimates."""
    pools = {}
    for (name, planned), before, after in zip(
        stage.pools.items(), states[0].pools, states[1].pools, strict=True
    ):
        reasons = {reason: n - before.dropped.get(reason, 0) for reason, n in after.dropped.items()}
        body, overlap = after.body - before.body, after.overlap - before.overlap
        read = body - overlap + sum(reasons.values())
        pools[name] = replace(
            planned,
            need=Fraction(after.spent - before.spent),
            sequences=after.sequences - before.sequences,
            epochs=Fraction(read, stocks[name]) if stocks[name] else Fraction(0),
            body=body,
            overlap=overlap,
            special=after.special - before.special,
            padding=after.padding - before.padding,
            dropped={reason: n for reason, n in reasons.items() if n},
        )
    return replace(stage, pools=pools)


def _packing(recipe: Recipe, stage_name: str, yields: Yields, stage: StagePlan) -> dict[str, PackingCost]:
    """Padding and cut documents of the stage's packing and of the other method, weighted by what is read."""
    read: dict[str, list[tuple[Fraction, EpochYield]]] = {}
    costs: dict[str, PackingCost] = {}
    for name, (own, other) in yields.items():
        if other is None:
            continue
        rule, times = recipe.rule(stage_name, name), stage.pools[name].epochs
        for used, epoch in zip(_methods(rule), (own, other), strict=True):
            read.setdefault(used, []).append((times, epoch))
    for method, epochs in read.items():
        positions = sum(times * epoch.sequences * stage.layout.context for times, epoch in epochs)
        padding = sum((times * epoch.padding for times, epoch in epochs), Fraction(0))
        cut = sum((times * epoch.cut_documents for times, epoch in epochs), Fraction(0))
        costs[method] = PackingCost(padding / positions if positions else Fraction(0), cut)
    return costs


def _methods(rule: Rule) -> tuple[str, str]:
    """What a rule and the other one are called."""
    if rule.document_multiple > 1:
        return f"{rule.method}, document_multiple {rule.document_multiple}", f"{rule.method} without it"
    return rule.method, "best_fit" if rule.method == "concat" else "concat"


def _pool(recipe: Recipe, name: str, stages: Mapping[str, StagePlan], opened: Mapping[str, Pool]) -> PoolPlan:
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


def _seen_dry(pool: PoolPlan, index: int, walked: Sequence[tuple[Snapshot, Snapshot]]) -> PoolPlan:
    """The pool with the end of the first stage in which a walk saw it leave, or the run end at its turn."""
    for _, after in walked:
        done = after.pools[index].cursor.epoch >= pool.max_epochs
        if done and (index in after.left or after.ended):
            return replace(pool, exhausted_at=after.positions)
    return pool
