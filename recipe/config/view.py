"""Views: documents of a pool that a filter chooses, and which of several views a document belongs to.

A pool with ``of`` is a view of the folder that another pool names; a pool with a ``path`` may have the same
filters. All pools of one folder so named are a *family*. In a stage every document is owned by the first pool
of the family that draws from the folder there and whose filter it passes: pools with filters come first, in
the recipe's order, then those that take whatever is left.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import PlainValidator, WithJsonSchema

from recipe.config.free import exact
from recipe.config.problems import Fault, faults, nearest

if TYPE_CHECKING:
    from recipe.config.model import PoolConfig

By = Literal["document", "group", "needs"]
FILTERS = ("where", "min_tokens", "max_tokens")
"""Keys of a pool that leave documents out."""
VIEW_KEYS = ("of", *FILTERS, "by")
"""Keys of a pool that say what it holds."""
COLUMNS = ("id", "group", "source")
"""Columns of a document table besides the tags, which are called as they are."""

_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?")
_CONDITIONS = ("min", "max", "not")
_HOW = "a value, a list of values, {min: …, max: …}, or {not: …}"


@dataclass(frozen=True, slots=True, eq=False)
class Filter:
    """Which documents of a folder a pool holds."""

    where: Mapping[str, Any]
    """Conditions by column, as they are written; all must hold."""
    min_tokens: int | None
    max_tokens: int | None
    by: By

    def to_plain(self) -> dict[str, Any]:
        """What tells it from another one; conditions in the order of their columns."""
        where = [[column, self.where[column]] for column in sorted(self.where)]
        return {"where": where, "min": self.min_tokens, "max": self.max_tokens, "by": self.by}


def number_of(given: object) -> Decimal | None:
    """The exact number that a value is, or that a text spells; None for anything else.

    >>> number_of("0.50"), number_of(3), number_of(True), number_of("3rd")
    (Decimal('0.50'), Decimal('3'), None, None)
    """
    if isinstance(given, str):
        return Decimal(given) if _NUMBER.fullmatch(given) else None
    return Decimal(given) if isinstance(given, int) and not isinstance(given, bool) else None


def _read_where(given: object) -> dict[str, Any]:
    example = "write it like {language: en, quality: {min: 0.5}}"
    if not isinstance(given, Mapping) or not given:
        raise faults([Fault((), given, "a mapping of columns to conditions", example)])
    found = [fault for column, how in given.items() for fault in _condition_faults((str(column),), how)]
    if found:
        raise faults(found)
    return {str(column): exact(how) for column, how in given.items()}


def _condition_faults(place: tuple[str, ...], how: object) -> Iterator[Fault]:
    if not isinstance(how, Mapping):
        yield from _value_faults(place, how)
        return
    if not how:
        yield Fault(place, how, _HOW, "write {min: 0.5}")
    for key, value in how.items():
        if key not in _CONDITIONS:
            yield Fault((*place, str(key)), value, "one of min, max, not", nearest(key, _CONDITIONS))
        elif key == "not":
            yield from _value_faults((*place, "not"), value)
        elif not _is_value(value) or isinstance(value, bool):
            yield Fault((*place, str(key)), value, "a number or a text", f"write {{{key}: 0.5}}")
    if "not" in how and len(how) > 1:
        yield Fault((*place, "not"), "not beside another", "not alone", "keep one of them")
    ends = [exact(how[key]) for key in ("min", "max") if _is_value(how.get(key))]
    if len(ends) == 2:
        yield from _span_faults(place, ends[0], ends[1])


def _span_faults(place: tuple[str, ...], low: Any, high: Any) -> Iterator[Fault]:
    numbers = number_of(low), number_of(high)
    if (numbers[0] is None) != (numbers[1] is None):
        yield Fault((*place, "max"), high, "a number, as min, or a text, as min", "write both alike")
    elif (low > high) if numbers[0] is None or numbers[1] is None else numbers[0] > numbers[1]:
        yield Fault((*place, "max"), high, f"{low} or more (min)", f"raise it to {low}, or lower min")


def _value_faults(place: tuple[str, ...], given: object) -> Iterator[Fault]:
    values = given if isinstance(given, list | tuple) else [given]
    if not values:
        yield Fault(place, given, "at least one value", "name a value, or leave the column out")
    for value in values:
        if not _is_value(value):
            yield Fault(place, value, _HOW, "write the value as the documents have it")


def _is_value(given: object) -> bool:
    return isinstance(given, str | int) or (isinstance(given, float) and isfinite(given))


_VALUE = {"type": ["string", "number", "boolean"]}
_END = {"type": ["string", "number"]}
_ENDS = {"min": _END, "max": _END}
_SOME = {"anyOf": [_VALUE, {"type": "array", "items": _VALUE, "minItems": 1}]}
_CONDITION = {
    "anyOf": [
        *_SOME["anyOf"],
        {"type": "object", "properties": _ENDS, "additionalProperties": False, "minProperties": 1},
        {"type": "object", "properties": {"not": _SOME}, "additionalProperties": False, "required": ["not"]},
    ]
}  # fmt: skip

Where = Annotated[
    dict[str, Any],
    PlainValidator(_read_where),
    WithJsonSchema({"type": "object", "additionalProperties": _CONDITION, "minProperties": 1}),
]
"""Conditions on columns of the document table."""


def parent_name(pools: Mapping[str, PoolConfig], name: str) -> str:
    """The pool whose folder a pool reads: itself, unless it is a view of another one."""
    return pools[name].of or name


def has_filter(pool: PoolConfig) -> bool:
    """Whether it leaves out any document of its folder."""
    return any(getattr(pool, key) is not None for key in FILTERS)


def filter_of(pool: PoolConfig) -> Filter | None:
    """The filter of a pool; None of one that holds all of its folder."""
    if not has_filter(pool):
        return None
    return Filter(pool.where or {}, pool.min_tokens, pool.max_tokens, pool.by or "document")


def family(pools: Mapping[str, PoolConfig], name: str) -> tuple[str, ...]:
    """The pools that read the folder of a pool, in the order in which they own documents."""
    parent = parent_name(pools, name)
    members = [other for other, pool in pools.items() if other == parent or pool.of == parent]
    return tuple(
        members if len(members) == 1 else sorted(members, key=lambda one: not has_filter(pools[one]))
    )


def families(pools: Mapping[str, PoolConfig]) -> list[tuple[str, ...]]:
    """Families of more than one pool, in the order of their parents."""
    parents = dict.fromkeys(pool.of for pool in pools.values() if pool.of is not None)
    return [family(pools, name) for name in pools if name in parents]
