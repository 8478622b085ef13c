"""The course of a run: rows in order as lineages, what each must say, and what can be computed again.

A rewind discards what lies behind the step it goes back to; rows after it go on from the last
closing row that is left. Every row, discarded or not, is held against the state it started from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from recipe.audit.account import (
    Plain,
    Stretch,
    chunk_row,
    cumulative,
    difference,
    stage_totals,
    warnings,
)
from recipe.audit.chain import Entry, Text
from recipe.audit.findings import Finding, compared, shown
from recipe.audit.layout import StageLayout, lay_out, stage_at
from recipe.audit.schedule import Contest
from recipe.audit.state import COUNTS, Cursor, Malformed, State, mapping, read_state, sequence, signed, whole
from recipe.config import Recipe

COMMON = ("format", "row", "time", "previous", "hash")
"""Fields of every row; the chain is checked over them."""


@dataclass(frozen=True, slots=True)
class Intent:
    """The recipe of a run, laid out."""

    recipe: Recipe
    version: int
    layouts: tuple[StageLayout, ...]

    @classmethod
    def of(cls, recipe: Recipe, version: int) -> Intent:
        """The intent of a settled recipe."""
        return cls(recipe, version, lay_out(recipe))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the pools, in order."""
        return tuple(self.recipe.pools)

    def state(self, plain: object) -> State:
        """A snapshot; raises Malformed."""
        state = read_state(plain, len(self.names), len(self.layouts))
        last = self.layouts[min(state.stage, len(self.layouts) - 1)].stop_step
        if state.step > last:
            raise Malformed("snapshot.step", f"at most {last}, the end of its stage", state.step)
        return state

    def enter(self, at: State) -> State:
        """The state, in the stage that the next step belongs to."""
        stage = min(stage_at(self.layouts, at.step), len(self.layouts) - 1)
        return at.next_stage() if stage == at.stage + 1 else at

    def contest(self, at: State) -> Contest:
        """The contest for the shares of the leg that a state is in."""
        contest = Contest(self.layouts[at.stage].parts, self.layouts[at.stage].context)
        for pool in at.left:
            contest = contest.leave(pool)
        return contest


@dataclass(frozen=True, slots=True)
class Mark:
    """A closing row of the lineage: rows after it start from its snapshot."""

    entry: Entry
    step: int
    stage: int
    """Stage that it closed a chunk of."""
    planned_to: int
    drift: tuple[int, ...] = ()
    """By pool: spent less owed since the stage began."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint row of the lineage."""

    entry: Entry
    step: int
    manifest: int
    manifest_hash: str
    depth: int
    skip: int | None
    """Where the row of an older ancestor begins."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A row whose numbers follow from the state at a step."""

    entry: Entry
    step: int
    planned: tuple[int, int] = (0, 0)
    """Of a chunk row: planned from, planned to."""
    reached: Entry | None = None
    """Of a rewind row: the row with the furthest snapshot that it discards."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows that are computed again from one closing row."""

    start: Entry
    stops: tuple[Stop, ...]
    stage: int
    """Index of the stage that its steps lie in."""
    positions: int
    holdings: Mapping[str, Plain]
    """The pools that were read."""


