"""Whether rows of chunks say what they must: a quick look that tells yes, or that it does not know.

Nearly every row of a long ledger is right, and goes on from the row before it under the same shares.
Such a row is checked here on its plain values, with the same outcome as by the full comparison, which
reads two states, writes the row anew and finds differences by name.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from recipe.audit.account import Plain
from recipe.audit.chain import Entry
from recipe.audit.following import COMMON, Following
from recipe.audit.layout import StageLayout
from recipe.audit.lineage import TURNS, Begin, Mark
from recipe.audit.schedule import Contest
from recipe.audit.segments import Stop
from recipe.audit.state import COUNTS, LARGEST, SNAPSHOT_FORMAT, WHOLE, State
from recipe.audit.terms import Terms
from recipe.maths.rounding import owed

_OWED, _SPENT, _BODY, _OVERLAP, _SPECIAL, _PADDING, _SEQUENCES = (
    COUNTS.index(kind) for kind in ("owed", "spent", "body", "overlap", "special", "padding", "sequences")
)
FORMAT = 1
_MOST = 16
"""Rows that are looked at together."""
_given = itemgetter(*COUNTS)
_said = itemgetter(*COUNTS, "planned")
_of_row = itemgetter("format", "recipe", "stage", "chunk", "steps", "positions", "grid")
_of_snapshot = itemgetter("format", *WHOLE[:-1], "left", "ended")
_NUM_KEYS = len({*COMMON, "kind", "recipe", "stage", "chunk", "steps", "positions", "grid"}) + len(
    ("counted", "pools", "groups", "snapshot")
)


def _refuse(_text: str) -> NoReturn:
    raise ValueError("no whole number")


_WHOLE_NUMBERS = json.JSONDecoder(parse_float=_refuse, parse_constant=_refuse)


@dataclass(slots=True)
class _Lane:
    """A stretch of rows of one leg, and the last of them that was right."""

    line: int
    terms: Terms
    layout: StageLayout
    stage: int
    leg: int
    contest: Contest
    bound: int
    drawn: frozenset[str]
    groups: dict[str, list[int]]
    """By name, which pools."""
    begun: Begin
    """Of the stage."""
    ahead: NDArray[np.int64]
    """int64[pools]: spent less owed when the stage began."""
    plain: Plain
    """Snapshot of the row."""
    counts: NDArray[np.int64]
    """int64[pools, kinds]: in it."""
    due: NDArray[np.int64]
    """int64[pools]: owed in the leg."""

    @classmethod
    def of(cls, mark: Mark, state: State, begin: Begin) -> _Lane:
        """From a closing row on, in the leg that its state stands in."""
        terms, plain = mark.terms, state.to_plain()
        intent, names = terms.intent, terms.names
        layout, contest = intent.layouts[state.stage], intent.contest(state)
        return cls(
            line=mark.entry.line,
            terms=terms,
            layout=layout,
            stage=state.stage,
            leg=layout.leg_before(state.step),
            contest=contest,
            bound=contest.bound,
            drawn=intent.drawn(state.stage, state.step, state.step),
            groups={
                group: [names.index(name) for name in config.pools]
                for group, config in intent.recipe.groups.items()
            },
            begun=begin,
            ahead=np.array([begin.ahead(name) for name in names], np.int64),
            plain=plain,
            counts=np.array([_given(pool) for pool in plain["pools"]], np.int64),
            due=np.array(owed(contest.parts, contest.whole, state.counted), np.int64),
        )


@dataclass(frozen=True, slots=True)
class _Row:
    """A chunk's row that ends where it must."""

    entry: Entry
    row: Plain
    snapshot: Plain
    planned: tuple[int, int]


