"""What a plan is made of: stages, pools, and what stands against them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from recipe.config import Recipe
from recipe.errors import Problem, RecipeError
from recipe.mixing.curriculum import StageLayout
from recipe.mixing.families import Family
from recipe.pools import Pool


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolInStage:
    """What one pool is planned to give in one stage; token counts are whole."""

    share: Fraction
    tokens: int
    """Its share of the stage's stated length, as if nothing were padded."""
    need: Fraction
    """Counted tokens it will really be asked for, padding taken into account."""
    sequences: int
    epochs: Fraction
    """Readings of the pool that the need takes."""
    body: int
    overlap: int
    special: int
    padding: int
    dropped: Mapping[str, int]
    """Tokens left out on the way, by reason."""
    epoch: Mapping[str, int]
    """What one whole reading gives under the stage's rule: sequences, and tokens by kind."""
    objective: Fraction | None = None
    """Its share of what the loss counts; None: every label counts once."""
    loss_weights: tuple[Fraction, ...] = ()
    """What its labels count in the loss, in every leg of the stage."""

    @property
    def transformed(self) -> tuple[int, int] | None:
        """Pieces, and body tokens in them, that are expected to be transformed; None without a transform."""
        if "transformed_pieces" not in self.epoch:
            return None
        pieces, tokens = self.epoch["transformed_pieces"], self.epoch["transformed_tokens"]
        return round(self.epochs * pieces), round(self.epochs * tokens)


@dataclass(frozen=True, slots=True)
class PackingCost:
    """What one packing method costs in a stage."""

    padding: Fraction
    """Padding, as a share of the positions."""
    cut_documents: Fraction
    """Documents read in more than one piece, counted each time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StagePlan:
    """One stage: its layout, its chunk's allotment, and every pool."""

    layout: StageLayout
    chunk_allotment: Mapping[str, int]
    pools: Mapping[str, PoolInStage]
    groups: Mapping[str, Fraction]
    packing: Mapping[str, PackingCost]
    """What the stage's packing costs, and what the other method would."""
    effective_share: Fraction | None = None
    """Labels without weights that are worth one with the last leg's; None without an objective."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolPlan:
    """One pool over the run."""

    stock_tokens: int
    """Body tokens: measured, or as declared where there is no folder."""
    declared: int | None
    measured: int | None
    tokens: int
    epochs: Fraction
    max_epochs: int
    exhausted_at: int | None
    """Position of the run at which its last allowed reading ends, if the run goes on after it.

    Walked exactly: the end of the stage in which the pool left, or of the run that it ended.
    """

    @property
    def gap(self) -> int | None:
        """Measured minus declared tokens, where both are known."""
        return None if self.declared is None or self.measured is None else self.measured - self.declared


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """A recipe laid out over its pools, with everything that stands against it."""

    recipe: Recipe
    """Settled: every share, chunk and block size is a number."""
    stages: Mapping[str, StagePlan]
    pools: Mapping[str, PoolPlan]
    exact: bool = False
    """The numbers of the stages were walked, not estimated from whole blocks."""
    end_step: int | None = None
    """Where a walked run ends before its planned length, because a pool runs dry."""
    problems: tuple[Problem, ...] = ()
    unfit: tuple[Problem, ...] = ()
    """Those of them that are of what was given, whatever is drawn: pools that do not go together."""
    warnings: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    """What may be better, where nothing is wrong."""
    families: Mapping[str, Family] = field(default_factory=dict)
    """Pools that share a folder, by the one that names it."""
    opened: Mapping[str, Pool] = field(default_factory=dict)
    """The pools that have a folder."""

    def check(self) -> None:
        """Refuse what is certain to fail.

        Raises:
            RecipeError: with every problem of the plan.
        """
        if self.problems:
            raise RecipeError(self.recipe.name, self.problems)

    def to_plain(self) -> dict[str, Any]:
        """Plain values for ``recipe plan --json``."""
        return {
            "stages": {
                name: {**_stage_to_plain(stage), "ramp": _ramp_to_plain(self.recipe, name)}
                for name, stage in self.stages.items()
            },
            "pools": {name: _pool_to_plain(pool) for name, pool in self.pools.items()},
            **_families_to_plain(self.families),
            "exact": self.exact,
            "end_step": self.end_step,
            "problems": [
                {"where": p.where, "given": str(p.given), "expected": p.expected, "fix": p.fix}
                for p in self.problems
            ],
            "warnings": list(self.warnings),
            "advice": list(self.advice),
        }


def _families_to_plain(found: Mapping[str, Family]) -> dict[str, Any]:
    return {"families": {name: family.to_plain() for name, family in found.items()}} if found else {}


def _stage_to_plain(stage: StagePlan) -> dict[str, Any]:
    layout = stage.layout
    return {
        "tokens": layout.length,
        "context": layout.context,
        "steps": layout.num_steps,
        "positions": layout.positions,
        "overshoot": layout.overshoot,
        "chunk": layout.chunk,
        "chunk_allotment": dict(stage.chunk_allotment),
        "pools": {
            name: {
                "share": str(pool.share),
                "tokens": pool.tokens,
                "need": round(pool.need),
                "epochs": float(pool.epochs),
                "sequences": pool.sequences,
                "overlap": pool.overlap,
                "special": pool.special,
                "padding": pool.padding,
                "dropped": dict(pool.dropped),
                "epoch": dict(pool.epoch),
                **_transformed_to_plain(pool),
                **_weights_to_plain(pool),
            }
            for name, pool in stage.pools.items()
        },
        "groups": {name: str(share) for name, share in stage.groups.items()},
        **({} if stage.effective_share is None else {"effective_share": float(stage.effective_share)}),
        "packing": {
            method: {"padding": float(cost.padding), "cut_documents": round(cost.cut_documents)}
            for method, cost in stage.packing.items()
        },
    }


def _transformed_to_plain(pool: PoolInStage) -> dict[str, Any]:
    if pool.transformed is None:
        return {}
    pieces, tokens = pool.transformed
    return {"transformed": {"pieces": pieces, "tokens": tokens}}


def _weights_to_plain(pool: PoolInStage) -> dict[str, Any]:
    """What the loss counts of a pool; in a ramp ``loss_weight`` is that of the stage's own shares."""
    if pool.objective is None:
        return {}
    weights = [str(weight) for weight in pool.loss_weights]
    return {
        "objective": str(pool.objective),
        "loss_weight": weights[-1],
        **({"loss_weight_at_first": weights[0]} if len(weights) > 1 else {}),
    }


def _ramp_to_plain(recipe: Recipe, name: str) -> dict[str, Any] | None:
    """How a stage's shares go over from those before it to its own; None for a stage without a ramp."""
    ramp, names = recipe.stages[name].quota_ramp, list(recipe.stages)
    if ramp is None:
        return None
    before, own = recipe.legs(names[names.index(name) - 1])[-1].shares, recipe.shares(name)
    return {
        "over": ramp.over,
        "steps": ramp.steps,
        "pools": {pool: [str(before[pool]), str(share)] for pool, share in own.items()},
    }


def _pool_to_plain(pool: PoolPlan) -> dict[str, Any]:
    return {
        "stock_tokens": pool.stock_tokens,
        "tokens": pool.tokens,
        "epochs": float(pool.epochs),
        "max_epochs": pool.max_epochs,
        "declared_tokens": pool.declared,
        "measured_tokens": pool.measured,
        "gap_tokens": pool.gap,
        "exhausted_at": pool.exhausted_at,
    }
