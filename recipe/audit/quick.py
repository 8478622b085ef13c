"""Whether rows of chunks say what they must: a quick look that tells yes, or that it does not know.

Nearly every row of a long ledger is right, and goes on from the row before it under the same shares.
Such a row is checked here on its plain values, with the same outcome as by the full comparison, which
reads two states, writes the row anew and finds differences by name.
"""

from __future__ import annotations

from collections.abc import Collection
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.audit.account import Plain
from recipe.audit.following import Following
from recipe.audit.lane import ChunkRow, Lane, counts_of, rows_in_place
from recipe.audit.lineage import Mark
from recipe.audit.segments import Stop
from recipe.audit.state import COUNTS, LARGEST
from recipe.maths.rounding import owed

_OWED, _SPENT, _BODY, _OVERLAP, _SPECIAL, _PADDING, _SEQUENCES = (
    COUNTS.index(kind) for kind in ("owed", "spent", "body", "overlap", "special", "padding", "sequences")
)
_said = itemgetter(*COUNTS, "planned")


class Quick:
    """Takes rows of chunks as long as they are right, many at once."""

    def __init__(self) -> None:
        """Nothing was looked at."""
        self._lane: Lane | None = None

    def take(self, course: Following, line: int) -> int:
        """Rows from a line on that are right, each going on from the one before it; 0: look closer."""
        if course.lineage.is_lost or not course.lineage.marks or not course.terms.is_known:
            return 0
        lane = self._at(course)
        rows = [] if lane is None else list(rows_in_place(course, lane, line))
        if lane is None or not rows:
            return 0
        try:
            ahead, due = _numbers(lane, rows)
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError):
            return 0
        for row, drift in zip(rows, ahead, strict=False):
            left = tuple(row.snapshot["left"])
            mark = Mark(
                row.entry, row.snapshot["step"], lane.stage, row.planned[1], lane.terms, tuple(drift), left
            )
            course.go_on(mark, Stop(row.entry, mark.step, row.planned), lane.drawn)
        if ahead:
            last = rows[len(ahead) - 1]
            lane.line, lane.plain, lane.due = last.entry.line, last.snapshot, due
            lane.counts = np.array([counts_of(pool) for pool in last.snapshot["pools"]], np.int64)
        return len(ahead)

    def _at(self, course: Following) -> Lane | None:
        """The lane that the last closing row lies in, if the next row does too."""
        mark, lane, begun = course.lineage.marks[-1], self._lane, course.lineage.begins
        if not begun or mark.terms is not course.terms:
            return None
        if lane is None or lane.line != mark.entry.line or lane.begun is not begun[-1]:
            state = course.lineage.at
            if state is None or begun[-1].stage != course.intent.layouts[state.stage].name:
                return None
            lane = self._lane = Lane.of(mark, state, begun[-1])
        is_inside = lane.layout.first_step <= mark.step < lane.layout.stop_step
        return lane if is_inside and lane.layout.leg_of(mark.step) == lane.leg else None