@dataclass(slots=True)
class Course:
    """Follows the rows; findings by row number, so that a replay can put better ones in their place."""

    text: Text
    intent: Intent
    findings: dict[int, list[Finding]] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    at: State | None = None
    """Snapshot of the last mark; None when it cannot be read."""
    checkpoints: list[Checkpoint] = field(default_factory=list)
    checkpointed: State | None = None
    begins: list[tuple[str, State]] = field(default_factory=list)
    """States at which the stages of the lineage were entered."""
    is_whole: bool = True
    """No row is missing so far."""
    warned: list[Plain] = field(default_factory=list)
    told: list[Plain] = field(default_factory=list)
    """Warnings of the lineage of checkpoints."""
    told_at: dict[int, tuple[Plain, ...]] = field(default_factory=dict)
    numbered: tuple[int, str | None] = (0, None)
    """Number and hash of the last manifest on record, discarded or not."""
    holdings: dict[str, Plain] = field(default_factory=dict)
    readable_from: int = 0
    stops: list[Stop] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    manifests: dict[int, tuple[Entry, Plain]] = field(default_factory=dict)
    """By number: the checkpoint row, and what the manifest must say."""
    numbers: set[int] = field(default_factory=set)
    """Of all manifests that rows name."""
    run: str | None = None
    recipe_hash: str | None = None

    def follow(self) -> None:
        """Go through all rows."""
        kinds = {
            "created": self._created,
            "chunk": self._chunk,
            "checkpoint": self._checkpoint,
            "rewind": self._rewind,
            "warning": self._warning,
            "data": self._data,
        }
        for entry in self.text.entries:
            if entry.computed is None:
                self.at = None
                continue
            self.findings[entry.line] = []
            row = self.text.row(entry)
            if entry.kind not in kinds:
                self._say(entry, "shape", "kind", f"one of {', '.join(kinds)}", entry.kind)
                continue
            try:
                if row.get("format") != 1:
                    raise Malformed("format", "1", row.get("format"))
                kinds[entry.kind](entry, row)
            except Malformed as fault:
                self._say(entry, "shape", fault.field, fault.expected, fault.observed)
                if entry.kind in ("created", "chunk", "data"):
                    self.at = None
        self._end_segment()

    def _say(self, entry: Entry, check: str, field: str, expected: object, observed: object) -> None:
        where = f"{entry.where}: {field}" if field else entry.where
        self.findings[entry.line].append(Finding(check, where, str(expected), shown(observed)))

    def _compare(self, entry: Entry, check: str, expected: Plain, row: Plain) -> None:
        observed = {key: value for key, value in row.items() if key not in COMMON}
        self.findings[entry.line] += compared(check, entry.where, expected, observed)

    def _created(self, entry: Entry, row: Plain) -> None:
        if entry.line:
            self._say(entry, "lineage", "kind", "one row of this kind, the first", "created")
            return
        self.holdings = dict(mapping(row.get("pools"), "pools"))
        self.run, self.recipe_hash = row.get("run"), row.get("recipe_hash")
        state = self.intent.state(row.get("snapshot"))
        start = State(pools=state.pools).to_plain()
        zero = replace(state.pools[0], cursor=Cursor(), debt=0, counts=dict.fromkeys(COUNTS, 0), dropped={})
        start["pools"] = [zero.to_plain() for _ in state.pools]
        self.findings[entry.line] += compared("lineage", entry.where, {"snapshot": start}, {"snapshot": row["snapshot"]})
        self.marks, self.at = [Mark(entry, 0, 0, 0)], state
        self.checkpointed = state

    def _chunk(self, entry: Entry, row: Plain) -> None:
        """A closing row: held against the states before and after it."""
        steps = [whole(step, "steps") for step in sequence(row.get("steps"), "steps")]
        end = self.intent.state(row.get("snapshot"))
        if len(steps) != 2:
            raise Malformed("steps", "two steps", steps)
        if self.at is None or not self.marks:
            self._restart(entry, row, end)
            return
        start = self.intent.enter(self.at)
        layout = self.intent.layouts[start.stage]
        if not self._tiles(entry, start, steps, end):
            self._restart(entry, row, end)
            return
        planned = self._planned(entry, start, end)
        stretch = Stretch(start, end, *planned, self.intent.version)
        self._compare(entry, "sums", chunk_row(self.intent.recipe, layout, stretch), row)
        self._identities(entry, start, end, layout.context)
        self._begin_stage(layout.name, start)
        begin = self.begins[-1][1]
        drift = tuple(_drift(b.counts) - _drift(a.counts) for a, b in zip(begin.pools, end.pools, strict=True))
        self.stops.append(Stop(entry, self._expected_stop(entry, start, end), planned))
        self._end_segment()
        self.marks.append(Mark(entry, end.step, start.stage, planned[1], drift))
        self.at = end

    def _restart(self, entry: Entry, row: Plain, end: State) -> None:
        """The row before cannot be read: take up the course again behind this one."""
        grid = sequence(row.get("grid"), "grid")
        self._end_segment()
        self.marks.append(Mark(entry, end.step, end.stage, signed(grid[-1] if grid else None, "grid")))
        self.at = end
        self.begins, self.is_whole = [], False

    def _begin_stage(self, name: str, start: State) -> None:
        if not self.begins or self.begins[-1][0] != name:
            self.begins.append((name, start))

    def _expected_stop(self, entry: Entry, start: State, end: State) -> int:
        close = self.intent.layouts[start.stage].close_of(start.chunk)
        return end.step if self._closed_early(entry, end) and start.step < end.step < close else close

    def _closed_early(self, entry: Entry, end: State) -> bool:
        """Whether new data was accepted right behind the row: that closes a chunk before it is full."""
        after = self.text.entries[entry.line + 1] if entry.line + 1 < len(self.text.entries) else None
        return after is not None and after.kind == "data" and self.text.row(after).get("step") == end.step

    def _planned(self, entry: Entry, start: State, end: State) -> tuple[int, int]:
        layout = self.intent.layouts[start.stage]
        full = min((start.chunk + 1) * layout.chunk, layout.length)
        if self.marks[-1].entry.kind == "data":
            begin = self.marks[-1].planned_to if self.marks[-1].stage == start.stage else 0
        else:
            begin = start.chunk * layout.chunk
        if self._expected_stop(entry, start, end) < layout.close_of(start.chunk):
            return begin, min(max(begin, end.stage_positions), layout.length)
        return begin, full

    def _tiles(self, entry: Entry, start: State, steps: list[int], end: State) -> bool:
        """The row begins where the one before ends, and ends where its chunk does; False after a gap."""
        layout = self.intent.layouts[start.stage]
        if steps[0] != start.step:
            self._say(entry, "lineage", "steps.0", f"{start.step}, where row {self.marks[-1].entry.number} ends", steps[0])
        stop = self._expected_stop(entry, start, end)
        if steps[0] != start.step and end.step != stop:
            return False
        if end.step != stop and not (end.ended and start.step < end.step < stop):
            self._say(entry, "lineage", "snapshot.step", f"{stop}, where chunk {start.chunk} of {layout.name} closes", end.step)
        self._skeleton(entry, start, end)
        return True

    def _skeleton(self, entry: Entry, start: State, end: State) -> None:
        """What of a snapshot follows from its step alone."""
        layout = self.intent.layouts[start.stage]
        if not start.step <= end.step <= layout.stop_step:
            self._say(entry, "lineage", "snapshot.step", f"{start.step}..{layout.stop_step}", end.step)
            return
        positions = layout.positions_at(end.step)
        expected = {
            "stage": start.stage,
            "positions": positions,
            "stage_positions": positions - layout.first_position,
            "sequences": start.sequences + layout.sequences_between(start.step, end.step),
        }
        observed = {name: getattr(end, name) for name in expected}
        self.findings[entry.line] += compared("sums", f"{entry.where}: snapshot", expected, observed)

    def _identities(self, entry: Entry, start: State, end: State, context: int) -> None:
        """Sums that hold in every row, and the bound on debts."""
        gained = [difference(a, b) for a, b in zip(start.pools, end.pools, strict=True)]
        totals = {kind: sum(pool[kind] for pool in gained) for kind in ("owed", "spent", "sequences")}
        if totals["owed"] != totals["spent"]:
            self._say(entry, "sums", "sum of owed", f"{totals['spent']}, the sum of spent", totals["owed"])
        if totals["sequences"] != end.sequences - start.sequences:
            self._say(entry, "sums", "sum of sequences", end.sequences - start.sequences, totals["sequences"])
        for name, pool in zip(self.intent.names, gained, strict=True):
            held = pool["body"] + pool["special"] + pool["padding"]
            if held != pool["sequences"] * context:
                expected = f"{pool['sequences'] * context} positions of {pool['sequences']} sequences"
                self._say(entry, "sums", f"pools.{name}: body + special + padding", expected, held)
            if any(pool[kind] < 0 for kind in COUNTS if kind != "owed") or pool["overlap"] > pool["body"]:
                self._say(entry, "sums", f"pools.{name}", "counts that grow, overlap within body", pool)
        self._debts(entry, end)

    def _debts(self, entry: Entry, end: State) -> None:
        try:
            contest = self.intent.contest(end)
        except (ValueError, ZeroDivisionError):
            return
        if not contest.whole:
            self._say(entry, "drift", "snapshot.left", "a pool that is left", list(end.left))
            return
        for name, pool in zip(self.intent.names, end.pools, strict=True):
            if not contest.within_bound(pool.debt):
                bound = f"at most {contest.slack // contest.scale} of 1/{contest.whole} tokens from its share"
                self._say(entry, "drift", f"snapshot: debt of {name}", bound, pool.debt)

    def _checkpoint(self, entry: Entry, row: Plain) -> None:
        state = self.intent.state(row.get("snapshot"))
        number, hashed = whole(row.get("manifest"), "manifest"), row.get("manifest_hash")
        parent = self.checkpoints[-1] if self.checkpoints else None
        depth, skip = self._lineage(parent)
        closing = self.marks[-1].entry if self.marks else entry
        expected = {
            **{key: value for key, value in row.items() if key in ("uri", "gpu_hours", "manifest_hash")},
            "kind": "checkpoint",
            "step": state.step,
            "recipe": self.intent.version,
            "manifest": self.numbered[0] + 1,
            "positions": state.positions,
            "cumulative": cumulative(self.intent.names, state),
            "closing": {"row": closing.number, "offset": closing.offset},
            "lineage": {"depth": depth, "parent": parent and parent.entry.offset, "skip": skip},
            "snapshot": row.get("snapshot"),
        }
        self._compare(entry, "sums", expected, row)
        if self.at is not None:
            start = self.intent.enter(self.at) if state.step > self.at.step else self.at
            self._skeleton(entry, start, state)
            self._debts(entry, state)
            self._warnings(entry, state)
            self.stops.append(Stop(entry, state.step))
            self.manifests[number] = (entry, self._manifest(entry, row, state))
        self.checkpoints.append(Checkpoint(entry, state.step, number, str(hashed), depth, skip))
        self.numbered = (number, str(hashed))
        self.numbers.add(number)
        self.checkpointed = state

    def _lineage(self, parent: Checkpoint | None) -> tuple[int, int | None]:
        """Depth of a new checkpoint, and the ancestor it points at: any is reached in few jumps."""
        if parent is None:
            return 0, None
        known = {point.entry.offset: point for point in self.checkpoints}
        far = known.get(parent.skip) if parent.skip is not None else None
        farther = known.get(far.skip) if far is not None and far.skip is not None else None
        if far and farther and parent.depth - far.depth == far.depth - farther.depth:
            return parent.depth + 1, far.skip
        return parent.depth + 1, parent.entry.offset

    def _warnings(self, entry: Entry, state: State) -> None:
        """Pools that passed their readings since the checkpoint before are named by rows of their own."""
        if self.checkpointed is not None:
            expected = warnings(self.intent.recipe, self.checkpointed, state)
            observed = [{k: v for k, v in row.items() if k not in COMMON} for row in self.warned]
            self.findings[entry.line] += compared("lineage", f"warnings before {entry.where}", expected, observed)
        self.told += [{k: v for k, v in row.items() if k not in COMMON} for row in self.warned]
        self.told_at[entry.line] = tuple(self.told)
        self.warned = []

    def _manifest(self, entry: Entry, row: Plain, state: State) -> Plain:
        """What the manifest of a checkpoint row must say, apart from the trainer's words."""
        before, parent = self.numbered[1], self.checkpoints[-1] if self.checkpoints else None
        begins, at = list(self.begins), self.at
        if at is not None and state.step > at.step:
            begun = self.intent.enter(at)
            name = self.intent.layouts[begun.stage].name
            begins += [] if begins and begins[-1][0] == name else [(name, begun)]
        return {
            "number": row.get("manifest"),
            "time": row.get("time"),
            "previous": before,
            "parent": parent and {"number": parent.manifest, "hash": parent.manifest_hash},
            "state": state,
            "stages": stage_totals(self.intent.names, begins, state) if self.is_whole and begins else None,
            "warnings": self.told_at.get(entry.line, ()),
            "ledger": {"row": (entry.number or 0) - 1, "head": entry.previous},
            "gpu_hours": row.get("gpu_hours"),
            "uri": row.get("uri"),
            "hash": row.get("manifest_hash"),
            "holdings": dict(self.holdings),
            "readable_from": self.readable_from,
        }

    def _rewind(self, entry: Entry, row: Plain) -> None:
        back = whole(row.get("to_step"), "to_step")
        reached, furthest = self._reached(), self._reached_entry()
        self._end_segment()
        while len(self.marks) > 1 and self.marks[-1].step > back:
            self.marks.pop()
        while self.checkpoints and self.checkpoints[-1].step > back:
            self.checkpoints.pop()
        parent = self.checkpoints[-1] if self.checkpoints else None
        self.at = self._state_of(self.marks[-1].entry) if self.marks else None
        self.checkpointed = self._state_of(parent.entry if parent else self.text.entries[0])
        self.begins = [begin for begin in self.begins if begin[1].step < back or begin[1].step == 0]
        self.told = list(self.told_at.get(parent.entry.line, ())) if parent else []
        self.warned = []
        expected = {
            "kind": "rewind",
            "from_step": reached.step if reached else row.get("from_step"),
            "to_step": back,
            "manifest": parent.manifest if parent and parent.step == back else None,
            "discarded": row.get("discarded"),
        }
        if reached and back >= reached.step:
            self._say(entry, "lineage", "to_step", f"a step before {reached.step}", back)
        there = self.checkpointed if not parent or parent.step == back else None
        if reached and there and there.step == back:
            expected["discarded"] = self._discarded(there, reached)
        elif reached and furthest:
            self.stops = [Stop(entry, back, reached=furthest)]
            self._end_segment()
        self._compare(entry, "sums", expected, row)

    def _discarded(self, there: State, reached: State) -> Plain:
        pairs = zip(self.intent.names, there.pools, reached.pools, strict=True)
        return {name: difference(a, b) for name, a, b in pairs}

    def _reached_entry(self) -> Entry | None:
        """The row of the lineage with the furthest snapshot."""
        mark, point = self.marks[-1:], self.checkpoints[-1:]
        entries = [held.entry for held in (*mark, *point)]
        return max(entries, key=lambda entry: entry.line, default=None)

    def _reached(self) -> State | None:
        """The furthest snapshot of the lineage."""
        entry = self._reached_entry()
        return self.at if self.marks and entry is self.marks[-1].entry else self.checkpointed

    def _warning(self, entry: Entry, row: Plain) -> None:
        self.warned.append(row)

    def _data(self, entry: Entry, row: Plain) -> None:
        """New data was accepted: the pools that changed are read from their beginning."""
        state, step = self.intent.state(row.get("snapshot")), whole(row.get("step"), "step")
        changes = mapping(row.get("pools"), "pools")
        for name, change in changes.items():
            before = mapping(change, f"pools.{name}").get("before")
            held = self.holdings.get(name, {}).get("fingerprint")
            if before != held:
                self._say(entry, "lineage", f"pools.{name}.before", held, before)
        if self.at is not None and self.at.step == step:
            expected = replace(
                self.at,
                pools=tuple(
                    replace(pool, cursor=Cursor()) if name in changes else pool
                    for name, pool in zip(self.intent.names, self.at.pools, strict=True)
                ),
            )
            self.findings[entry.line] += compared(
                "sums", f"{entry.where}: snapshot", expected.to_plain(), row["snapshot"]
            )
        elif self.at is not None:
            self._say(entry, "lineage", "step", f"{self.at.step}, where the row before ends", step)
        self._end_segment()
        for name, change in changes.items():
            self.holdings[name] = {"fingerprint": change.get("after"), "changed": True}
        self.readable_from = step
        mark = self.marks[-1] if self.marks else Mark(entry, step, state.stage, 0)
        self.marks.append(replace(mark, entry=entry, step=step))
        self.at = state

    def _state_of(self, entry: Entry) -> State | None:
        try:
            return self.intent.state(self.text.row(entry).get("snapshot"))
        except Malformed:
            return None

    def _end_segment(self) -> None:
        """What was collected since the last mark becomes one piece of work."""
        if self.stops and self.at is not None and self.marks:
            furthest = max(stop.step for stop in self.stops)
            positions = self._positions(furthest) - self._positions(self.at.step)
            stage = self.intent.enter(self.at).stage
            self.segments.append(
                Segment(self.marks[-1].entry, tuple(self.stops), stage, max(0, positions), dict(self.holdings))
            )
        self.stops = []

    def _positions(self, step: int) -> int:
        stage = min(stage_at(self.intent.layouts, step), len(self.intent.layouts) - 1)
        return self.intent.layouts[stage].positions_at(step)

    def last(self) -> State | None:
        """The state the run has reached."""
        return self._reached()


def _drift(counts: Mapping[str, int]) -> int:
    return counts["spent"] - counts["owed"]


def drift_of(course: Course) -> dict[str, dict[str, int]]:
    """By stage and pool: spent less owed at the row end where it is largest, over the lineage."""
    table: dict[str, dict[str, int]] = {}
    for mark in course.marks:
        if mark.drift:
            stage = table.setdefault(course.intent.layouts[mark.stage].name, {})
            for name, tokens in zip(course.intent.names, mark.drift, strict=True):
                if abs(tokens) > abs(stage.get(name, 0)) or name not in stage:
                    stage[name] = tokens
    return table


