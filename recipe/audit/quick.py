"""Whether a chunk's row says what it must: a quick look that tells yes, or that it does not know.

Nearly every row of a long ledger is right, and goes on from the row before it under the same shares.
Such a row is checked here on its plain values, with the same outcome as by the full comparison, which
reads two states, writes the row anew and finds differences by name.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter, sub
from typing import Any, NoReturn

from recipe.audit.account import Plain
from recipe.audit.chain import Entry
from recipe.audit.following import COMMON, Following
from recipe.audit.lineage import TURNS, Begin, Mark
from recipe.audit.segments import Stop
from recipe.audit.state import COUNTS, LARGEST, SNAPSHOT_FORMAT, WHOLE, State
from recipe.audit.terms import Terms
from recipe.maths.rounding import owed

_OWED, _SPENT, _BODY, _OVERLAP, _SPECIAL, _PADDING, _SEQUENCES = (
    COUNTS.index(kind) for kind in ("owed", "spent", "body", "overlap", "special", "padding", "sequences")
)
FORMAT = 1
_in_snapshot = itemgetter(*COUNTS, "debt")
_in_row = itemgetter(*COUNTS, "debt", "planned")
_of_row = itemgetter("recipe", "stage", "chunk", "steps", "positions", "grid")
_of_snapshot = itemgetter("format", *WHOLE[:-1], "left", "ended")
_NUM_KEYS = (
    len(COMMON)
    + len(("kind", "recipe", "stage", "chunk", "steps", "positions", "grid"))
    + len(("counted", "pools", "groups", "snapshot"))
)


def _refuse(_text: str) -> NoReturn:
    raise ValueError("no whole number")


_WHOLE_NUMBERS = json.JSONDecoder(parse_float=_refuse, parse_constant=_refuse)


@dataclass(slots=True)
class _Lane:
    """A stretch of rows of one leg, and the last of them that was right."""

    line: int
    terms: Terms
    stage: int
    leg: int
    plain: Plain
    """Its snapshot."""
    counts: list[tuple[int, ...]]
    """Of every pool: counts and debt in it."""
    due: list[int]
    """Of every pool: owed in the leg."""
    parts: tuple[int, ...]
    whole: int
    bound: int
    begin: Begin


class Quick:
    """Looks at one row after another."""

    def __init__(self) -> None:
        """Nothing was looked at."""
        self._lane: _Lane | None = None

    def look(self, course: Following, entry: Entry) -> tuple[Mark, Stop] | None:
        """What is kept of a chunk's row that is right; None: it has to be compared in full."""
        if course.lineage.is_lost or not course.lineage.marks or not course.terms.is_known:
            return None
        lane, data = self._at(course), course.text.data[entry.offset : entry.offset + entry.size]
        if lane is None or b"true" in data or data.count(b"false") != 1:
            return None
        try:
            found = _Row(lane, course.lineage.marks[-1], _WHOLE_NUMBERS.decode(data.decode())).right()
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None
        if found is None:
            return None
        lane.line = entry.line
        planned, drift = found
        mark = Mark(
            entry, lane.plain["step"], lane.stage, planned[1], lane.terms, drift, tuple(lane.plain["left"])
        )
        return mark, Stop(entry, mark.step, planned)

    def _at(self, course: Following) -> _Lane | None:
        """The lane that the last closing row lies in, if the next row does too."""
        mark, terms = course.lineage.marks[-1], course.terms
        stage = terms.intent.stage_of(mark.step)
        layout = terms.intent.layouts[stage]
        lane = self._lane
        if lane is None or lane.line != mark.entry.line or lane.terms is not terms:
            state = course.lineage.at
            begun = course.lineage.begins
            if state is None or state.stage != stage or not begun or begun[-1].stage != layout.name:
                return None
            lane = self._lane = _lane(mark, terms, state, begun[-1])
        return lane if layout.leg_of(mark.step) == lane.leg and stage == lane.stage else None


def _lane(mark: Mark, terms: Terms, state: State, begin: Begin) -> _Lane:
    contest, plain = terms.intent.contest(state), state.to_plain()
    return _Lane(
        line=mark.entry.line,
        terms=terms,
        stage=state.stage,
        leg=terms.intent.layouts[state.stage].leg_before(state.step),
        plain=plain,
        counts=[_in_snapshot(pool) for pool in plain["pools"]],
        due=owed(contest.parts, contest.whole, state.counted),
        parts=contest.parts,
        whole=contest.whole,
        bound=contest.bound,
        begin=begin,
    )


