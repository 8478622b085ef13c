"""Faults between the parts of a recipe: pools against groups, stages against both, stages in a row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fractions import Fraction

from recipe.config.group import GroupConfig
from recipe.config.model import ModelConfig, PoolConfig
from recipe.config.problems import NOTHING, Fault, nearest
from recipe.config.spans import Span, stage_span
from recipe.config.stage import Stage
from recipe.maths.shares import percent_text, weight_text

_NAME = re.compile(r"[^\W.][\w-]*")


def recipe_faults(
    pools: Mapping[str, PoolConfig | None],
    groups: Mapping[str, GroupConfig | None],
    stages: Mapping[str, Stage | None],
    model: ModelConfig | None,
) -> list[Fault]:
    """Every fault between parts; a part that is faulty in itself is None and only its name counts."""
    whole_groups = {name: group for name, group in groups.items() if group is not None}
    found = _name_faults("pools", pools) + _name_faults("groups", groups) + _name_faults("stages", stages)
    for name in (name for name in groups if name in pools):
        found.append(Fault(("groups", name), name, "a name that no pool has", "rename the group or the pool"))
    for name, group in whole_groups.items():
        found += _member_faults(name, group, pools)
    for name, stage in stages.items():
        if stage is not None:
            place = ("stages", name)
            checked = [*_context_faults(stage, model), *_share_faults(stage, pools, groups)]
            found += [fault.below(place) for fault in checked]
            found += _pool_rule_faults(stage, pools, whole_groups)
    return found + _span_faults(stages)


def _name_faults(kind: str, names: Iterable[str]) -> list[Fault]:
    names = list(names)
    found = []
    if not names and kind != "groups":
        found.append(Fault((kind,), "none", f"at least one of {kind}", f"add one under '{kind}'"))
    for name in names:
        if not _NAME.fullmatch(name):
            expected = "letters, digits, _ and -, not starting with -"
            repaired = re.sub(r"[^\w-]+", "_", name).lstrip("-") or "a"
            found.append(Fault((kind, name), name, expected, f"rename it, for example to {repaired}"))
    return found


def _member_faults(name: str, group: GroupConfig, pools: Iterable[str]) -> list[Fault]:
    pools = list(pools)
    return [
        Fault(
            ("groups", name, "pools"),
            member,
            f"pools of the recipe: {', '.join(pools)}",
            nearest(member, pools),
        )
        for member in group.pools
        if member not in pools
    ]


def _context_faults(stage: Stage, model: ModelConfig | None) -> list[Fault]:
    if model is None or model.max_positions is None or stage.context <= model.max_positions:
        return []
    fix = f"lower the context, or set model.max_positions={stage.context} if the model has that many"
    expected = f"1..{model.max_positions} (model.max_positions)"
    return [Fault(("context",), stage.context, expected, fix)]


def _share_faults(
    stage: Stage, pools: Mapping[str, object], groups: Mapping[str, GroupConfig | None]
) -> list[Fault]:
    form, found = stage.shares_form, list[Fault]()
    holders: dict[str, str] = {}
    named: Mapping[str, object] = getattr(stage, form)
    for name, given in named.items():
        if name not in pools and name not in groups:
            known = [*pools, *groups]
            expected = f"a pool or group of the recipe: {', '.join(known)}"
            fix = nearest(name, known, f"add the pool under 'pools', or remove {name} here")
            found.append(Fault((form, name), _as_given(given, form), expected, fix))
        group = groups.get(name)
        for pool in group.pools if group is not None else (name,):
            if pool in holders:
                both = (
                    f"{pool} in {holders[pool]} and in {name}"
                    if pool != name
                    else f"{name} and {holders[pool]}"
                )
                fix = f"remove {name} or {holders[pool]} from this stage's {form}"
                found.append(Fault((form, name), both, "each pool under one name", fix))
            holders.setdefault(pool, name)
    unknown_members = any(groups[name] is None for name in named if name in groups)
    if not unknown_members:
        zero = "0%" if form == "quotas" else "0"
        for pool in (pool for pool in pools if pool not in holders):
            fix = f"write {pool}: {zero} if it takes no part"
            found.append(Fault((form, pool), NOTHING, "a share for every pool", fix))
    return found


def _as_given(share: object, form: str) -> object:
    if not isinstance(share, Fraction):
        return share
    return percent_text(share) if form == "quotas" else weight_text(share)


def _pool_rule_faults(
    stage: Stage, pools: Mapping[str, PoolConfig | None], groups: Mapping[str, GroupConfig]
) -> list[Fault]:
    """Faults of pools that slice in their own way, in a stage that draws from them."""
    drawn: set[str] = set()
    for name, part in stage.parts.items():
        if part:
            drawn |= set(groups[name].pools if name in groups else (name,))
    found = []
    for name, pool in pools.items():
        if pool is None or pool.slicing is None or name not in drawn:
            continue
        rule = pool.slicing.over(stage.declared_slicing).resolved(stage.context)
        for fault in rule.faults(stage.context, stage.packing.method):
            expected = f"{fault.expected}, in stage {stage.name}"
            found.append(Fault(("pools", name, "slicing", *fault.place), fault.given, expected, fault.fix))
    return found


def _span_faults(stages: Mapping[str, Stage | None]) -> list[Fault]:
    """Faults of lengths and chunks; places after a faulty stage are not known and not judged."""
    found, start = list[Fault](), 0
    for name, stage in stages.items():
        if stage is None:
            break
        span = stage_span(stage, start)
        found += [fault.below(("stages", name)) for fault in _length_faults(stage, span)]
        if span.stated < 1:
            break
        start = span.stop
    return found


def _length_faults(stage: Stage, span: Span) -> list[Fault]:
    if span.stated < 1:
        fix = f"write a position after {span.start}, or tokens: for a length of its own"
        return [Fault(("until",), stage.until, f"more than {span.start}, where the stage starts", fix)]
    found = []
    batch = span.largest_batch * stage.context
    if stage.chunk is not None and stage.chunk < batch:
        fix = f"raise the chunk to {batch} or more, or leave it out"
        found.append(Fault(("chunk",), stage.chunk, f"{batch} or more (the stage's largest batch)", fix))
    if stage.quotas_tokens is not None and (total := sum(stage.quotas_tokens.values())) != span.stated:
        fix = f"make them sum to {span.stated}, or leave the stage's length out, or use weights"
        given = f"sum {total} of {dict(stage.quotas_tokens)}"
        found.append(Fault(("quotas_tokens",), given, f"amounts that sum to {span.stated} (the length)", fix))
    return found
