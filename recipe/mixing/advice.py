"""What somebody who knows these recipes would say of a plan: nothing is wrong, something may be better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from recipe.config import Recipe
from recipe.mixing.planned import PoolInStage, StagePlan

LOST = Fraction(1, 1000)
"""Part of a pool's tokens whose loss in tails is told."""
OVERLAP = Fraction(1, 4)
"""Part of the document positions above which overlap is told."""
AGAIN = Fraction(3, 2)
"""Readings of a pool from which on it is told that they have the same cuts."""
SHORT = Fraction(1, 100)
"""Part of a pool's documents that are cut, below which a stride has no effect to speak of."""


def advice_on(
    recipe: Recipe, stages: Mapping[str, StagePlan], documents: Mapping[str, int]
) -> tuple[str, ...]:
    """Sentences about tails, strides and offsets of a plan.

    Args:
        recipe: settled.
        stages: as planned.
        documents: of the pools that have a folder.
    """
    found: list[str] = []
    for name, stage in stages.items():
        drawn = {pool: of for pool, of in stage.pools.items() if of.share and of.epoch and pool in documents}
        found += [
            *_needs(recipe, name, drawn),
            *_tails(recipe, name, drawn),
            *_strides(recipe, name, drawn, documents),
        ]
    return (*found, *_offsets(recipe, stages))


def _needs(recipe: Recipe, stage: str, drawn: Mapping[str, PoolInStage]) -> Iterator[str]:
    """Groups that are left out because what their sections need does not fit beside them."""
    for pool, of in drawn.items():
        lost = of.epoch.get("dropped_oversize", 0)
        if lost and recipe.rule(stage, pool).oversize == "split":
            yield (
                f"stage {stage}, pool {pool}: {lost:,} tokens of every epoch are left out, as what their "
                f"sections need does not fit the context beside them; a longer context, or a view of their "
                f"own (by: needs, min_tokens) in a stage that holds them, reads them"
            )


def _tails(recipe: Recipe, stage: str, drawn: Mapping[str, PoolInStage]) -> Iterator[str]:
    for pool, of in drawn.items():
        lost = sum(of.epoch.get(f"dropped_{reason}", 0) for reason in ("tail", "short"))
        whole = of.epoch["body"] - of.epoch["overlap"] + sum(_dropped(of))
        if lost > LOST * whole:
            rule = recipe.rule(stage, pool)
            how = "packing: concat with tail: drop" if rule.method == "concat" else f"tail: {rule.tail}"
            yield (
                f"stage {stage}, pool {pool}: {how} loses {_percent(lost, whole)} of its tokens in every "
                f"epoch ({lost:,}); tail: keep loses none"
            )


def _dropped(of: PoolInStage) -> list[int]:
    return [tokens for key, tokens in of.epoch.items() if key.startswith("dropped_")]


def _strides(
    recipe: Recipe, stage: str, drawn: Mapping[str, PoolInStage], documents: Mapping[str, int]
) -> Iterator[str]:
    unmoved = []
    for pool, of in drawn.items():
        rule, overlap, body = recipe.rule(stage, pool), of.epoch["overlap"], of.epoch["body"]
        if rule.stride == rule.window or rule.method == "concat":
            continue
        if overlap > OVERLAP * body:
            share, times = _percent(rule.stride, rule.window), rule.window / rule.stride
            yield (
                f"stage {stage}, pool {pool}: {_percent(overlap, body)} of its document positions are "
                f"overlap (stride {rule.stride} is {share} of the window: inner tokens are read {times:.3g} "
                f"times); a stride of {rule.window * 7 // 8} keeps an eighth"
            )
        if of.epoch["cut_documents"] < SHORT * documents[pool]:
            unmoved.append(pool)
    if unmoved:
        yield f"stage {stage}: the stride has no effect on {', '.join(unmoved)}: their texts fit the window"


def _offsets(recipe: Recipe, stages: Mapping[str, StagePlan]) -> Iterator[str]:
    """Pools that are read again with the same cuts."""
    again: dict[str, Fraction] = {}
    for pool in recipe.pools:
        drawn = [(name, of.pools[pool]) for name, of in stages.items() if of.pools[pool].share]
        rules = [recipe.rule(name, pool) for name, _ in drawn]
        is_same = any(not rule.random_offset and rule.method != "concat" for rule in rules)
        is_cut = any(of.epoch.get("cut_documents", 0) > 0 for _, of in drawn)
        times = sum((of.epochs for _, of in drawn), Fraction(0))
        if times > AGAIN and is_same and is_cut:
            again[pool] = times
    if again:
        told = ", ".join(f"{pool} ({float(times):.3g} times)" for pool, times in again.items())
        yield f"read again with the same cuts: {told}; slicing: {{offset: random}} moves them every epoch"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3g} %"
