"""The id that somebody may have meant: the nearest one to an id that no document has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from recipe.pools import Pool
from recipe.pools.table import row_groups

Id = int | str

_GROUPS = 128
"""Row groups of a table that are looked at, some millions of documents."""
_MOST = 256


def id_groups(table: Path) -> Iterator[tuple[int, Any]]:
    """Ids of a document table, a row group at a time, with the number of its first document."""
    first = 0
    for group in row_groups(table, ("id_int", "id_str")):
        yield first, group
        first += group.num_rows


def likeness(one: str, other: str) -> float:
    """How alike two texts are, from 0 to 1."""
    return SequenceMatcher(None, one, other).ratio()


def nearest_id(pool: Pool, ways: Sequence[Id]) -> Id | None:
    """The id of a pool that is nearest to one it does not have; None where there is nothing alike.

    Args:
        pool: of some millions of documents the first ones are looked at.
        ways: the id that was asked for, as a number, a text or both.
    """
    number = next((way for way in ways if isinstance(way, int)), None)
    if pool.layout.table is None or pool.card.ids == "number":
        if number is None or not pool.num_numbers:
            return None
        return min(max(number, 0), pool.num_numbers - 1)
    near = None if number is None else _nearest_number(pool.layout.table, number)
    if near is not None:
        return near
    text = next((way for way in ways if isinstance(way, str)), str(ways[0]))
    alike = _sharing(pool.layout.table, text, pc.starts_with, lambda size: text[:size])
    alike += _sharing(pool.layout.table, text, pc.ends_with, lambda size: text[-size:])
    return max(alike, key=lambda one: likeness(one, text), default=None)


def _nearest_number(table: Path, wanted: int) -> int | None:
    inside = min(max(wanted, -(1 << 63)), (1 << 63) - 1)
    near: list[int] = []
    for _, group in islice(id_groups(table), _GROUPS):
        numbers = group["id_int"].drop_null().to_numpy()
        sides = (numbers[numbers <= inside], max), (numbers[numbers >= inside], min)
        near += [int(nearest(side)) for side, nearest in sides if len(side)]
    return min(near, key=lambda one: abs(one - wanted), default=None)


def _sharing(table: Path, text: str, has: Callable[..., Any], part: Callable[[int], str]) -> list[str]:
    """Some ids that share the longest beginning, or end, with a text."""
    most, found = 0, list[str]()
    for _, group in islice(id_groups(table), _GROUPS):
        column, size = group["id_str"], most
        while size < len(text) and pc.any(has(column, part(size + 1))).as_py():
            size += 1
        if size > most:
            most, found = size, []
        if most and len(found) < _MOST:
            found += column.filter(has(column, part(most))).slice(0, _MOST - len(found)).to_pylist()
    return found
