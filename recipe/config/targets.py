"""What a policy's ``_target_`` names: imported only when it is on the list.

A recipe is data. A name in it is looked up among the policies that ship, and those that whoever starts the
run allows by name; any other is refused before anything is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from inspect import signature
from typing import Any

from recipe.config.model import PolicyConfig
from recipe.config.problems import TARGET, nearest, shown
from recipe.errors import Problem, RecipeError
from recipe.maths import policies
from recipe.maths.policies import POLICIES, Policy

SHIPPED = tuple(f"{policies.__name__}.{policy.__name__}" for policy in POLICIES)
"""Names that every recipe may use."""

ALLOW = "--allow-target {0} for recipe plan, run, screen, amend and branch, in Python allow_targets=[{0!r}]"
"""How a name that does not ship is allowed."""

_PLACE = f"policy.{TARGET}"


def resolve_target(name: str, allow: Sequence[str] = ()) -> Callable[..., Any]:
    """What a dotted name stands for, if it may be used.

    Args:
        name: as the recipe writes it.
        allow: further dotted names; ``package.module.*`` is all that the module itself defines.

    Raises:
        RecipeError: the name is not allowed, or there is nothing to call at it.
    """
    module, _, last = name.rpartition(".")
    is_whole_module = f"{module}.*" in allow
    if name not in (*SHIPPED, *allow) and not is_whole_module:
        known = [*SHIPPED, *allow]
        fix = nearest(name, known, "use one of these")
        raise _refused(name, f"one of {', '.join(known)}", f"{fix}, or allow {name}: {ALLOW.format(name)}")
    try:
        found = getattr(import_module(module), last)
    except Exception as error:  # a module of somebody else's may raise anything
        why = shown(f"{type(error).__name__}: {error}")
        raise _refused(
            name, "a name that can be imported", f"{why}; check the name, or the module"
        ) from error
    is_foreign = name not in (*SHIPPED, *allow) and getattr(found, "__module__", None) != module
    if is_foreign or not callable(found):
        raise _refused(name, "a class or function", f"name one that {module} defines")
    return found  # type: ignore[no-any-return]


def make_policy(config: PolicyConfig, allow: Sequence[str] = ()) -> Policy:
    """The policy of a recipe, with its parameters.

    Raises:
        RecipeError: as `resolve_target`, or the parameters are not those it takes.
    """
    target = resolve_target(config.target, allow)
    try:
        signature(target).bind(**config.params)
    except TypeError as error:
        expected = f"parameters {signature(target)}"
        raise RecipeError(
            config.target, [Problem("policy", shown(config.params), expected, str(error))]
        ) from None
    try:
        policy = target(**config.params)
    except (TypeError, ValueError) as error:
        fix = shown(str(error) or type(error).__name__)
        expected = "parameters that it accepts"
        raise RecipeError(config.target, [Problem("policy", shown(config.params), expected, fix)]) from error
    if not callable(policy):
        raise _refused(config.target, "a policy: called with a view, it answers with shares", "name another")
    return policy  # type: ignore[no-any-return]


def _refused(name: str, expected: str, fix: str) -> RecipeError:
    return RecipeError.single(_PLACE, _PLACE, given=name, expected=expected, fix=fix)
