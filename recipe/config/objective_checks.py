"""What must hold between what a stage's loss counts and what the stage samples."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from fractions import Fraction

from recipe.config.group import GroupConfig
from recipe.config.partial import UnsoundError, given_of, is_given
from recipe.config.problems import Fault
from recipe.config.stage import OBJECTIVE, SHARES, Stage


def objective_faults(
    stage: Stage, pools: Collection[str], groups: Mapping[str, GroupConfig]
) -> Iterator[Fault]:
    """Faults of pools that the loss counts and the stage does not sample: no weight would be large enough.

    Pools of groups whose shares are still open are left to `settle`.
    """
    if not is_given(stage, OBJECTIVE):
        return
    forms = given_of(stage, SHARES)
    if len(forms) != 1:
        raise UnsoundError
    sampled, counted = getattr(stage, forms[0]), stage.objective or {}
    for pool in pools:
        holder = next((name for name in counted if pool == name or pool in _members(name, groups)), None)
        if holder is not None and _has(counted, pool, groups) and _has(sampled, pool, groups) is False:
            through = "" if holder == pool else f" through {holder}"
            given = f"{pool} in the loss{through}, and not sampled"
            other = (
                f"write {pool}: 0%" if holder == pool else f"state the pools of {holder} apart, {pool}: 0%"
            )
            fix = f"give {pool} a share under {forms[0]}, or {other} under {OBJECTIVE}"
            yield Fault((OBJECTIVE, holder), given, "a pool with a share above 0: weights are finite", fix)


def _members(name: str, groups: Mapping[str, GroupConfig]) -> Collection[str]:
    return groups[name].pools if name in groups else ()


def _has(named: Mapping[str, object], pool: str, groups: Mapping[str, GroupConfig]) -> bool | None:
    """Whether a pool has a part above zero; None where that is not known yet."""
    is_known, has_part = True, False
    for name, part in named.items():
        if pool != name and pool not in _members(name, groups):
            continue
        if not isinstance(part, Fraction | int):
            is_known = False
        elif part > 0 and name in groups:
            within = groups[name].within.shares
            is_known = is_known and within is not None
            has_part = has_part or (within is not None and within.get(pool, 0) > 0)
        else:
            has_part = has_part or part > 0
    return True if has_part else False if is_known else None