class Quick:
    """Takes rows of chunks as long as they are right, many at once."""

    def __init__(self) -> None:
        """Nothing was looked at."""
        self._lane: _Lane | None = None

    def take(self, course: Following, line: int) -> int:
        """Rows from a line on that are right, each going on from the one before it; 0: look closer."""
        if course.lineage.is_lost or not course.lineage.marks or not course.terms.is_known:
            return 0
        lane = self._at(course)
        rows = [] if lane is None else list(_in_place(course, lane, line))
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
            lane.counts = np.array([_given(pool) for pool in last.snapshot["pools"]], np.int64)
        return len(ahead)

    def _at(self, course: Following) -> _Lane | None:
        """The lane that the last closing row lies in, if the next row does too."""
        mark, lane, begun = course.lineage.marks[-1], self._lane, course.lineage.begins
        if not begun or mark.terms is not course.terms:
            return None
        if lane is None or lane.line != mark.entry.line or lane.begun is not begun[-1]:
            state = course.lineage.at
            if state is None or begun[-1].stage != course.intent.layouts[state.stage].name:
                return None
            lane = self._lane = _Lane.of(mark, state, begun[-1])
        is_inside = lane.layout.first_step <= mark.step < lane.layout.stop_step
        return lane if is_inside and lane.layout.leg_of(mark.step) == lane.leg else None


def _in_place(course: Following, lane: _Lane, line: int) -> Iterator[_Row]:
    """Rows of chunks from a line on, up to the first that does not end where its chunk closes in the leg."""
    before, at = course.lineage.marks[-1], lane.plain
    begin = before.planned_to if before.entry.kind in TURNS else at["chunk"] * lane.layout.chunk
    for entry in course.text.entries[line : line + _MOST]:
        data = course.text.data[entry.offset : entry.offset + entry.size]
        if entry.kind != "chunk" or entry.computed is None or b"true" in data or data.count(b"false") != 1:
            return
        try:
            row = _WHOLE_NUMBERS.decode(data.decode())
            planned = _planned(lane, row, at, begin)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return
        if planned is None:
            return
        yield _Row(entry, row, row["snapshot"], planned)
        at, begin = row["snapshot"], (row["chunk"] + 1) * lane.layout.chunk


def _planned(lane: _Lane, row: Plain, at: Plain, begin: int) -> tuple[int, int] | None:
    """What a row plans for; None unless it ends where its chunk closes, inside the leg."""
    layout, chunk, here = lane.layout, at["chunk"], row["snapshot"]
    step = layout.close_of(chunk)
    if at["ended"] or step >= layout.stop_step or layout.leg_before(step) != lane.leg:
        return None
    planned = begin, min((chunk + 1) * layout.chunk, layout.length)
    positions = layout.positions_at(step)
    passed = positions - at["positions"]
    version, grid = lane.terms.intent.version, list(planned)
    stated = (FORMAT, version, layout.name, chunk, [at["step"], step], passed, grid)
    snapshot = (
        SNAPSHOT_FORMAT,
        step,
        lane.stage,
        positions,
        positions - layout.first_position,
        at["sequences"] + passed // layout.context,
        layout.closed_by(step),
        at["left"],
        False,
    )
    num_pools = len(lane.counts)
    right = (
        len(row) == _NUM_KEYS
        and _of_row(row) == stated
        and len(here) == len(snapshot) + 2
        and _of_snapshot(here) == snapshot
        and len(row["pools"]) == len(here["pools"]) == num_pools
    )
    return planned if right else None


def _numbers(lane: _Lane, rows: list[_Row]) -> tuple[list[list[int]], NDArray[np.int64]]:
    """How far pools are ahead after each row, up to the first that is not right; and what is owed there."""
    names, planned = lane.terms.names, lane.layout.planned
    said = np.array([[_said(row.row["pools"][name]) for name in names] for row in rows], np.int64)
    given = [[_given(pool) for pool in row.snapshot["pools"]] for row in rows]
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


def _shared(lane: _Lane, row: _Row, before: Plain, gained: tuple[list[int], list[int]]) -> bool:
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


def _groups(lane: _Lane, gained: NDArray[np.int64], planned: NDArray[np.int64]) -> list[Plain]:
    """What every row says of its groups."""
    rows: list[Plain] = [{} for _ in planned]
    for group, members in lane.groups.items():
        columns = (planned[:, members], gained[:, members, _OWED], gained[:, members, _SPENT])
        for row, *numbers in zip(rows, *(column.sum(axis=1).tolist() for column in columns), strict=True):
            row[group] = dict(zip(("planned", "owed", "spent"), numbers, strict=True))
    return rows


def _read_on(lane: _Lane, row: _Row, before: Plain) -> bool:
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
