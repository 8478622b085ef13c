"""Which documents have the tags, ids, groups and sources that a filter wants.

The document table is read once, a row group at a time, and of it only the columns that are named. A tag is
called as it is; one inside another, or one called like a column, by its way: ``meta.language``, ``tags.id``,
``source.file``. A value that is a list has every value in it.

Numbers are compared exactly, as the decimals they are written as. A text is never a number of the table,
unless it spells one in the recipe: YAML may not tell ``0.5`` from a text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recipe.config.view import COLUMNS, number_of
from recipe.errors import Problem, RecipeError
from recipe.pools.pool import Pool
from recipe.pools.table import either, row_groups

_STORED = {
    "tags": ("tags",),
    "source": ("source",),
    "id": ("id_int", "id_str"),
    "group": ("group_int", "group_str"),
}
_MISSING = object()
_SHOWN = 12

Condition = Callable[[Any], bool]


def passing(pool: Pool, where: Mapping[str, Any]) -> NDArray[np.bool_]:
    """bool[num_numbers]: the documents of a pool's folder of which every condition holds.

    Raises:
        RecipeError: a column that no document has; the nearest one is named.
    """
    conditions = {column: condition_of(how) for column, how in where.items()}
    passed = np.ones(pool.num_numbers, np.bool_)
    seen, start = set[str](), 0
    for columns in _batches(pool, sorted({_stored_in(column) for column in where})):
        size = len(next(iter(columns.values()))[1])
        for stored, (values, of_row) in columns.items():
            named = {column: held for column, held in conditions.items() if _stored_in(column) == stored}
            kept = [_passes(stored, value, named, seen) for value in values]
            passed[start : start + size] &= np.array(kept, np.bool_)[of_row]
        start += size
    if unknown := [column for column in where if _way(column) not in seen]:
        raise RecipeError(f"pool {pool.name}", [_unknown(pool, column, seen) for column in unknown])
    return passed


def condition_of(how: object) -> Condition:
    """What a value must be like: one of some, between two, or none of some.

    >>> at_least = condition_of({"min": "0.5"})
    >>> at_least(1), at_least(Decimal("0.25")), at_least("1")
    (True, False, False)
    """
    if not isinstance(how, Mapping):
        return _one_of(how if isinstance(how, list) else [how])
    if "not" in how:
        inner = _one_of(how["not"] if isinstance(how["not"], list) else [how["not"]])
        return lambda value: not inner(value)
    low, high = _end(how.get("min")), _end(how.get("max"))
    return lambda value: any(_between(one, low, high) for one in _each(value))


def _one_of(wanted: Iterable[Any]) -> Condition:
    texts = {one for one in wanted if isinstance(one, str)}
    truths = {one for one in wanted if isinstance(one, bool)}
    numbers = {number for one in wanted if (number := number_of(one)) is not None}

    def holds(value: Any) -> bool:
        for one in _each(value):
            among = truths if isinstance(one, bool) else texts if isinstance(one, str) else numbers
            if isinstance(one, bool | str | int | Decimal) and one in among:
                return True
        return False

    return holds


def _each(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else (value,)


def _end(given: Any) -> Any:
    """An end of a span: an exact number, a text, or None where it is open."""
    number = number_of(given)
    return given if number is None else number


def _between(value: Any, low: Any, high: Any) -> bool:
    kind = str if isinstance(low if low is not None else high, str) else (int, Decimal)
    if isinstance(value, bool) or not isinstance(value, kind):
        return False
    return (low is None or bool(low <= value)) and (high is None or bool(value <= high))


def _stored_in(column: str) -> str:
    """The part of the table that a column lies in."""
    first = column.partition(".")[0]
    return first if first in COLUMNS and (first == "source" or column == first) else "tags"


def _way(column: str) -> str:
    """A column's full name."""
    return column if _stored_in(column) != "tags" or column.startswith("tags.") else f"tags.{column}"


def _passes(stored: str, value: Any, named: Mapping[str, Condition], seen: set[str]) -> bool:
    """Whether the conditions on one value of the table hold; what is in it is noted."""
    found = dict(_flat(value, stored))
    seen.update(found)
    return all(condition(found.get(_way(column), _MISSING)) for column, condition in named.items())


def _flat(value: Any, way: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _flat(below, f"{way}.{key}")
    elif value is not None:
        yield way, value


def _batches(pool: Pool, wanted: list[str]) -> Iterator[dict[str, tuple[list[Any], NDArray[np.int64]]]]:
    """Row groups: by part of the table its different values, and int64[n] which of them each document has."""
    if pool.layout.table is None or (wanted == ["id"] and pool.card.ids == "number"):
        for start in range(0, pool.num_numbers, 1 << 15):
            numbers = range(start, min(start + (1 << 15), pool.num_numbers))
            yield {
                stored: (list(numbers), np.arange(len(numbers)))
                if stored == "id"
                else ([None], np.zeros(len(numbers), np.int64))
                for stored in wanted
            }
        return
    names = [name for stored in wanted for name in _STORED[stored]]
    if not pool.layout.table.is_file():
        raise RecipeError.single(
            f"pool {pool.name}", str(pool.layout.table), given="no such file",
            expected="the document table: the pool holds documents by what it says of them",
            fix="copy it too (`--with-documents` of a hand-over)",
        )  # fmt: skip
    for table in row_groups(pool.layout.table, names):
        yield {stored: _different(table, stored) for stored in wanted}


def _different(table: pa.Table, stored: str) -> tuple[list[Any], NDArray[np.int64]]:
    if stored in ("id", "group"):
        return either(table, stored), np.arange(table.num_rows)
    encoded = table[stored].combine_chunks().dictionary_encode(null_encoding="encode")
    values = [
        None if text is None else json.loads(text, parse_float=Decimal)
        for text in encoded.dictionary.to_pylist()
    ]
    return values, encoded.indices.to_numpy().astype(np.int64)


def _unknown(pool: Pool, column: str, seen: set[str]) -> Problem:
    names = sorted(way.removeprefix("tags.") for way in seen) or ["none: its documents say nothing of it"]
    near = get_close_matches(column, names, n=1, cutoff=0.5)
    return Problem(
        f"where.{column}",
        column,
        f"what its documents have: {', '.join(names[:_SHOWN])}{', …' if len(names) > _SHOWN else ''}",
        f"did you mean {near[0]!r}?" if near else "use one of these, or prepare the pool with this tag",
    )
