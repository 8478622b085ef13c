"""A recipe's policy before the run: what can be known to be wrong without a loss."""

from __future__ import annotations

from collections.abc import Sequence

from recipe.config import Recipe
from recipe.config.problems import shown
from recipe.config.targets import SHIPPED, make_policy
from recipe.errors import Problem, RecipeError
from recipe.maths.policies import View


def changed_policy_problems(old: Recipe, new: Recipe, allow: Sequence[str] = ()) -> list[Problem]:
    """As `policy_problems`, of a changed recipe: whether a policy that stays is allowed is not asked again.

    One that ships is asked also where only the pools are others.
    """
    if new.policy is None:
        return []
    is_other = list(old.pools) != list(new.pools) and new.policy.target in SHIPPED
    return policy_problems(new, allow) if is_other or new.policy != old.policy else []


def policy_problems(recipe: Recipe, allow: Sequence[str] = ()) -> list[Problem]:
    """What keeps the policy of a recipe from answering; nothing where it has none.

    A policy that ships is also asked once for every stage, with made-up losses of every pool: parameters
    that are out of range, or lack a pool, would show only when it is asked first. One of somebody else's
    is made and not asked.

    Args:
        recipe: settled.
        allow: dotted names that ``policy._target_`` may have beside the shipped ones.
    """
    config = recipe.policy
    if config is None:
        return []
    try:
        policy = make_policy(config, allow)
    except RecipeError as error:
        return list(error.problems)
    found: dict[str, Problem] = {}
    for stage in recipe.stages if config.target in SHIPPED else ():
        view = View(
            step=0,
            positions=0,
            pools=tuple(recipe.pools),
            shares=tuple(recipe.shares(stage).values()),
            losses=dict.fromkeys(recipe.pools, 1.0),
            spent=dict.fromkeys(recipe.pools, 0),
        )
        try:
            policy(view)
        except (ValueError, TypeError, AttributeError, ArithmeticError, LookupError) as error:
            expected = f"parameters with which {config.target} answers for the pools of stage {stage}"
            problem = Problem("policy", shown(config.params), expected, shown(str(error)))
            found.setdefault(problem.fix, problem)
    return list(found.values())
