"""What a label counts in the loss, by pool and step: a function of the recipe, before any data is read.

Counted tokens of a leg, each with its pool's weight, sum to their number, within the schedule's drift:
``sum(share * weight) = sum(objective) = 1``. With ``count: labels`` these are the labels; in another counted
kind the objective is of that kind, as shares are, and the sum over labels is as near to their number as pools
have equally many labels a token.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from recipe.config import Recipe
from recipe.mixing.curriculum import Curriculum, StageLayout

Weights = dict[str, Fraction]


def weights_between(recipe: Recipe, layout: StageLayout, start: int, stop: int) -> list[tuple[int, Weights]]:
    """The weights that hold in steps ``start..stop - 1`` of a stage, each from which step on.

    Empty where the stage has no objective: every label counts once. Legs that hold none of the steps are left
    out.
    """
    weights = recipe.loss_weights(layout.name)
    if weights is None:
        return []
    found = []
    for leg, after, own in zip(layout.legs, (*layout.legs[1:], None), weights, strict=True):
        first, end = max(start, leg.first_step), stop if after is None else min(stop, after.first_step)
        if first < end:
            found.append((first, own))
    return found


def weights_at(recipe: Recipe, curriculum: Curriculum, step: int) -> Weights | None:
    """The weight of every pool in a step; None where every label counts once.

    Raises:
        ValueError: the run has no such step.
    """
    layout = curriculum.stages[curriculum.stretch(step).stage]
    weights = recipe.loss_weights(layout.name)
    return None if weights is None else weights[layout.leg(step)]


class Weighing:
    """The weights of a recipe as numbers for a trainer, one leg after the other."""

    def __init__(self, recipe: Recipe, curriculum: Curriculum) -> None:
        """For a settled recipe."""
        self._recipe, self._curriculum = recipe, curriculum
        self._known: dict[tuple[int, int], NDArray[np.float32]] = {}

    def of_rows(self, step: int, pools: NDArray[np.int64]) -> NDArray[np.float32] | None:
        """float32[rows], nearest to the exact weights; None where no stage of the recipe has an objective.

        Ones in a stage that has none, so that all batches of a recipe have the same keys.
        """
        if not self._recipe.is_weighted:
            return None
        stage = self._curriculum.stretch(step).stage
        leg = (stage, self._curriculum.stages[stage].leg(step))
        if leg not in self._known:
            weights = weights_at(self._recipe, self._curriculum, step)
            exact = [Fraction(1)] * len(self._recipe.pools) if weights is None else weights.values()
            self._known[leg] = np.array([float(weight) for weight in exact], np.float32)
        rows: NDArray[np.float32] = self._known[leg][pools]
        return rows


def weights_plain(weights: list[tuple[int, Weights]]) -> list[dict[str, object]]:
    """As the record has them: the first step, and the exact weight of every pool as text."""
    return [{"step": step, "pools": {name: str(own) for name, own in each.items()}} for step, each in weights]


def loss_warnings(recipe: Recipe) -> list[str]:
    """What a plan says of tokens that no loss counts, and of weights that a pool's leaving would shift."""
    found = []
    for name in recipe.stages:
        objective, shares = recipe.objective(name), recipe.shares(name)
        if objective is None:
            continue
        unheard = [pool for pool, share in shares.items() if share and not objective[pool]]
        if unheard:
            share = sum((shares[pool] for pool in unheard), Fraction(0))
            found.append(
                f"stage {name}: {', '.join(unheard)}: {float(share):.3%} of the tokens and nothing of the "
                "loss (objective 0%): they are bought without being learnt from"
            )
        if any(recipe.exhaustion(pool) == "redistribute" for pool, share in shares.items() if share):
            found.append(
                f"stage {name}: a pool that leaves (on_exhausted: redistribute) takes its part of the "
                "objective with it; the weights of the others stay, and so do the proportions between them"
            )
    return found
