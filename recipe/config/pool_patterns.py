"""Names with a ``*`` in groups and shares: every pool whose name they fit.

A group may list them. A share of one is that of a group called the same, which is made where it is not
written: ``quotas: {"lang_*": 40%}`` divides by stock, ``groups: {"lang_*": {within: even}}`` says how else.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from recipe.config.pool_sets import STAR, matcher
from recipe.config.problems import Fault
from recipe.config.stage import OBJECTIVE, SHARES


def expand_patterns(data: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault]]:
    """A recipe's plain values in which groups list pools by their names, and the faults of patterns."""
    pools = data.get("pools")
    groups = data.get("groups", {})
    if not isinstance(pools, Mapping) or not isinstance(groups, Mapping | None):
        return dict(data), []
    faults = list[Fault]()
    known = [str(name) for name in pools]
    named = {name: _listed(name, group, known, faults) for name, group in (groups or {}).items()}
    for pattern in _in_shares(data):
        if pattern not in named and (fitting := fits(pattern, known)):
            named[pattern] = {"pools": fitting}
    if named == groups or not named:
        return dict(data), faults
    return {**data, "groups": named}, faults


def fits(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a pattern fits, in their order.

    >>> fits("lang_*", ["web", "lang_no", "lang_"])
    ['lang_no']
    """
    return [name for name in names if matcher(pattern).fullmatch(name)]


def whole_sets(data: Mapping[str, Any], sets: Collection[str]) -> tuple[dict[str, Any], list[Fault]]:
    """Faults of groups that are called as a pool set and list other pools than its name fits.

    A share of the name would be one of some of its pools, unseen. In the values that are returned such a
    group has them all, so that nothing else is told of it.

    Args:
        data: plain values, with pools instead of sets.
        sets: names of the sets that were written.
    """
    pools, groups = data.get("pools"), data.get("groups")
    if not isinstance(pools, Mapping) or not isinstance(groups, Mapping):
        return dict(data), []
    whole, faults, known = dict(groups), list[Fault](), [str(name) for name in pools]
    for name in [name for name in groups if name in sets]:
        fitting, group = fits(name, known), groups[name]
        listed = _pools_of(_listed(name, group, known, []))
        if not isinstance(listed, list | tuple) or {str(pool) for pool in listed} == set(fitting):
            continue
        given = f"{', '.join(map(str, listed)) or 'none'}, in a group that is called as a pool set"
        expected = f"the pools that {name} fits: {', '.join(fitting)}"
        fix = "leave pools out, or call the group otherwise, here and where it has a share"
        faults.append(Fault(("groups", name, "pools"), given, expected, fix))
        whole[name] = {**group, "pools": fitting} if isinstance(group, Mapping) else fitting
    return {**data, "groups": whole} if faults else dict(data), faults


def _pools_of(group: Any) -> Any:
    return group.get("pools") if isinstance(group, Mapping) else group


def _listed(name: str, group: Any, known: list[str], faults: list[Fault]) -> Any:
    """A group with pools instead of patterns; one that is called as a pattern may leave its pools out."""
    if STAR in str(name) and isinstance(group, Mapping) and "pools" not in group:
        group = {"pools": [name], **group}
    pools = _pools_of(group)
    if not isinstance(pools, list | tuple) or not any(STAR in str(entry) for entry in pools):
        return group
    found = list[Any]()
    for entry in pools:
        fitting = fits(entry, known) if isinstance(entry, str) and STAR in entry else [entry]
        if not fitting:
            expected = f"a pattern that a pool's name fits: {', '.join(known)}"
            faults.append(
                Fault(("groups", str(name), "pools"), entry, expected, f"correct or remove {entry}")
            )
        written = [other for other in pools if other not in found]
        found += [pool for pool in fitting if pool == entry or pool not in (*found, *written)]
    return {**group, "pools": found} if isinstance(group, Mapping) else found


def _in_shares(data: Mapping[str, Any]) -> Iterator[str]:
    """Patterns that stages give shares to."""
    stages = data.get("stages")
    written = [data.get("every_stage"), *(stages.values() if isinstance(stages, Mapping) else ())]
    for stage in written:
        for form in (*SHARES, OBJECTIVE):
            shares = stage.get(form) if isinstance(stage, Mapping) else None
            yield from (name for name in shares if STAR in str(name)) if isinstance(shares, Mapping) else ()
