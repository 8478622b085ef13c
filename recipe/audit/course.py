"""The course of a run: every row, discarded later or not, held against the state it started from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from recipe.audit import chunks, created, sayings, turns
from recipe.audit.account import Plain, Stretch, by_name, chunk_row, cumulative, difference, warnings
from recipe.audit.chain import Entry
from recipe.audit.chunks import Between
from recipe.audit.findings import compared
from recipe.audit.following import Following, body
from recipe.audit.lineage import TURNS, Checkpoint, Mark
from recipe.audit.quick import Quick
from recipe.audit.segments import Stop
from recipe.audit.state import Malformed, PoolState, State, sequence, signed, whole
from recipe.audit.statement import must_state
from recipe.audit.terms import Terms
from recipe.audit.withdrawals import Known, lacking

FORMAT = 1
_FAULTS = (Malformed, ValueError, LookupError, ArithmeticError, TypeError, AttributeError)


class Course(Following):
    """Follows the rows; a chunk's row that a quick look finds right is not compared in full."""

    _withdrawn: Known | None = None
    """In force at the last checkpoint."""

    def follow(self) -> None:
        """Go through all rows."""
        quick, line, entries = Quick(), 0, self.text.entries
        for first in entries[:1]:  # for rows behind a damaged first one
            self.lineage.begin(Mark(first, 0, 0, 0, Terms(self.first)), self.first.start())
        while line < len(entries):
            taken = quick.take(self, line) if entries[line].kind == "chunk" else 0
            if not taken:
                self._entry(entries[line])
            line += taken or 1
        self.end_segment()

    def _entry(self, entry: Entry) -> None:
        """One line; whatever is wrong with it stops nothing."""
        self.findings[entry.line] = []
        if entry.computed is None:
            self._lose()
            return
        try:
            self._row(entry, self.text.row(entry))
        except _FAULTS as error:
            known = error if isinstance(error, Malformed) else Malformed("", "a row of its kind", str(error))
            self.say(entry, "shape", known.field, known.expected, known.observed)
            if entry.kind in ("chunk", *TURNS):
                self._lose()

    def _row(self, entry: Entry, row: Plain) -> None:
        """One row, by its kind."""
        if row.get("format") != FORMAT:
            raise Malformed("format", str(FORMAT), row.get("format"))
        kinds: dict[str | None, Callable[[Entry, Plain], None]] = {
            "chunk": self._chunk,
            "checkpoint": self._checkpoint,
            "rewind": self._rewind,
            "warning": lambda _entry, row: self.warned.append(body(row)),
        }
        others = {"created": created.follow, **turns.KINDS, **sayings.KINDS}
        if entry.kind in others:
            others[entry.kind](self, entry, row)
        elif entry.kind in kinds:
            kinds[entry.kind](entry, row)
        else:
            known = ", ".join(map(str, (*kinds, *others)))
            raise Malformed("kind", f"one of {known}", row.get("kind"))

    def _lose(self) -> None:
        """A row cannot be read: the next closing row has no known start."""
        self.end_segment()
        self.lineage.lose()

    def _chunk(self, entry: Entry, row: Plain) -> None:
        if not self.terms.is_known:
            return
        intent, lineage = self.intent, self.lineage
        steps, end = sequence(row.get("steps"), "steps"), intent.state(row.get("snapshot"))
        if lineage.at is None:
            self._restart(entry, row, end)
            return
        start = intent.enter(lineage.at)
        between = Between(intent, entry, start, end, self._turns_behind(entry, end))
        if steps[:1] != [start.step]:
            begin = f"{start.step}, where row {lineage.marks[-1].entry.number} ends"
            self.say(entry, "lineage", "steps.0", begin, steps[:1])
            if not between.is_in_place:
                self._restart(entry, row, end)
                return
        if not between.is_in_place:
            close = f"{between.stop}, where chunk {start.chunk} of {between.layout.name} closes"
            self.say(entry, "lineage", "snapshot.step", close, end.step)
        self._account(between, row)

    def _account(self, between: Between, row: Plain) -> None:
        entry, start, end, intent = between.entry, between.start, between.end, self.intent
        grid = row.get("grid")
        stated = grid[-1] if isinstance(grid, list) and grid else None
        planned = between.planned(self.lineage.marks[-1], stated)
        stretch = Stretch(start, end, *planned, intent.version)
        self.compare(entry, "sums", chunk_row(intent.recipe, between.layout, stretch), body(row))
        self.findings[entry.line] += [*chunks.place(between), *chunks.sums(between), *chunks.shares(between)]
        self.findings[entry.line] += chunks.debts(intent, entry, end)
        begin = self.lineage.enter_stage(between.layout.name, start, intent.names)
        pools = zip(intent.names, end.pools, strict=True)
        drift = tuple(pool.ahead - begin.ahead(name) for name, pool in pools)
        mark = Mark(entry, end.step, start.stage, planned[1], self.terms, drift, end.left)
        self.stops.append(Stop(entry, between.work_stop, planned))
        self.end_segment()
        self.lineage.close(mark, end)

    def _restart(self, entry: Entry, row: Plain, end: State) -> None:
        """A gap lies before the row: take up the course again behind it."""
        self.end_segment()
        grid = sequence(row.get("grid"), "grid")
        planned_to = signed(grid[-1] if grid else None, "grid")
        self.lineage.restart(Mark(entry, end.step, end.stage, planned_to, self.terms, left=end.left), end)

    def _turns_behind(self, entry: Entry, end: State) -> bool:
        """Whether the course turns right behind a chunk's row."""
        after = self.text.entries[entry.line + 1 : entry.line + 2]
        return bool(after) and after[0].kind in TURNS and self.text.row(after[0]).get("step") == end.step

    def _checkpoint(self, entry: Entry, row: Plain) -> None:
        number, hashed = whole(row.get("manifest"), "manifest"), str(row.get("manifest_hash"))
        try:
            if row.get("late") is not None:
                self._late(entry, row)
            else:
                self._in_time(entry, row, (number, hashed))
        finally:
            self.numbered = (number, hashed)
            self.numbers.add(number)
            if row.get("late") is None:
                self.copied = (*self.copied[-1:], number)

    def _in_time(self, entry: Entry, row: Plain, named: tuple[int, str]) -> None:
        """A checkpoint that nothing on record is behind of."""
        lineage = self.lineage
        parent, (depth, skip) = lineage.parent, lineage.pointers(lineage.parent)
        told = (*(parent.told if parent else self.told), *self.warned)
        state: State | None = None
        try:
            if self.terms.is_known:
                state = self._at_its_step(entry, row, self.intent.state(row.get("snapshot")))
                self._stand(entry, row, state)
                self._compare_warnings(entry, state)
                self._take_down(entry)
                self.manifests[named[0]] = must_state(self, entry, row, (state, told))
        finally:
            step = state.step if state is not None else lineage.marks[-1].step
            lineage.add(Checkpoint(entry, step, self.terms, *named, depth, skip, told), state)
            self.warned = []

    def _take_down(self, entry: Entry) -> None:
        """What was withdrawn once is served nowhere again, wherever the run goes on."""
        known = self.terms.withdrawn
        if known is self._withdrawn:
            return
        self._withdrawn = known
        for name, number in lacking(self.taken, known).items():
            expected = "every document that was withdrawn before, until the pool was replaced"
            self.say(entry, "withdrawn", f"withdrawals.{name}", expected, f"{number} not withdrawn any more")
        for name, held in known.items():
            before = self.taken.get(name, held.documents)
            self.taken[name] = np.union1d(before, held.documents)

    def _late(self, entry: Entry, row: Plain) -> None:
        """A checkpoint that was committed after later ones: as it would have been then; none follows it."""
        step, turn = whole(row.get("step"), "step"), (row.get("turn") or {}).get("row")
        here, stops = self.lineage, self.stops
        self.lineage, self.stops = here.past(step, turn), []
        try:
            if not self.terms.is_known:
                return
            state = self._at_its_step(entry, row, self.intent.state(row.get("snapshot")))
            self._stand(entry, row, state)
            parent = self.lineage.parent
            told = (*(parent.told if parent else self.told), *self._passed(state))
            self.manifests[whole(row["manifest"], "manifest")] = must_state(self, entry, row, (state, told))
            self.end_segment()
        finally:
            self.lineage, self.stops = here, stops

    def _at_its_step(self, entry: Entry, row: Plain, state: State) -> State:
        """The snapshot of a checkpoint row; at the row's step where that fits its positions."""
        step = whole(row.get("step"), "step")
        if step == state.step or step > self.intent.layouts[state.stage].stop_step:
            return state
        if self.intent.positions_at(step) not in (row.get("positions"), state.positions):
            return state
        self.say(entry, "sums", "snapshot.step", step, state.step)
        return replace(state, step=step)

    def _stand(self, entry: Entry, row: Plain, state: State) -> None:
        """A checkpoint row against its snapshot and the rows before it."""
        lineage, intent = self.lineage, self.intent
        parent, (depth, skip) = lineage.parent, lineage.pointers(lineage.parent)
        closing = lineage.marks[-1].entry
        expected: Plain = {
            "kind": "checkpoint",
            "step": state.step,
            "recipe": intent.version,
            "manifest": self.numbered[0] + 1,
            **{key: row[key] for key in ("manifest_hash", "uri", "gpu_hours", "snapshot") if key in row},
            **({"late": True} if "late" in row else {}),
            "positions": state.positions,
            "cumulative": cumulative(intent.names, state),
            "closing": {"row": closing.number, "offset": closing.offset},
            "turn": lineage.turn.pointer,
            "lineage": {"depth": depth, "parent": parent and parent.entry.offset, "skip": skip},
        }
        self.compare(entry, "sums", expected, body(row))
        self.findings[entry.line] += chunks.debts(intent, entry, state)
        at = lineage.at
        if at is not None:
            start = at if state.stage == at.stage else intent.enter(at)
            self.findings[entry.line] += chunks.place(Between(intent, entry, start, state))
            self.stops.append(Stop(entry, state.step))

    def _compare_warnings(self, entry: Entry, state: State) -> None:
        if self.lineage.checkpointed is not None:
            where = f"{entry.where}: warning rows before it"
            self.findings[entry.line] += compared("lineage", where, self._passed(state), self.warned)

    def _passed(self, state: State) -> list[Plain]:
        """Warnings of pools that were read too often since the last checkpoint."""
        before = self.lineage.checkpointed
        if before is None:
            return []
        pools = by_name(self.lineage.anchor.terms.names, before)
        return warnings(self.intent.recipe, state.step, pools, by_name(self.intent.names, state))

    def _rewind(self, entry: Entry, row: Plain) -> None:
        back = whole(row.get("to_step"), "to_step")
        self.end_segment()
        furthest, reached = self.lineage.furthest()
        at_turn = furthest.entry.kind in TURNS
        if reached is not None and (back > reached.step or (back == reached.step and not at_turn)):
            self.say(entry, "lineage", "to_step", f"a step before {reached.step}", back)
        undone = {mark.entry.number for mark in self.lineage.turns[1:] if mark.step == back}
        self.lineage.rewind(back, row.get("manifest"), row.get("turn"))
        self.warned = []
        expected: Plain = {
            "kind": "rewind",
            "from_step": reached.step if reached else row.get("from_step"),
            "to_step": back,
            "manifest": self._manifest_there(back, row.get("manifest")),
            "discarded": row.get("discarded"),
            **({"turn": row["turn"]} if row.get("turn") in undone else {}),
        }
        if reached is not None:
            given = by_name(furthest.terms.names, reached)
            expected["discarded"] = self._discarded(entry, back, given, expected["discarded"])
        self.compare(entry, "sums", expected, body(row))

    def _manifest_there(self, step: int, stated: object) -> int | None:
        """The manifest that a rewind to a step names: of the checkpoint there, unless a turn is behind it."""
        parent, mark = self.lineage.parent, self.lineage.marks[-1].entry
        if parent is None or parent.step != step or (mark.kind in TURNS and mark.line > parent.entry.line):
            return None
        is_at_turn = (
            self.lineage.turn.step == step > 0
        )  # who comes from a state knows the turn, not the checkpoint
        return None if is_at_turn and stated is None else parent.manifest

    def _discarded(self, entry: Entry, back: int, given: dict[str, PoolState], stated: Plain) -> Plain:
        """What a rewind takes out of the account; as stated, where only a recomputation can tell."""
        lineage, there = self.lineage, self.lineage.checkpointed
        if there is None or there.step != back:
            self.stops.append(Stop(entry, back, reached=given))
            self.end_segment()
            return stated
        before = by_name(lineage.anchor.terms.names, there)
        return {name: difference(before.get(name, PoolState()), pool) for name, pool in given.items()}
