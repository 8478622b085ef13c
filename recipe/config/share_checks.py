"""What must hold between a stage's shares and the pools and groups of the recipe."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction

from recipe.config.group import GroupConfig
from recipe.config.partial import Faulty, UnsoundError, given_of, run_checks
from recipe.config.problems import NOTHING, Fault, nearest
from recipe.config.stage import OBJECTIVE, SHARES, Stage
from recipe.maths.shares import percent_text, weight_text

_PERCENTS = ("quotas", OBJECTIVE)


def known_pools(group: GroupConfig) -> tuple[list[str], bool]:
    """The pools of a group that are sound, and whether these are all."""
    known = [name for name in group.pools if isinstance(name, str)]
    return known, len(known) == len(group.pools)


def takes_part(stage: Stage, pool: str, groups: Mapping[str, GroupConfig]) -> bool:
    """Whether a stage draws from a pool, in every form of shares it states.

    Raises:
        UnsoundError: the share that says it is faulty, or so is the group.
    """
    forms = given_of(stage, SHARES)
    if not forms:
        raise UnsoundError
    return all(_has_share(getattr(stage, form), pool, groups) for form in forms)


def _has_share(named: Mapping[str, object], pool: str, groups: Mapping[str, GroupConfig]) -> bool:
    is_known = True
    for name, part in named.items():
        members, is_whole = _held(name, groups)
        if pool not in members:
            is_known = is_known and is_whole
        elif not isinstance(part, Fraction | int):
            is_known = False
        elif part > 0:
            return True
    if not is_known:
        raise UnsoundError
    return False


def _held(name: str, groups: Mapping[str, GroupConfig]) -> tuple[Collection[str], bool]:
    """The pools that a name stands for, and whether these are all."""
    if name not in groups:
        return (name,), True
    try:
        return known_pools(groups[name])
    except UnsoundError:
        return (), False


def share_faults(stage: Stage, pools: Collection[str], groups: Mapping[str, GroupConfig]) -> Iterator[Fault]:
    """Faults of the names in every form of shares that a stage states."""
    for form in given_of(stage, (*SHARES, OBJECTIVE)):
        yield from run_checks(_FORM_CHECKS, form, stage, pools, groups)


def _are_names(
    form: str, stage: Stage, pools: Collection[str], groups: Mapping[str, GroupConfig]
) -> Iterator[Fault]:
    holders: dict[str, str] = {}
    named: Mapping[str, object] = getattr(stage, form)
    for name, given in named.items():
        if name not in pools and name not in groups:
            known = [*pools, *groups]
            expected = f"a pool or group of the recipe: {', '.join(known)}"
            fix = nearest(name, known, f"add the pool under 'pools', or remove {name} here")
            yield Fault((form, name), _as_given(given, form), expected, fix)
        for pool in _held(name, groups)[0]:
            if pool in holders:
                both = (
                    f"{pool} in {holders[pool]} and in {name}"
                    if pool != name
                    else f"{name} and {holders[pool]}"
                )
                fix = f"remove {name} or {holders[pool]} from this stage's {form}"
                yield Fault((form, name), both, "each pool under one name", fix)
            holders.setdefault(pool, name)


def _as_given(share: object, form: str) -> object:
    if isinstance(share, Faulty):
        return share.given
    if not isinstance(share, Fraction):
        return share
    return percent_text(share) if form in _PERCENTS else weight_text(share)


def _name_every_pool(
    form: str, stage: Stage, pools: Collection[str], groups: Mapping[str, GroupConfig]
) -> Iterator[Fault]:
    held = [_held(name, groups) for name in getattr(stage, form)]
    if not all(is_whole for _, is_whole in held):
        raise UnsoundError
    zero = "0%" if form in _PERCENTS else "0"
    for pool in pools:
        if not any(pool in members for members, _ in held):
            what = "its labels do not count" if form == OBJECTIVE else "it takes no part"
            fix = f"write {pool}: {zero} if {what}"
            yield Fault((form, pool), NOTHING, "a share for every pool", fix, is_absence=True)


_FORM_CHECKS = (_are_names, _name_every_pool)