class _Row:
    """One row against the one before it in its lane."""

    def __init__(self, lane: _Lane, before: Mark, row: Plain) -> None:
        self.lane = lane
        self.before = before
        self.row = row
        self.snapshot: Plain = row["snapshot"]
        self.layout = lane.terms.intent.layouts[lane.stage]

    def right(self) -> tuple[tuple[int, int], tuple[int, ...]] | None:
        """What the row plans for, and how far pools are ahead; None unless all of it is right."""
        planned = self._in_place()
        if planned is None:
            return None
        lane, counts = self.lane, list(map(_in_snapshot, self.snapshot["pools"]))
        if len(counts) != len(lane.counts) or len(self.row["pools"]) != len(counts):
            return None
        gained = [tuple(map(sub, after, before)) for after, before in zip(counts, lane.counts, strict=True)]
        due = self._shared(gained)
        if due is None or not self._said(gained, counts, self.layout.planned(*planned)):
            return None
        lane.plain, lane.counts, lane.due = self.snapshot, counts, due
        names, ahead = lane.terms.names, lane.begin.ahead
        drift = tuple(
            each[_SPENT] - each[_OWED] - ahead(name) for name, each in zip(names, counts, strict=True)
        )
        return planned, drift

    def _in_place(self) -> tuple[int, int] | None:
        """What the row plans for, if it ends where its chunk closes, in the leg."""
        lane, layout, at, row = self.lane, self.layout, self.lane.plain, self.row
        chunk = at["chunk"]
        step = layout.close_of(chunk)
        if at["ended"] or step >= layout.stop_step or layout.leg_before(step) != lane.leg:
            return None
        begin = self.before.planned_to if self.before.entry.kind in TURNS else chunk * layout.chunk
        planned = begin, min((chunk + 1) * layout.chunk, layout.length)
        positions = layout.positions_at(step)
        passed = positions - at["positions"]
        stated = (lane.terms.intent.version, layout.name, chunk, [at["step"], step], passed, list(planned))
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
        right = (
            len(row) == _NUM_KEYS
            and row["format"] == FORMAT
            and _of_row(row) == stated
            and len(self.snapshot) == len(snapshot) + 2
            and _of_snapshot(self.snapshot) == snapshot
        )
        return planned if right else None

    def _shared(self, gained: Sequence[tuple[int, ...]]) -> list[int] | None:
        """Owed in the leg, if all was shared out by the shares: spent, owed, debts, and their sums."""
        lane = self.lane
        counted = sum(each[_SPENT] for each in gained)
        due = owed(lane.parts, lane.whole, lane.plain["counted"] + counted)
        for index, each in enumerate(gained):
            debt = lane.whole * each[_SPENT] - lane.parts[index] * counted
            if each[-1] != debt or abs(lane.counts[index][-1] + debt) > lane.bound:
                return None
            if each[_OWED] != due[index] - lane.due[index]:
                return None
        right = (
            self.row["counted"] == counted == sum(each[_OWED] for each in gained)
            and self.snapshot["counted"] == lane.plain["counted"] + counted
            and sum(each[_SEQUENCES] for each in gained)
            == self.snapshot["sequences"] - lane.plain["sequences"]
        )
        return due if right else None

    def _said(
        self, gained: Sequence[tuple[int, ...]], counts: Sequence[tuple[int, ...]], planned: list[int]
    ) -> bool:
        """Whether the row says of every pool and group what lies between the snapshots."""
        lane, pools, context = self.lane, self.row["pools"], self.layout.context
        places = zip(lane.plain["pools"], self.snapshot["pools"], strict=True)
        for index, (name, (before, after)) in enumerate(zip(lane.terms.names, places, strict=True)):
            each, said = gained[index], pools[name]
            kinds = each[: len(COUNTS)]
            if len(said) != len(COUNTS) + 3 or _in_row(said) != (*kinds, counts[index][-1], planned[index]):
                return False
            if each[_BODY] + each[_SPECIAL] + each[_PADDING] != each[_SEQUENCES] * context:
                return False
            if min(kinds[1:]) < 0 or each[_OVERLAP] > each[_BODY] or max(counts[index][:-1]) > LARGEST:
                return False
            if not _read_on(after, len(lane.terms.intent.layouts)):
                return False
            if said["dropped"] != _lost(before.get("dropped"), after.get("dropped")):
                return False
        return bool(self.row["groups"] == self._of_groups(planned, gained))

    def _of_groups(self, planned: list[int], gained: Sequence[tuple[int, ...]]) -> Plain:
        names = self.lane.terms.names
        groups = {}
        for group, config in self.lane.terms.intent.recipe.groups.items():
            members = [names.index(name) for name in config.pools]
            groups[group] = {
                "planned": sum(planned[member] for member in members),
                "owed": sum(gained[member][_OWED] for member in members),
                "spent": sum(gained[member][_SPENT] for member in members),
            }
        return groups


def _read_on(pool: Plain, num_stages: int) -> bool:
    """Whether a pool's state is one of the usual ones: a cursor without cuts or ranges, tokens dropped."""
    epoch, block, stage, at = place = pool["cursor"]
    if min(epoch, block, at) < 0 or max(place) > LARGEST or not -1 <= stage < num_stages:
        return False
    dropped = pool.get("dropped")
    if dropped is None:
        return len(pool) == len(COUNTS) + 2
    return (
        len(pool) == len(COUNTS) + 3
        and bool(dropped)
        and 0 <= min(dropped.values()) <= max(dropped.values()) <= LARGEST
    )


def _lost(before: Plain | None, after: Plain | None) -> dict[str, Any]:
    """Tokens dropped between two states, by reason."""
    if before == after:
        return {}
    one, other = before or {}, after or {}
    found = {why: other.get(why, 0) - one.get(why, 0) for why in {*one, *other}}
    return {why: tokens for why, tokens in found.items() if tokens}
