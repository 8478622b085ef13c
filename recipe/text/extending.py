"""What new documents may not share with the pool that they are appended to: ids and groups.

Both are looked for between the passes, before anything is written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.errors import Problem
from recipe.pools.pool import Pool
from recipe.pools.table import either, row_groups
from recipe.text.documents import MAX_PROBLEMS, Document, RecordsError
from recipe.text.shuffle import unit_key
from recipe.text.spill import documents_of_keys, first_numbers, id_hash, ids_of_task, row_of_task

SHOWN = 3
"""Ids that are named; the others are counted."""
_OTHER_IDS = (
    "--place-ids takes file and line for the id, --id-key names another key; or leave these records out"
)
_OTHER_GROUPS = "name another key with --group-key, or prepare one pool of all texts, the old ones too"


def check_groups(
    folder: Path, num_tasks: int, extends: Pool, seed: int, chosen: NDArray[np.bool_] | None
) -> None:
    """Refuse new documents of groups that the extended pool has: a group's documents stand together.

    Args:
        folder: what the first pass left.
        num_tasks: of the first pass.
        extends: the pool that is there.
        seed: of the keys by which new documents are sorted.
        chosen: by number, which new documents are appended to it; None: all.

    Raises:
        RecordsError: naming the first groups, each with its first new and its first old document.
    """
    keys = np.array([_key(seed, group) for _, _, group in _group_starts(extends)], np.uint64)
    if not len(keys):
        return
    new = dict[int | str, str]()
    for number, (_, group, _, place, *_) in documents_of_keys(folder, num_tasks, np.unique(keys)):
        if group is not None and (chosen is None or chosen[number]):
            new.setdefault(group, place)
        if len(new) == MAX_PROBLEMS:
            break
    problems = dict[int | str, Problem]()
    for number, id, group in _group_starts(extends) if new else ():
        if group in new and group not in problems:
            named = f"document {number}" if id is None else f"document {number} (id {id!r})"
            given = f"group {group!r}, which the extended pool has: {named}"
            problems[group] = Problem(
                new[group], given, f"groups that {extends.path} does not have", _OTHER_GROUPS
            )
    if problems:
        raise RecordsError("groups that the extended pool has already", list(problems.values()))


def _key(seed: int, group: Any) -> int:
    return unit_key(seed, Document(id=0, text="", source="", group=group))[0]


def _group_starts(pool: Pool) -> Iterator[tuple[int, Any, int | str]]:
    """Number, id and group of the first document of each group of a pool."""
    number, before = 0, None
    for rows in row_groups(pool.layout.table_file(), ("id_int", "id_str", "group_int", "group_str")):
        for id, group in zip(either(rows, "id"), either(rows, "group"), strict=True):
            if group is not None and (type(group), group) != before:
                yield number, id, group
            before = None if group is None else (type(group), group)
            number += 1


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
    first = first_numbers(folder, num_tasks)
    of_tasks = []
    for number in range(num_tasks):
        hashes = ids_of_task(folder, number)
        of_tasks.append(hashes if chosen is None else hashes[chosen[first[number] : first[number + 1]]])
    new = np.sort(np.concatenate([*of_tasks, np.zeros(0, np.uint64)]))
    found, total = dict[int | str, str](), 0
    for id, place in _ids_there(extends):
        at = np.searchsorted(new, wanted := np.uint64(id_hash(id)))
        if at < len(new) and new[at] == wanted:
            total += 1
            if len(found) < SHOWN:
                found[id] = place
    if found:
        more = f" (the first {SHOWN} of {total:,})" if total > len(found) else ""
        problems = [
            Problem(
                source, f"id {id!r}, as {found[id]}", "an id that the extended pool does not have", _OTHER_IDS
            )
            for id, source in _places(folder, num_tasks, found)
        ]
        raise RecordsError(f"ids that {extends.path} has already{more}", problems)


def _ids_there(pool: Pool) -> Iterator[tuple[int | str, str]]:
    """Every id of a pool, with where its document came from, as far as the pool says it."""
    number = 0
    for rows in row_groups(pool.layout.table_file(), ("id_int", "id_str", "source")):
        for id, source in zip(either(rows, "id"), rows["source"].to_pylist(), strict=True):
            if id is not None:
                named = json.loads(source) if source else f"document {number:,}"
                yield id, f"{named} of {pool.path}"
            number += 1


def _places(folder: Path, num_tasks: int, ids: dict[int | str, str]) -> Iterator[tuple[int | str, str]]:
    """The ids with their places among the sources."""
    hashes = np.array([id_hash(id) for id in ids], np.uint64)
    for number in range(num_tasks):
        for place in np.flatnonzero(np.isin(ids_of_task(folder, number), hashes)).tolist():
            id, _, _, source, *_ = row_of_task(folder, number, place)
            if id in ids:
                yield id, source
