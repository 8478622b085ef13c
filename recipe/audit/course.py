"""The course of a run: every row, discarded later or not, held against the state it started from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from recipe.audit import chunks, created, sayings, turns
from recipe.audit.account import Plain, Stretch, by_name, chunk_row, cumulative, difference, warnings
from recipe.audit.chain import Entry
from recipe.audit.chunks import Between
from recipe.audit.findings import compared
from recipe.audit.following import COMMON, Following, body
from recipe.audit.lineage import TURNS, Checkpoint, Mark
from recipe.audit.quick import Quick
from recipe.audit.segments import Stop
from recipe.audit.state import Malformed, PoolState, State, sequence, signed, whole
from recipe.audit.statement import must_state

__all__ = ["COMMON", "Course"]
FORMAT = 1
_FAULTS = (Malformed, ValueError, LookupError, ArithmeticError, TypeError, AttributeError)


class Course(Following):
    """Follows the rows; a chunk's row that a quick look finds right is not compared in full."""

    def follow(self) -> None:
        """Go through all rows."""
        quick = Quick()
        for entry in self.text.entries:
            self.findings[entry.line] = []
            if entry.computed is None:
                self._lose()
                continue
            found = quick.look(self, entry) if entry.kind == "chunk" else None
            if found is not None:
                self._go_on(*found)
                continue
            try:
                self._row(entry, self.text.row(entry))
            except _FAULTS as error:
                known = (
                    error if isinstance(error, Malformed) else Malformed("", "a row of its kind", str(error))
                )
                self.say(entry, "shape", known.field, known.expected, known.observed)
                if entry.kind in ("chunk", *TURNS):
                    self._lose()
        self.end_segment()

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

    def _go_on(self, mark: Mark, stop: Stop) -> None:
        """A chunk's row goes on from the last closing row."""
        self.stops.append(stop)
        self.end_segment()
        self.lineage.close(mark)

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
        planned = between.planned(self.lineage.marks[-1])
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
        lineage = self.lineage
        parent, (depth, skip) = lineage.parent, lineage.pointers(lineage.parent)
        told = (*(parent.told if parent else self.told), *self.warned)
        state: State | None = None
        try:
            if self.terms.is_known:
                state = self._at_its_step(entry, row, self.intent.state(row.get("snapshot")))
                self._stand(entry, row, state)
                self.manifests[number] = must_state(self, entry, row, (state, told))
        finally:
            step = state.step if state is not None else lineage.marks[-1].step
            lineage.add(Checkpoint(entry, step, self.terms, number, hashed, depth, skip, told), state)
            self.numbered = (number, hashed)
            self.numbers.add(number)
            self.warned = []

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
        if lineage.checkpointed is not None:
            before = by_name(lineage.anchor.terms.names, lineage.checkpointed)
            passed = warnings(intent.recipe, state.step, before, by_name(intent.names, state))
            where = f"{entry.where}: warning rows before it"
            self.findings[entry.line] += compared("lineage", where, passed, self.warned)

    def _rewind(self, entry: Entry, row: Plain) -> None:
        back = whole(row.get("to_step"), "to_step")
        self.end_segment()
        furthest, reached = self.lineage.furthest()
        at_turn = furthest.entry.kind in TURNS
        if reached is not None and (back > reached.step or (back == reached.step and not at_turn)):
            self.say(entry, "lineage", "to_step", f"a step before {reached.step}", back)
        self.lineage.rewind(back, row.get("manifest"), row.get("turn"))
        self.warned = []
        expected: Plain = {
            "kind": "rewind",
            "from_step": reached.step if reached else row.get("from_step"),
            "to_step": back,
            "manifest": self._manifest_there(back),
            "discarded": row.get("discarded"),
            **{key: row[key] for key in ("turn",) if key in row},
        }
        if reached is not None:
            given = by_name(furthest.terms.names, reached)
            expected["discarded"] = self._discarded(entry, back, given, expected["discarded"])
        self.compare(entry, "sums", expected, body(row))

    def _manifest_there(self, step: int) -> int | None:
        """The manifest that a rewind to a step names: of the checkpoint there, unless a turn is behind it."""
        parent, mark = self.lineage.parent, self.lineage.marks[-1].entry
        is_turned = mark.kind in TURNS and parent is not None and mark.line > parent.entry.line
        return parent.manifest if parent and parent.step == step and not is_turned else None

    def _discarded(self, entry: Entry, back: int, given: dict[str, PoolState], stated: Plain) -> Plain:
        """What a rewind takes out of the account; as stated, where only a recomputation can tell."""
        lineage, there = self.lineage, self.lineage.checkpointed
        if there is None or there.step != back:
            self.stops.append(Stop(entry, back, reached=given))
            self.end_segment()
            return stated
        before = by_name(lineage.anchor.terms.names, there)
        return {name: difference(before.get(name, PoolState()), pool) for name, pool in given.items()}
