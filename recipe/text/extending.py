"""What new documents may not share with the pool that they are appended to: ids and groups.

Both are looked for between the passes, before anything is written.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.errors import Problem
from recipe.pools.pool import Pool
from recipe.pools.table import either, row_groups
from recipe.text.documents import MAX_PROBLEMS, RecordsError
from recipe.text.spilled import Spilled

_ID, _GROUP, _PLACE = 0, 1, 3
"""Of what is said of a new document; see `recipe.text.spill.Entry`."""
_AT_ONCE = 1 << 20
"""New ids or groups that are looked for in one reading of the pool's; about 100 bytes each."""
SHOWN = 3
"""Ids that are named; the others are counted."""
_OTHER_IDS = (
    "--place-ids takes file and line for the id, --id-key names another key; or leave these records out"
)
_OTHER_GROUPS = "name another key with --group-key, or prepare one pool of all texts, the old ones too"


def check_groups(folder: Path, num_tasks: int, extends: Pool, chosen: NDArray[np.bool_] | None) -> None:
    """Refuse new documents of groups that the extended pool has: a group's documents stand together.

    Args:
        folder: what the first pass left.
        num_tasks: of the first pass.
        extends: the pool that is there.
        chosen: by number, which new documents are appended to it; None: all.

    Raises:
        RecordsError: naming the first groups, each with its first new and its first old document.
    """
    problems = dict[int | str, Problem]()
    for wanted in _new_values(folder, num_tasks, _GROUP, chosen):
        old = dict[int | str, int]()
        for number, group in _documents_with(extends, "group", wanted):
            old.setdefault(group, number)
            if len(old) == MAX_PROBLEMS:
                break
        for group, place in _places(folder, num_tasks, _GROUP, old, chosen):
            if group not in problems:
                number, [id] = old[group], extends.ids([old[group]])
                named = f"document {number}" if id == number else f"document {number} (id {id!r})"
                given = f"group {group!r}, which the extended pool has: {named}"
                problems[group] = Problem(
                    place, given, f"groups that {extends.path} does not have", _OTHER_GROUPS
                )
    if problems:
        raise RecordsError("groups that the extended pool has already", list(problems.values()))


def _new_values(
    folder: Path, num_tasks: int, column: int, chosen: NDArray[np.bool_] | None
) -> Iterator[set[int | str]]:
    """The ids or groups of the new documents, so many at a time."""
    values = set[int | str]()
    for row in _rows(folder, num_tasks, chosen):
        if row[column] is not None:
            values.add(row[column])
        if len(values) == _AT_ONCE:
            yield values
            values = set()
    if values:
        yield values


def _rows(folder: Path, num_tasks: int, chosen: NDArray[np.bool_] | None) -> Iterator[tuple[Any, ...]]:
    """What is said of each new document."""
    spilled = Spilled(folder, num_tasks)
    for number in range(spilled.first[-1]):
        if chosen is None or chosen[number]:
            yield spilled.row(number)


def _documents_with(pool: Pool, name: str, wanted: set[int | str]) -> Iterator[tuple[int, int | str]]:
    """Number and id or group of the documents of a pool that have one of some: a look at each, no more."""
    number = 0
    for rows in row_groups(pool.layout.table_file(), (f"{name}_int", f"{name}_str")):
        values = either(rows, name)
        if not wanted.isdisjoint(values):
            yield from ((number + at, value) for at, value in enumerate(values) if value in wanted)
        number += len(values)


def _places(
    folder: Path, num_tasks: int, column: int, values: Collection[int | str], chosen: NDArray[np.bool_] | None
) -> Iterator[tuple[int | str, str]]:
    """Some ids or groups with the places of their new documents."""
    if values:
        for row in _rows(folder, num_tasks, chosen):
            if row[column] in values:
                yield row[column], row[_PLACE]


def check_new_ids(folder: Path, num_tasks: int, extends: Pool, chosen: NDArray[np.bool_] | None) -> None:
    """Refuse new documents whose ids the extended pool has.

    Args:
        folder: what the first pass left.
        num_tasks: of the first pass.
        extends: the pool that is there.
        chosen: by number, which new documents are appended to it; None: all.

    Raises:
        RecordsError: naming the first ids with both places, and how many there are.
    """
    found, total = dict[int | str, str](), 0
    for wanted in _new_values(folder, num_tasks, _ID, chosen):
        for number, id in _documents_with(extends, "id", wanted):
            total += 1
            if len(found) < SHOWN:
                [row] = extends.rows(np.array([number]))
                found[id] = f"{row.source or f'document {number:,}'} of {extends.path}"
    if found:
        more = f" (the first {SHOWN} of {total:,})" if total > len(found) else ""
        problems = [
            Problem(
                source, f"id {id!r}, as {found[id]}", "an id that the extended pool does not have", _OTHER_IDS
            )
            for id, source in _places(folder, num_tasks, _ID, found, chosen)
        ]
        raise RecordsError(f"ids that {extends.path} has already{more}", problems)
