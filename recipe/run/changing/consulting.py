"""A run's policy: when it is asked, what it sees, and its answer as a recipe.

Every answer becomes an amendment of the run, so replay and audit need no policy: they find its
shares in the recipe versions and what it remembers in the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from recipe.config import Recipe, with_shares
from recipe.config.problems import nearest
from recipe.config.targets import make_policy
from recipe.errors import RecipeError
from recipe.maths.policies import View
from recipe.mixing.curriculum import Curriculum
from recipe.mixing.snapshot import Snapshot
from recipe.run.canonical import Plain, plain_number
from recipe.run.changing.approval import Approval
from recipe.run.course import Course
from recipe.run.ledger import row_at
from recipe.run.row import Row
from recipe.run.turns import TurnAt, turn_before


@dataclass(frozen=True, kw_only=True)
class LastAnswer:
    """A policy's last answer in a run's lineage."""

    step: int = 0
    """Where it was given; 0 while there is none, and then every stage counts from its beginning."""
    memory: Plain = field(default_factory=dict)
    """What it wanted to remember."""


def answer_if_due(
    course: Course, step: int, losses: Mapping[str, Any], allow: Sequence[str] = ()
) -> tuple[Recipe, Approval] | None:
    """What the policy of an open run answers at a step; None where there is none, or it is not due.

    Raises:
        RecipeError: as :func:`asked`, or the run has no such step.
        ValueError: a loss that is no number, or of no pool (also where nothing is due).
    """
    recipe, curriculum = course.subject.recipe, course.stream.curriculum
    if recipe.policy is None:
        return None
    check_pools(recipe, losses)
    if not is_due(recipe, curriculum, step):
        return None
    turning = course.standing.turning
    turn = course.subject.turn if turning is None else turning.before.turn
    last = last_answer(course.folder.ledger, turn, recipe.policy.target)
    if not is_due(recipe, curriculum, step, last.step):
        return None
    return asked(recipe, course.snapshot(step), losses, last.memory, allow)


def is_due(recipe: Recipe, curriculum: Curriculum, step: int, answered: int = 0) -> bool:
    """Whether the policy is asked once the steps before ``step`` are consumed.

    It is, where ``every`` positions or more have passed since its last answer, or since the stage began
    where that is later: a point that is passed unasked is made up for at the next call. At a stage's
    end nothing is due: its shares are behind, and the next one begins with its own and counts anew.

    Args:
        recipe: in force.
        curriculum: of it.
        step: steps consumed.
        answered: the step of the last answer in the lineage.
    """
    if recipe.policy is None or not 0 < step < curriculum.num_steps:
        return False
    stage = curriculum.stages[curriculum.stretch(step - 1).stage]
    since = max(answered, stage.first_step)
    if not since < step < stage.stop_step:
        return False
    return curriculum.positions_at(step) - curriculum.positions_at(since) >= recipe.policy.every


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
        ValueError: a loss that is no number, or of no pool.
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


def last_answer(ledger: Path, turn: TurnAt, target: str) -> LastAnswer:
    """The last answer of a policy up to a turn on record; it knows nothing of those of another target.

    A branch that goes on with its parent's policy has the parent's last answer in its first row.
    """
    row: Row | None = None if turn.is_pending else row_at(ledger, turn.offset)
    while row is not None:
        policy = row.data.get("policy")
        if policy is not None and policy["target"] != target:
            break
        if policy is not None:
            return LastAnswer(step=int(policy.get("asked", row.end_step)), memory=dict(policy["memory"]))
        row = turn_before(ledger, row)
    return LastAnswer()


def check_pools(recipe: Recipe, losses: Mapping[str, Any]) -> None:
    """Refuse losses of what is no pool.

    Raises:
        ValueError: a name that is no pool's; the nearest is told.
    """
    for name in losses:
        if name not in recipe.pools:
            fix = nearest(name, recipe.pools, f"the pools are {', '.join(recipe.pools)}")
            raise ValueError(f"losses: there is no pool {name!r}; {fix}")


def _numbers(recipe: Recipe, losses: Mapping[str, Any]) -> dict[str, float]:
    check_pools(recipe, losses)
    numbers = dict[str, float]()
    for name, value in losses.items():
        try:
            numbers[name] = float(plain_number(value))
        except (TypeError, ValueError) as error:
            raise ValueError(f"losses[{name!r}] is {value!r}; losses are {{pool: number}}") from error
    return numbers


def _no_answer(recipe: Recipe, at: Snapshot, given: str) -> RecipeError:
    assert recipe.policy is not None
    return RecipeError.single(
        f"the policy gave no answer at step {at.step}",
        f"policy {recipe.policy.target}",
        given=given,
        expected="shares of the run's pools, exact fractions >= 0 that sum to one, and a plain memory",
        fix="give it the losses it needs, or correct the policy or its parameters; the run goes on with the "
        "shares in force",
    )
