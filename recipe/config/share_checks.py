"""What must hold between a stage's shares and the pools and groups of the recipe."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction

from recipe.config.group import GroupConfig, members_of
from recipe.config.partial import Faulty, UnsoundError, given_of, run_checks
from recipe.config.problems import NOTHING, Fault, nearest
from recipe.config.stage import OBJECTIVE, SHARES, Stage
from recipe.maths.shares import percent_text, weight_text

_PERCENTS = ("quotas", OBJECTIVE)


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
        for pool in members_of(name, groups)[0]:
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
    held = [members_of(name, groups) for name in getattr(stage, form)]
    if not all(is_whole for _, is_whole in held):
        raise UnsoundError
    zero = "0%" if form in _PERCENTS else "0"
    for pool in pools:
        if not any(pool in members for members, _ in held):
            what = "its labels do not count" if form == OBJECTIVE else "it takes no part"
            fix = f"write {pool}: {zero} if {what}"
            yield Fault((form, pool), NOTHING, "a share for every pool", fix, is_absence=True)


_FORM_CHECKS = (_are_names, _name_every_pool)
