"""Pool sets that cannot be expanded: nobody knows which pools they make, and the rest is judged all the same.

Names that the recipe uses and that such a set could make stand for its pools, so that a share of one is not
said to be of an unknown pool; what is found wrong with them is not told, for it may not be so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from recipe.config.pool_patterns import fits
from recipe.config.pool_sets import STAR, filled
from recipe.config.problems import Fault
from recipe.config.stage import OBJECTIVE, SHARES

_ANY = "x"
"""What the ``*`` of a pattern may stand for where no name says it."""


def lost_sets(found: Iterable[Fault]) -> list[str]:
    """Names of the entries that have a fault, of those that `expand_pool_sets` found."""
    return list(dict.fromkeys(fault.place[1] for fault in found))


def with_stand_ins(
    data: Mapping[str, Any], pools: Mapping[str, Any], lost: Collection[str], named: Iterable[str] = ()
) -> tuple[dict[str, Any], list[str]]:
    """The pools with those that stand for pools of lost sets, and the names of these.

    Args:
        data: a recipe's plain values, as they are written.
        pools: what its ``pools`` make, as far as it is known.
        lost: names of the sets that cannot be expanded, and of entries that are about no pool of any.
        named: more names that are used.

    >>> data = {"pools": {"lang_*": {}}, "stages": {"one": {"quotas": {"web": "60%", "lang_no": "40%"}}}}
    >>> with_stand_ins(data, {"web": {"path": "web"}}, ["lang_*"])[1]
    ['lang_x', 'lang_no']
    """
    used = [name for name in (*_named(data), *named) if any(fits(key, [name]) for key in lost)]
    filled_in = (filled(name, [_ANY] * name.count(STAR)) for name in (*used, *lost))
    stand_ins = [name for name in dict.fromkeys(filled_in) if not _says_where(pools.get(name))]
    return {**pools, **{name: {"path": _ANY} for name in stand_ins}}, stand_ins


def tellable(found: Iterable[Fault], stand_ins: Collection[str]) -> list[Fault]:
    """The faults that are not about pools which stand for others; none of these is named in a message."""
    return [
        replace(fault, expected=_without(fault.expected, stand_ins))
        for fault in found
        if not any(part in stand_ins for part in fault.place) and str(fault.given) not in stand_ins
    ]


def _without(expected: str, stand_ins: Collection[str]) -> str:
    head, colon, names = expected.partition(": ")
    known = [name for name in names.split(", ") if name not in stand_ins]
    return f"{head}{colon}{', '.join(known)}"


def _says_where(pool: Any) -> bool:
    """Whether an entry is a pool by itself, not more about one of a set."""
    return isinstance(pool, Mapping) and any(pool.get(key) is not None for key in ("path", "stock", "of"))


def _named(data: Mapping[str, Any]) -> Iterator[str]:
    """Pools that anything is said of, by their names."""
    pools, groups, stages = (_mapping(data.get(key)) for key in ("pools", "groups", "stages"))
    yield from map(str, pools)
    yield from (str(_mapping(pool).get("of")) for pool in pools.values())
    for group in groups.values():
        listed = _mapping(group).get("pools") if isinstance(group, Mapping) else group
        yield from map(str, listed if isinstance(listed, list | tuple) else ())
    for stage in (_mapping(data.get("every_stage")), *map(_mapping, stages.values())):
        for key in (*SHARES, OBJECTIVE, "transform"):
            yield from map(str, _mapping(stage.get(key)))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
