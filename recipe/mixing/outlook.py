"""What lies ahead of a place in a run: what pools gave, will be asked for, and how often they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

from recipe.config import Recipe
from recipe.errors import Problem
from recipe.mixing.curriculum import Curriculum, StageLayout
from recipe.mixing.cursor_block import block_place
from recipe.mixing.estimate import EpochYield, epoch_yield
from recipe.mixing.families import ahead_warnings
from recipe.mixing.reading import no_sequences
from recipe.mixing.snapshot import Cursor, PoolState, Snapshot
from recipe.mixing.unread import epoch_tokens, is_begun, unread_tokens
from recipe.pools import Pool
from recipe.sequences.reading_order import num_blocks

_EXACT_BLOCKS = 64
"""Of a pool with more, the block it stands in says how far it is read."""

YieldCache = dict[tuple[object, ...], EpochYield]
"""Yields that were estimated before, for outlooks over the same pools."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolAhead:
    """One pool from a place in a run on; tokens are in the counted kind."""

    spent: int
    left: int
    """Planned from here to the run's end, as if nothing were padded."""
    read: Fraction
    """Readings of the pool so far; a part of one is what was read of it."""
    epochs: Fraction
    """Readings at the run's end, estimated."""
    max_epochs: int

    def to_plain(self) -> dict[str, Any]:
        """Plain values for ``--json``."""
        return {
            "spent": self.spent,
            "left": self.left,
            "epochs_read": float(self.read),
            "epochs_at_end": float(self.epochs),
            "max_epochs": self.max_epochs,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Outlook:
    """A run from a place on, to its end."""

    step: int
    num_steps: int
    positions: int
    end_positions: int
    stages: Mapping[str, Mapping[str, Fraction]]
    """Shares by pool in every stage that is left, over what is left of it."""
    pools: Mapping[str, PoolAhead]
    problems: tuple[Problem, ...] = ()
    """Pools that give nothing, or run out for certain."""
    warnings: tuple[str, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """Plain values for ``--json``."""
        return {
            "step": self.step,
            "num_steps": self.num_steps,
            "positions": self.positions,
            "end_positions": self.end_positions,
            "stages": {
                stage: {name: str(share) for name, share in shares.items()}
                for stage, shares in self.stages.items()
            },
            "pools": {name: pool.to_plain() for name, pool in self.pools.items()},
            "problems": [str(problem) for problem in self.problems],
            "warnings": list(self.warnings),
        }


def outlook(
    recipe: Recipe, pools: Mapping[str, Pool], at: Snapshot, yields: YieldCache | None = None
) -> Outlook:
    """Lay out what is left of a run.

    Args:
        recipe: in force from here on, settled.
        pools: of the recipe, opened.
        at: the state that the steps ahead go on from.
        yields: remembers what was estimated, over several calls.
    """
    curriculum = Curriculum.from_recipe(recipe)
    cache: YieldCache = {} if yields is None else yields
    left = dict.fromkeys(recipe.pools, 0)
    more = dict.fromkeys(recipe.pools, Fraction(0))
    spread = dict.fromkeys(recipe.pools, Fraction(0))
    stages: dict[str, Mapping[str, Fraction]] = {}
    by_stage: dict[str, Mapping[str, Fraction]] = {}
    empty: list[Problem] = []
    for index, layout in enumerate(curriculum.stages):
        if at.step >= layout.stop_step:
            continue
        begun = at.stage_positions if index == at.stage and at.step > layout.first_step else 0
        planned = layout.planned(min(begun, layout.length), layout.length)
        stages[layout.name] = _shares(recipe, layout, planned)
        for name, tokens in zip(recipe.pools, planned, strict=True):
            left[name] += tokens
        own = _yields(recipe, layout, stages[layout.name], pools, cache)
        empty += [no_sequences(recipe, layout.name, name) for name, epoch in own.items() if not epoch.counted]
        of_stage = _readings(layout, begun, stages[layout.name], own)
        by_stage[layout.name] = {**dict.fromkeys(recipe.pools, Fraction(0)), **of_stage}
        for name, times in of_stage.items():
            more[name] += times
            spread[name] = max(spread[name], own[name].spread)
    ahead = {
        name: PoolAhead(
            spent=state.spent,
            left=left[name],
            read=(read := _read(recipe, pools[name], state)),
            epochs=read + more[name],
            max_epochs=recipe.epochs_allowed(name),
        )
        for name, state in zip(recipe.pools, at.pools, strict=True)
    }
    problems, warnings = _lasting(recipe, ahead, {k: (more[k], spread[k]) for k in ahead}, pools)
    warnings += ahead_warnings(recipe, pools, {name: pool.read for name, pool in ahead.items()}, by_stage)
    return Outlook(
        step=at.step,
        num_steps=curriculum.num_steps,
        positions=at.positions,
        end_positions=curriculum.positions,
        stages=stages,
        pools=ahead,
        problems=(*empty, *problems),
        warnings=tuple(warnings),
    )


def _shares(recipe: Recipe, layout: StageLayout, planned: list[int]) -> dict[str, Fraction]:
    """The stage's shares; over several legs those that what is left of it comes to."""
    total = sum(planned)
    if len(layout.legs) > 1 and total:
        return {name: Fraction(tokens, total) for name, tokens in zip(recipe.pools, planned, strict=True)}
    return recipe.shares(layout.name)


def _yields(
    recipe: Recipe,
    layout: StageLayout,
    shares: Mapping[str, Fraction],
    pools: Mapping[str, Pool],
    cache: YieldCache,
) -> dict[str, EpochYield]:
    found = {}
    for name, share in shares.items():
        if not share:
            continue
        rule = recipe.rule(layout.name, name)
        place = block_place(recipe, pools[name], Cursor())
        others = tuple(pools[name].before[other].fingerprint for other in rule.behind)
        key = (pools[name].fingerprint, place, rule, recipe.count, others)
        if key not in cache:
            cache[key] = epoch_yield(pools[name], rule, place, recipe.count)
        found[name] = cache[key]
    return found


def _readings(
    layout: StageLayout, begun: int, shares: Mapping[str, Fraction], yields: Mapping[str, EpochYield]
) -> dict[str, Fraction]:
    """Readings that the rest of a stage takes of every pool with a share."""
    if any(not epoch.counted for epoch in yields.values()):
        return dict.fromkeys(yields, Fraction(0))
    per_token = sum((shares[name] / epoch.per_sequence for name, epoch in yields.items()), Fraction(0))
    counted = Fraction(layout.positions - begun, layout.context) / per_token
    return {name: shares[name] * counted / epoch.counted for name, epoch in yields.items()}


def _read(recipe: Recipe, pool: Pool, state: PoolState) -> Fraction:
    """Readings so far, by what is unread of the epoch; of a pool of many blocks, by the block it is at."""
    cursor = state.cursor
    place = block_place(recipe, pool, cursor)
    blocks = num_blocks(pool, place.block_units, cursor.prefix, recipe.simulated_fraction)
    if blocks > _EXACT_BLOCKS:
        return cursor.epoch + Fraction(cursor.block, blocks)
    whole = epoch_tokens(recipe, pool, cursor)
    if not is_begun(state) or not whole:
        return Fraction(cursor.epoch)
    return cursor.epoch + 1 - Fraction(unread_tokens(recipe, pool, state), whole)


def _lasting(
    recipe: Recipe,
    ahead: Mapping[str, PoolAhead],
    more: Mapping[str, tuple[Fraction, Fraction]],
    pools: Mapping[str, Pool],
) -> tuple[list[Problem], list[str]]:
    """Pools that run out for certain, and those that may; ``more``: readings ahead, and their spread."""
    problems, warnings = [], []
    for name, pool in ahead.items():
        times, spread = more[name]
        policy, slack = recipe.exhaustion(name), Fraction(1, max(1, pools[name].num_documents))
        if not times or pool.epochs * (1 + spread) <= pool.max_epochs:
            continue
        text = f"{float(pool.epochs):.3f} of {pool.max_epochs} readings"
        if pool.read + times * (1 - spread) - slack <= pool.max_epochs:
            warnings.append(
                f"pool {name!r} may run out: {text}, give or take {float(spread):.1%} of the rest"
            )
        elif policy != "repeat":
            warnings.append(f"pool {name!r} runs dry before the end: {text} (on_exhausted: {policy})")
        else:
            problems.append(
                Problem(
                    f"pools.{name}",
                    f"{text} at the run's end, {float(pool.read):.3f} of them so far",
                    f"at most {pool.max_epochs} readings of a stock of {pools[name].stock:,}",
                    f"set pools.{name}.max_epochs={ceil(pool.epochs)}, lower its quota, shorten the run, "
                    f"add text, or say on_exhausted: redistribute",
                )
            )
    return problems, warnings
