"""Where a ledger stands: what is needed to add to it, read from its end.

The cost does not depend on the ledger's length: a checkpoint row points at the closing row before
it. Only after a crash or for an older step are rows looked through, last first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from recipe.errors import RecipeError
from recipe.mixing.snapshot import Snapshot
from recipe.run.accounts import Closing
from recipe.run.canonical import Plain
from recipe.run.ledger import Tail, damaged, read_tail, row_at, rows_backwards
from recipe.run.row import CLOSING_KINDS, Row, is_aside
from recipe.run.surviving import Bound


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a ledger, as seen from a step."""

    tail: Tail
    reached: Row
    """The last row of the lineage that holds a snapshot: how far the run is on record."""
    closing: Row
    """The last row of the lineage, at or before the step, that the next chunk row goes on from."""
    parent: Row | None
    """The last checkpoint of the lineage at or before the step."""
    numbered: Row | None
    """The last checkpoint row of all, discarded or not: manifests are numbered after it."""


def read_head(
    path: Path, limit: int | None = None, *, after_turn: bool = False, undone: int | None = None
) -> Head:
    """The head of a ledger as seen from step ``limit`` (default: from its end).

    A turn at the very step comes after a checkpoint there; it counts only where ``after_turn`` says
    that it was taken already. ``undone`` is the number of a turn's row that does not count, nor any
    after it.
    """
    tail = read_tail(path)
    last, numbered = _ends(path, tail)
    if last.kind != "checkpoint" or after_turn or undone is not None:
        return _search(path, tail, limit, (after_turn, undone))
    if limit is None or last.end_step <= limit:
        return Head(tail, last, _closing_before(path, last), last, numbered)
    parent, child = _ancestor(path, last, limit)
    if parent is not None and parent.end_step == limit:
        closing: Row | None = _closing_before(path, parent)
    else:
        closing = _closing_between(path, parent, child, limit)
    if closing is None:
        return _search(path, tail, limit, (False, None))
    return Head(tail, last, closing, parent, numbered)


def _ends(path: Path, tail: Tail) -> tuple[Row, Row | None]:
    """The last row of the run's course, and the last checkpoint row of all as far as it is not before it."""
    if not is_aside(tail.last):
        return tail.last, tail.last
    numbered: Row | None = None
    for row in rows_backwards(path, tail.end):
        if row.kind == "checkpoint":
            numbered = numbered or row
        if not is_aside(row):
            return row, numbered
    raise AssertionError(f"{path}: the first row is the run's creation")


def _closing_before(path: Path, checkpoint: Row) -> Row:
    """The closing row that a checkpoint names by number and place."""
    row = _earlier(path, checkpoint, "closing", "offset")
    if row is None or row.number != checkpoint.data["closing"].get("row") or row.kind not in CLOSING_KINDS:
        raise _misled(path, checkpoint, "closing", row)
    return row


def ancestor(path: Path, checkpoint: Row, pointer: str) -> Row | None:
    """The checkpoint that another one names as its ``parent``, or as the one to ``skip`` to."""
    row = _earlier(path, checkpoint, "lineage", pointer)
    if row is None:
        return None
    if row.kind != "checkpoint" or row.end_step > checkpoint.end_step:
        raise _misled(path, checkpoint, "lineage", row)
    deeper = _depth(path, checkpoint) - _depth(path, row)
    if deeper < 1 or (pointer == "parent" and deeper > 1):
        raise _misled(path, checkpoint, "lineage", row)
    return row


def _earlier(path: Path, row: Row, key: str, name: str) -> Row | None:
    pointers = row.data.get(key)
    offset = pointers.get(name, "") if isinstance(pointers, dict) else ""
    if offset is None:
        return None
    if type(offset) is not int or not 0 <= offset < row.offset:
        raise damaged(path, row.offset, f"{key} {pointers!s:.80}", f"row {row.number} to name an earlier row")
    return row_at(path, offset)


def _depth(path: Path, checkpoint: Row) -> int:
    pointers = checkpoint.data.get("lineage")
    depth = pointers.get("depth") if isinstance(pointers, dict) else None
    if type(depth) is not int:
        raise damaged(path, checkpoint.offset, f"depth {depth!r:.40}", "a whole number")
    return depth


def _misled(path: Path, row: Row, key: str, found: Row | None) -> RecipeError:
    given = f"{key} of row {row.number}: {'nothing' if found is None else f'{found.kind} row {found.number}'}"
    return damaged(path, row.offset, given, f"the {key} that was written with the row")


def _ancestor(path: Path, last: Row, limit: int) -> tuple[Row | None, Row]:
    """The nearest checkpoint of the lineage at or before a step, and the one after it; ``last`` is later."""
    child = last
    while True:
        for pointer in ("skip", "parent"):
            row = ancestor(path, child, pointer)
            if row is None:
                return None, child
            if row.end_step > limit:
                break
        else:
            return row, child
        child = row


def _closing_between(path: Path, parent: Row | None, child: Row, limit: int) -> Row | None:
    """The last closing row at or before a step between two checkpoints; None if a rewind is in between."""
    for row in rows_backwards(path, child.offset):
        if row.kind == "rewind":
            return None
        if parent is not None and row.number == parent.number:
            return _closing_before(path, parent)
        if row.kind in CLOSING_KINDS and row.end_step <= limit:
            return row
    return None


