"""Which stages draw from which pools: one rule, for whole recipes and for as much of one as is sound."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from recipe.config.group import GroupConfig, members_of
from recipe.config.partial import UnsoundError, given_of, is_given
from recipe.config.stage import SHARES, Stage
from recipe.config.view import family

if TYPE_CHECKING:
    from recipe.config.recipe import Recipe


def drawing_stages(recipe: Recipe, pool: str) -> list[Stage]:
    """The stages that draw from a pool, in order.

    Raises:
        UnsoundError: as `draws_from`, of any stage.
    """
    return [stage for name, stage in recipe.stages.items() if draws_from(recipe, name, pool)]


def draws_from(recipe: Recipe, stage_name: str, pool: str) -> bool:
    """Whether a stage draws from a pool, at its end or while it goes over from the stage before.

    Raises:
        UnsoundError: a share that says it is faulty, or so is its group.
    """
    stage, names = recipe.stages[stage_name], list(recipe.stages)
    if _takes_part(stage, pool, recipe.groups):
        return True
    at = names.index(stage_name)
    if not at or not is_given(stage, "quota_ramp"):
        return False
    return _takes_part(recipe.stages[names[at - 1]], pool, recipe.groups)


def owners(recipe: Recipe, stage_name: str, name: str) -> tuple[str, ...]:
    """The pools of a pool's family that come before it and draw from the folder in a stage."""
    members = family(recipe.pools, name)
    if len(members) == 1:
        return ()
    return tuple(one for one in members[: members.index(name)] if draws_from(recipe, stage_name, one))


def _takes_part(stage: Stage, pool: str, groups: Mapping[str, GroupConfig]) -> bool:
    """Whether a stage's own shares give a pool something, in every form that it states."""
    forms = given_of(stage, SHARES)
    if not forms:
        raise UnsoundError
    return all(_has_share(getattr(stage, form), pool, groups) for form in forms)


def _has_share(named: Mapping[str, object], pool: str, groups: Mapping[str, GroupConfig]) -> bool:
    is_known = True
    for name, part in named.items():
        members, is_whole = members_of(name, groups)
        if pool not in members:
            is_known = is_known and is_whole
        elif not isinstance(part, Fraction | int):
            is_known = False
        elif part > 0 and not (name in groups and _has_none_inside(groups[name], pool)):
            return True
    if not is_known:
        raise UnsoundError
    return False


def _has_none_inside(group: GroupConfig, pool: str) -> bool:
    """Whether a group says 0 of a member; shares that depend on stocks, or are faulty, do not say so."""
    try:
        explicit = dict((*group.within.percents, *group.within.weights))
    except UnsoundError:
        return False
    return any(explicit.values()) and explicit.get(pool) == 0
