"""A stage in the plan: what it draws from every pool, estimated from yields, or as a walk saw it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from recipe.config import Recipe
from recipe.maths.shares import effective_share
from recipe.mixing.curriculum import StageLayout
from recipe.mixing.estimate import EpochYield
from recipe.mixing.planned import PoolInStage, StagePlan
from recipe.mixing.snapshot import Snapshot


def planned_stage(recipe: Recipe, layout: StageLayout, yields: Mapping[str, EpochYield]) -> StagePlan:
    """The stage with what its pools yield under its rules."""
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


def walked_stage(stage: StagePlan, states: tuple[Snapshot, Snapshot], stocks: Mapping[str, int]) -> StagePlan:
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
