"""A run's policy: when it is asked, what it sees, and its answer as a recipe.

Every answer becomes an amendment of the run, so replay and audit need no policy: they find its
shares in the recipe versions and what it remembers in the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from recipe.config import Recipe, with_shares
from recipe.config.targets import make_policy
from recipe.errors import RecipeError
from recipe.maths.policies import View
from recipe.mixing.curriculum import Curriculum
from recipe.mixing.snapshot import Snapshot
from recipe.run.canonical import Plain, plain_number
from recipe.run.changing.amending import Approval
from recipe.run.ledger import Row, row_at
from recipe.run.turns import TurnAt, turn_before


def is_due(recipe: Recipe, curriculum: Curriculum, step: int) -> bool:
    """Whether the policy is asked once the steps before ``step`` are consumed.

    It is, at the first batch end at or after every multiple of ``every`` positions of the run, inside
    a stage: at a stage's end its shares are behind, and the next one begins with its own.
    """
    if recipe.policy is None or not 0 < step < curriculum.num_steps:
        return False
    stage = curriculum.stages[curriculum.stretch(step - 1).stage]
    every, here = recipe.policy.every, curriculum.positions_at(step)
    return step < stage.stop_step and here // every > curriculum.positions_at(step - 1) // every


def asked(
    recipe: Recipe, at: Snapshot, losses: Mapping[str, Any], memory: Plain, allow: Sequence[str] = ()
) -> tuple[Recipe, Approval]:
    """Ask the policy of a recipe at a state.

    Args:
        recipe: in force.
        at: the state.
        losses: mean loss by pool since the policy was asked last.
        memory: what it wanted to remember then.
        allow: dotted names that the recipe may use beside the shipped ones.

    Returns:
        The recipe with the shares that it answered, and the approval that says so.

    Raises:
        RecipeError: a policy that is not allowed, or an answer that is none.
        ValueError: a loss that is no number.
    """
    assert recipe.policy is not None
    policy = make_policy(recipe.policy, allow)
    layout = Curriculum.from_recipe(recipe).stages[at.stage]
    race = layout.legs[layout.leg(max(at.step - 1, layout.first_step))].race
    view = View(
        step=at.step,
        positions=at.positions,
        pools=tuple(recipe.pools),
        shares=tuple(Fraction(part, race.denominator) for part in race.parts),
        losses=_numbers(recipe, losses),
        spent={name: pool.spent for name, pool in zip(recipe.pools, at.pools, strict=True)},
        memory=memory,
    )
    try:
        answer = policy(view)
        shares = {name: Fraction(answer.shares.get(name, 0)) for name in recipe.pools}
        remembered = dict(answer.memory)
    except (ValueError, TypeError, AttributeError, ArithmeticError, LookupError) as error:
        raise _no_answer(recipe, at, f"{type(error).__name__}: {error}") from error
    unknown = [name for name in answer.shares if name not in recipe.pools]
    if unknown or sum(shares.values()) != 1 or min(shares.values()) < 0:
        told = ", ".join(f"{name}: {share}" for name, share in answer.shares.items())
        raise _no_answer(recipe, at, told)
    stage = list(recipe.stages)[at.stage]
    new = with_shares(recipe, stage, shares)
    said = {"target": recipe.policy.target, "memory": remembered}
    return new, Approval(reason=f"policy {recipe.policy.target}", by="policy", policy=said)


def memory_at(ledger: Path, turn: TurnAt) -> Plain:
    """What the policy of a run wanted to remember when it was last asked, up to a turn on record."""
    row: Row | None = None if turn.is_pending else row_at(ledger, turn.offset)
    while row is not None:
        policy = row.data.get("policy")
        if policy is not None:
            return dict(policy["memory"])
        row = turn_before(ledger, row)
    return {}


def _numbers(recipe: Recipe, losses: Mapping[str, Any]) -> dict[str, float]:
    numbers = {name: plain_number(value) for name, value in losses.items()}
    for name, value in numbers.items():
        if name not in recipe.pools or isinstance(value, str):
            raise ValueError(f"losses[{name!r}] is {losses[name]!r}; losses are {{pool: number}}")
    return {name: float(value) for name, value in numbers.items()}


def _no_answer(recipe: Recipe, at: Snapshot, given: str) -> RecipeError:
    assert recipe.policy is not None
    return RecipeError.single(
        f"the policy gave no answer at step {at.step}",
        f"policy {recipe.policy.target}",
        given=given,
        expected="shares of the run's pools, exact fractions >= 0 that sum to one, and a plain memory",
        fix="correct the policy or its parameters; the run goes on with the shares in force",
    )