def _numbers(lane: Lane, rows: list[ChunkRow]) -> tuple[list[list[int]], NDArray[np.int64]]:
    """How far pools are ahead after each row, up to the first that is not right; and what is owed there."""
    names, planned = lane.terms.names, lane.layout.planned
    said = np.array([[_said(row.row["pools"][name]) for name in names] for row in rows], np.int64)
    given = [[counts_of(pool) for pool in row.snapshot["pools"]] for row in rows]
    counts = np.array([lane.counts.tolist(), *given], np.int64)
    gained = np.diff(counts, axis=0)
    tokens = np.array([planned(*row.planned) for row in rows], np.int64)
    totals, body = gained.sum(axis=1), gained[:, :, _BODY]
    counted = (lane.plain["counted"] + totals[:, _SPENT].cumsum()).tolist()
    parts, whole = lane.contest.parts, lane.contest.whole
    due = np.array([lane.due.tolist(), *(owed(parts, whole, tokens) for tokens in counted)], np.int64)
    context = lane.layout.context
    held = body + gained[:, :, _SPECIAL] + gained[:, :, _PADDING]
    right = (
        (said[:, :, :-1] == gained).all(axis=(1, 2))
        & (said[:, :, -1] == tokens).all(axis=1)
        & (held == gained[:, :, _SEQUENCES] * context).all(axis=1)
        & (gained[:, :, 1:] >= 0).all(axis=(1, 2))
        & (gained[:, :, _OVERLAP] <= body).all(axis=1)
        & ((counts[1:, :, 1:] >= 0) & (counts[1:, :, 1:] <= LARGEST)).all(axis=(1, 2))
        & (gained[:, :, _OWED] == np.diff(due, axis=0)).all(axis=1)
        & (totals[:, _OWED] == totals[:, _SPENT])
    )
    num, before = 0, lane.plain
    of_groups = _groups(lane, gained, tokens)
    for row, fits, groups, sums, spent in zip(
        rows, right.tolist(), of_groups, totals.tolist(), gained[:, :, _SPENT].tolist(), strict=True
    ):
        if not fits or row.row["groups"] != groups or not _shared(lane, row, before, (sums, spent)):
            break
        if not _read_on(lane, row, before):
            break
        num, before = num + 1, row.snapshot
    ahead = counts[1 : num + 1, :, _SPENT] - counts[1 : num + 1, :, _OWED] - lane.ahead
    return ahead.tolist(), due[num]


def _shared(lane: Lane, row: ChunkRow, before: Plain, gained: tuple[list[int], list[int]]) -> bool:
    """Whether tokens were shared out by the shares: debts, and sums. ``gained``: by kind; spent, by pool."""
    (sums, spent), whole = gained, lane.contest.whole
    counted = sums[_SPENT]
    here = zip(row.snapshot["pools"], before["pools"], lane.contest.parts, spent, strict=True)
    for pool, was, part, tokens in here:
        debt = pool["debt"]
        if debt != was["debt"] + whole * tokens - part * counted or abs(debt) > lane.bound:
            return False
    return bool(
        row.row["counted"] == counted
        and row.snapshot["counted"] == before["counted"] + counted
        and sums[_SEQUENCES] == row.snapshot["sequences"] - before["sequences"]
    )


def _groups(lane: Lane, gained: NDArray[np.int64], planned: NDArray[np.int64]) -> list[Plain]:
    """What every row says of its groups."""
    rows: list[Plain] = [{} for _ in planned]
    for group, members in lane.groups.items():
        columns = (planned[:, members], gained[:, members, _OWED], gained[:, members, _SPENT])
        for row, *numbers in zip(rows, *(column.sum(axis=1).tolist() for column in columns), strict=True):
            row[group] = dict(zip(("planned", "owed", "spent"), numbers, strict=True))
    return rows


def _read_on(lane: Lane, row: ChunkRow, before: Plain) -> bool:
    """Whether states are usual ones, without cuts and ranges, and the row says what pools lost."""
    num_stages, usual, stated = len(lane.terms.intent.layouts), len(COUNTS) + 2, row.row["pools"]
    for name, was, after in zip(lane.terms.names, before["pools"], row.snapshot["pools"], strict=True):
        said, dropped = stated[name], after.get("dropped")
        epoch, block, stage, at = place = after["cursor"]
        if len(said) != usual + 1 or said["debt"] != after["debt"] or not -1 <= stage < num_stages:
            return False
        if epoch < 0 or block < 0 or at < 0 or max(place) > LARGEST:
            return False
        if len(after) != usual + (dropped is not None):
            return False
        if dropped is not None and not (dropped and _are_whole(dropped.values())):
            return False
        if said["dropped"] != _lost(was.get("dropped"), dropped):
            return False
    return True


def _are_whole(tokens: Collection[int]) -> bool:
    return min(tokens) >= 0 and max(tokens) <= LARGEST


def _lost(before: Plain | None, after: Plain | None) -> dict[str, Any]:
    """Tokens dropped between two states, by reason."""
    if before == after:
        return {}
    one, other = before or {}, after or {}
    found = {why: other.get(why, 0) - one.get(why, 0) for why in {*one, *other}}
    return {why: tokens for why, tokens in found.items() if tokens}