def _search(path: Path, tail: Tail, limit: int | None, turn: tuple[bool, int | None]) -> Head:
    after_turn, undone = turn
    reached = closing = parent = numbered = None
    bound = Bound()
    for row in rows_backwards(path, tail.end):
        alive = bound.keeps(row)
        near = alive and (limit is None or row.end_step <= limit)
        near = near and (undone is None or row.number < undone)
        if row.kind == "checkpoint":
            numbered = numbered or row
            if row.data.get("late"):
                continue
            if near and parent is None:
                parent = row
                closing = None if row.end_step == limit and not after_turn else closing
        if row.kind in CLOSING_KINDS:
            closing = closing or (row if near else None)
        if row.kind == "checkpoint" or row.kind in CLOSING_KINDS:
            reached = reached or (row if alive else None)
        if closing and parent and numbered and reached:
            break
    assert closing is not None and reached is not None, f"{path}: the first row counts at every step"
    return Head(tail, reached, closing, parent, numbered)


def furthest_checkpoint(path: Path, head: Head) -> Row | None:
    """The checkpoint that a run goes on from: the last of the lineage, or a late one that is further on.

    That is so where the run turned, without a checkpoint since, before the late one was committed.
    """
    furthest = head.parent
    for row in rows_backwards(path, head.tail.end):
        if not is_aside(row):
            break
        if row.kind == "checkpoint" and (furthest is None or row.end_step > furthest.end_step):
            furthest = row
    return furthest


def find_checkpoint(path: Path, head: Head, step: int) -> Row | None:
    """The checkpoint row at a step: of the lineage (``head`` as seen from there), else the last discarded."""
    if head.parent is not None and head.parent.end_step == step:
        return head.parent
    for row in rows_backwards(path, head.tail.end):
        if row.kind == "checkpoint" and row.end_step == step:
            return row
    return None


def rows_since(path: Path, tail: Tail, known: Row) -> list[Row]:
    """Rows after one that a handle knows, last first.

    Raises:
        RecipeError: the row is not where it was: somebody changed what is on record.
    """
    rows: list[Row] = []
    for row in rows_backwards(path, tail.end):
        if (row.offset, row.data["hash"]) == (known.offset, known.data["hash"]):
            return rows
        if row.number <= known.number:
            break
        rows.append(row)
    last = tail.last.number
    raise damaged(path, known.offset, f"another record, up to row {last}", f"row {known.number} as it was")


def lineage(path: Path, parent: Row | None) -> Plain:
    """Pointers of a new checkpoint row to its parent and to one ancestor further back.

    Every row has two, and any ancestor is reached in a logarithmic number of jumps.

    Source:
        E. W. Myers, "An applicative random-access stack", Information Processing Letters 17, 1983.
    """
    if parent is None:
        return {"depth": 0, "parent": None, "skip": None}
    skip = parent
    far = ancestor(path, parent, "skip")
    farther = None if far is None else ancestor(path, far, "skip")
    depth = _depth(path, parent)
    if far is not None and farther is not None:
        middle = _depth(path, far)
        skip = farther if depth - middle == middle - _depth(path, farther) else parent
    return {"depth": depth + 1, "parent": parent.offset, "skip": skip.offset}


def closings_since(path: Path, head: Head) -> list[Row]:
    """The closing rows of the lineage after its last checkpoint, up to ``head.closing``; first to last."""
    since = head.parent.number if head.parent is not None else 0
    if head.closing.number <= since:
        return []
    rows: list[Row] = []
    bound = Bound(head.closing.end_step)
    for row in rows_backwards(path, head.tail.end):
        if row.number <= since:
            break
        if bound.keeps(row) and row.kind in CLOSING_KINDS and row.number <= head.closing.number:
            rows.append(row)
    return rows[::-1]


def closing_of(row: Row, stages: Sequence[str]) -> Closing:
    """The end of the stretch that a closing row accounts for; ``stages`` in the recipe's order."""
    if "grid" not in row.data:
        return Closing(snapshot_of(row), 0, 0)
    return Closing(snapshot_of(row), stages.index(row.data["stage"]), int(row.data["grid"][1]))


def snapshot_of(row: Row) -> Snapshot:
    """The snapshot that a row holds."""
    try:
        plain: Plain = row.data["snapshot"]
        snapshot = Snapshot.from_plain(plain)
        check_sums(snapshot)
        return snapshot
    except (LookupError, TypeError, ValueError) as error:
        raise RecipeError.single(
            "the ledger is damaged",
            f"ledger.jsonl row {row.number}: snapshot",
            given=str(error),
            expected="a snapshot",
            fix="`recipe audit` names every fault; take the ledger from a copy",
        ) from error


def check_sums(snapshot: Snapshot) -> None:
    """Raise ValueError unless what is owed to all pools is what all pools gave."""
    owed, spent = (sum(getattr(pool, kind) for pool in snapshot.pools) for kind in ("owed", "spent"))
    if owed != spent:
        raise ValueError(f"what does not add up: {owed} tokens owed in all, {spent} spent")
