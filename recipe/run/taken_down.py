"""Take-downs hold wherever a run goes on: no place is opened that would serve withdrawn documents again.

A rewind takes a run back to a state that knows nothing of what was withdrawn later. Every rank starts
from that state, so it cannot be changed on the way: the withdrawal is put on record again at that
checkpoint (``recipe withdraw RUN --again --at STEP``), which gives a new state, and the run opens there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from recipe.errors import Problem, RecipeError
from recipe.mixing.withdrawals import Withdrawals
from recipe.pools import Pool
from recipe.run.canonical import digest
from recipe.run.folder import RunFolder
from recipe.run.ledger import read_tail, row_at
from recipe.run.row import Row
from recipe.run.rows_of_kind import rows_of_kind
from recipe.run.shapes import WITHDRAWN, lacking
from recipe.run.tracing.documents import find_ids

Lists = dict[str, list[int]]
"""Numbers of documents by pool."""


def refuse_serving_again(folder: RunFolder, withdrawn: Withdrawals, step: int) -> None:
    """Raise RecipeError if documents that a run withdrew are not withdrawn at a place.

    Args:
        folder: the run's.
        withdrawn: in force at the place.
        step: of the place.
    """
    lacking = withdrawn_elsewhere(folder, withdrawn)
    if lacking:
        told = ", ".join(f"{len(numbers):,} of pool {name}" for name, numbers in lacking.items())
        raise RecipeError.single(
            f"{folder.path}: withdrawn documents would be served again",
            f"step {step}",
            given=f"a place before a withdrawal on record: {told}",
            expected="a place where they are withdrawn",
            fix=f"recipe withdraw {folder.path} --again --at {step} withdraws them there too; then open it",
        )


def withdrawn_elsewhere(folder: RunFolder, withdrawn: Withdrawals) -> Lists:
    """Documents that a run withdrew at any time and that are served at a place; by pool, rising."""
    lists: dict[str, set[int]] = {}
    for row in _confirmed(folder):
        for name, numbers in _list_of(folder, row)["documents"].items():
            lists.setdefault(name, set()).update(numbers)
    for row in rows_of_kind(folder.ledger, "data"):
        for name in row.data["pools"]:
            lists.pop(name, None)  # other data: its numbers are other documents'
    lacking = {
        name: sorted(numbers - set(withdrawn.documents(name).tolist())) for name, numbers in lists.items()
    }
    return {name: numbers for name, numbers in lacking.items() if numbers}


def cleared(
    folder: RunFolder, withdrawn: Withdrawals, pools: Mapping[str, Pool], replaced: Sequence[str]
) -> Withdrawals:
    """What is withdrawn once some pools were replaced: nothing of them, for the documents are gone.

    Raises:
        RecipeError: a pool that was replaced holds a withdrawn document, or nobody knows their ids.
    """
    problems = []
    for name in replaced:
        if not len(withdrawn.documents(name)):
            continue
        ids = _ids(folder, name)
        if len(ids) < len(withdrawn.documents(name)):
            given = "documents withdrawn before the branch, whose ids this run does not have"
            fix = "put the old data back, or start a run from the new"
            problems.append(Problem(f"pools.{name}", given, "the data they were withdrawn from", fix))
            continue
        still, _ = find_ids({name: pools[name]}, [(one,) for one in ids])
        if still:
            shown = ", ".join(map(repr, pools[name].ids([document.number for document in still[:5]])))
            given = f"{len(still):,} documents that were withdrawn: {shown}"
            problems.append(Problem(f"pools.{name}", given, "data without them", "prepare it without them"))
    if problems:
        raise RecipeError(f"{folder.path}: new data of pools with withdrawn documents", problems)
    return withdrawn.without(replaced)


def _ids(folder: RunFolder, pool: str) -> list[int | str]:
    found: dict[int | str, None] = {}
    for row in rows_of_kind(folder.ledger, "withdraw"):
        found |= dict.fromkeys(_list_of(folder, row)["pools"].get(pool, ()))
    return list(found)


def _confirmed(folder: RunFolder) -> Iterator[Row]:
    """Withdrawals that were put on record whole: a checkpoint row follows in the same append."""
    end = read_tail(folder.ledger).end
    for row in rows_of_kind(folder.ledger, "withdraw"):
        after = row
        with folder.ledger.open("rb") as file:
            file.seek(row.offset)
            file.readline()
            offset = file.tell()
            while offset < end:
                after = row_at(folder.ledger, offset)
                if after.kind != "warning":
                    break
                file.seek(offset)
                file.readline()
                offset = file.tell()
        if after.kind == "checkpoint":
            yield row


def _list_of(folder: RunFolder, row: Row) -> dict[str, Any]:
    """The documents that a withdrawal's row names, as its list has them."""
    path = folder.path / "withdrawn" / Path(str(row.data["file"])).name
    given: object = "another list"
    try:
        if row.data["file"] == f"withdrawn/{path.name}":
            data = path.read_bytes()
            plain = json.loads(data)
            if digest(data) == row.data["file_hash"] and lacking(plain, WITHDRAWN) is None:
                return dict(plain)
    except (OSError, ValueError, RecursionError) as error:
        given = getattr(error, "strerror", None) or error
    raise RecipeError.single(
        f"{path}: not the list of withdrawn documents",
        str(path),
        given=given,
        expected=f"contents with hash {row.data['file_hash']}, as row {row.number} says",
        fix="take the file from a copy of the run; `recipe audit` names every fault",
    )
