"""What an amendment asks of the shares of stages in force, written into their plain values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from recipe.config.amendment import Amendment
from recipe.config.group import GroupConfig
from recipe.config.problems import Fault, nearest
from recipe.config.share_changes import Ground
from recipe.config.stage import OBJECTIVE, SHARES
from recipe.config.stage_shares import (
    amended_parts,
    faults_in,
    parts_in_force,
    read_asked,
    share_text,
    write_shares,
)

_NONE = {"quotas": "0%", "weights": 0, "quotas_tokens": 0, OBJECTIVE: "0%"}


def amend_shares(amendment: Amendment, from_pool: str | None, *, is_about_shares: bool) -> list[Fault]:
    """Write what is asked of the shares of stages in force; the faults of what cannot be.

    Args:
        amendment: everything else that changes is in its plain values.
        from_pool: the pool that takes the difference.
        is_about_shares: whether there was an override of shares, sound or not.
    """
    plain, ground = _stages(amendment), _ground(amendment.data)
    asked = {name: forms for name, forms in amendment.asked.items() if name in plain}
    found = _from_faults(from_pool, is_about_shares, ground)
    is_balanced = not found
    for name, both in asked.items():
        forms = [form for form in both if form != OBJECTIVE]
        if len(forms) > 1:
            given, fix = f"{' and '.join(forms)} together", f"keep one of {', '.join(forms)}"
            found.append(Fault(("stages", name, forms[1]), given, "one form of shares", fix))
            forms = []
        for form in [*forms, *(form for form in both if form == OBJECTIVE)]:
            try:
                read_asked(form, both[form], ground)
                named = {*both[form], *parts_in_force(amendment.recipe.stages[name], form)}
                if is_balanced and named.isdisjoint(ground.faulty):
                    _amend_stage(amendment, (name, form), plain[name], ground, from_pool)
            except PydanticCustomError as error:
                found += [fault.below(("stages", name, form)) for fault in faults_in(error)]
    return found


def _amend_stage(
    amendment: Amendment, place: tuple[str, str], plain: dict[str, Any], ground: Ground, from_pool: str | None
) -> None:
    name, form = place
    asked = amendment.asked[name][form]
    parts = amended_parts(amendment.recipe.stages[name], form, asked, ground, from_pool)
    write_shares(plain, form, parts)
    if form == "quotas_tokens" and plain.get("tokens") is not None and name not in amendment.resized:
        plain["tokens"] = int(sum(parts.values()))


def name_new_pools(amendment: Amendment) -> None:
    """Write that a new pool has no share where a stage in force does not name it.

    Not where the shares are stated anew, whole: there every pool is to be named.
    """
    ground = _ground(amendment.data)
    new = [name for name in ground.pools if name not in amendment.recipe.pools]
    for name, plain in _stages(amendment).items():
        stage, asked = amendment.recipe.stages[name], amendment.asked.get(name, {})
        anew = [form for form in asked if not parts_in_force(stage, form)]
        kept = [] if any(form in SHARES for form in anew) else list(SHARES)
        kept += [OBJECTIVE] if OBJECTIVE not in anew else []
        for form in [form for form in kept if isinstance(plain.get(form), dict)]:
            named = {pool for part in plain[form] for pool in ground.members(part)}
            plain[form].update(dict.fromkeys((pool for pool in new if pool not in named), _NONE[form]))


def _stages(amendment: Amendment) -> dict[str, dict[str, Any]]:
    """The plain values of the stages in force."""
    stages: Any = amendment.data.get("stages")
    return {
        name: stages[name]
        for name in amendment.recipe.stages
        if isinstance(stages, dict) and amendment.is_in_force(name) and isinstance(stages.get(name), dict)
    }


def _from_faults(from_pool: str | None, is_about_shares: bool, ground: Ground) -> list[Fault]:
    if from_pool is None:
        return []
    place, known = ("--from",), ", ".join(ground.pools)
    if from_pool in ground.groups:
        fix = f"name one of {', '.join(ground.members(from_pool))}"
        return [Fault(place, from_pool, "one pool, not a group", fix)]
    if from_pool not in ground.pools:
        return [Fault(place, from_pool, f"a pool of the recipe: {known}", nearest(from_pool, ground.pools))]
    if not is_about_shares:
        expected = "a changed share of a stage, whose difference the pool takes"
        return [Fault(place, from_pool, expected, "leave it out, or change a share")]
    return []


def _ground(data: Mapping[str, Any]) -> Ground:
    """What the names of an amended recipe stand for, as far as its groups are sound."""
    pools, written = data.get("pools"), data.get("groups")
    groups, faulty = dict[str, GroupConfig](), list[str]()
    for name, given in written.items() if isinstance(written, Mapping) else ():
        try:
            groups[name] = GroupConfig.model_validate(given)
        except ValidationError:
            faulty.append(name)
    known = list(pools) if isinstance(pools, Mapping) else []
    return Ground(pools=known, groups=groups, text=share_text, faulty=faulty)
