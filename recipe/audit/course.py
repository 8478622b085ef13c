"""The course of a run: every row, discarded later or not, held against the state it started from."""

from __future__ import annotations

from dataclasses import replace

from recipe.audit import chunks
from recipe.audit.account import Plain, Stretch, chunk_row, cumulative, difference, stage_totals, warnings
from recipe.audit.chain import Entry, Text
from recipe.audit.chunks import Between
from recipe.audit.findings import Finding, compared, shown
from recipe.audit.intent import Intent
from recipe.audit.lineage import Checkpoint, Lineage, Mark
from recipe.audit.segments import Segment, Stop
from recipe.audit.state import Cursor, Malformed, PoolState, State, mapping, sequence, signed, whole

COMMON = ("format", "row", "time", "previous", "hash")
"""Fields of every row; the chain is checked over them."""
FORMAT = 1


class Course:
    """Follows the rows; findings by line, so that a recomputation can put better ones in their place."""

    def __init__(self, text: Text, intent: Intent) -> None:
        """Over the lines of a ledger whose first row is the run's creation."""
        self.text = text
        self.intent = intent
        self.lineage = Lineage(self._snapshot)
        self.findings: dict[int, list[Finding]] = {}
        self.segments: list[Segment] = []
        self.manifests: dict[int, Plain] = {}
        """By number: what the manifest must say."""
        self.numbered: tuple[int, str | None] = (0, None)
        """Number and hash of the last manifest on record, discarded or not."""
        self.numbers: set[int] = set()
        """Of all manifests that rows name."""
        self.created: Plain = {}
        self.holdings: dict[str, Plain] = {}
        """The pools as rows state them."""
        self._readable_from = 0
        self._warned: list[Plain] = []
        self._accepted: dict[int, Plain] = {}
        """By line: changes of data, as manifests state them."""
        self._stops: list[Stop] = []

    def follow(self) -> None:
        """Go through all rows."""
        kinds = {
            "created": self._created,
            "chunk": self._chunk,
            "checkpoint": self._checkpoint,
            "rewind": self._rewind,
            "warning": lambda _entry, row: self._warned.append(_body(row)),
            "data": self._data,
        }
        for entry in self.text.entries:
            self.findings[entry.line] = []
            if entry.computed is None:
                self._lose()
                continue
            row = self.text.row(entry)
            try:
                if row.get("format") != FORMAT:
                    raise Malformed("format", str(FORMAT), row.get("format"))
                if entry.kind not in kinds:
                    raise Malformed("kind", f"one of {', '.join(kinds)}", row.get("kind"))
                kinds[entry.kind](entry, row)
            except (Malformed, ValueError, LookupError, ArithmeticError, TypeError, AttributeError) as error:
                known = (
                    error if isinstance(error, Malformed) else Malformed("", "a row of its kind", str(error))
                )
                self._say(entry, "shape", known.field, known.expected, known.observed)
                if entry.kind in ("chunk", "data"):
                    self._lose()
        self._end_segment()

    def _lose(self) -> None:
        """A row cannot be read: the next closing row has no known start."""
        self._end_segment()
        self.lineage.at = None

    def _say(self, entry: Entry, check: str, field: str, expected: object, observed: object) -> None:
        found = Finding(check, f"{entry.where}: {field}", str(expected), shown(observed))
        self.findings[entry.line].append(found)

    def _compare(self, entry: Entry, check: str, expected: Plain, observed: Plain) -> None:
        self.findings[entry.line] += compared(check, entry.where, expected, observed)

    def _snapshot(self, entry: Entry) -> State | None:
        try:
            return self.intent.state_of(entry, self.text.row(entry))
        except Malformed:
            return None

    def _created(self, entry: Entry, row: Plain) -> None:
        if entry.line:
            self._say(entry, "lineage", "kind", "one row of this kind, the first", "created")
            return
        self.created = row
        self.lineage.begin(entry, self.intent.start())
        pools = mapping(row.get("pools"), "pools")
        self.holdings = {name: dict(mapping(pools.get(name), f"pools.{name}")) for name in self.intent.names}
        expected = {"step": 0, "snapshot": self.intent.start().to_plain()}
        self._compare(entry, "lineage", expected, {key: row.get(key) for key in expected})

    def _chunk(self, entry: Entry, row: Plain) -> None:
        steps, end = sequence(row.get("steps"), "steps"), self.intent.state(row.get("snapshot"))
        if self.lineage.at is None:
            self._restart(entry, row, end)
            return
        start = self.intent.enter(self.lineage.at)
        between = Between(self.intent, entry, start, end, self._closed_early(entry, end))
        if steps[:1] != [start.step]:
            begin = f"{start.step}, where row {self.lineage.marks[-1].entry.number} ends"
            self._say(entry, "lineage", "steps.0", begin, steps[:1])
            if not between.is_in_place:
                self._restart(entry, row, end)
                return
        if not between.is_in_place:
            name = self.intent.layouts[start.stage].name
            close = f"{between.stop}, where chunk {start.chunk} of {name} closes"
            self._say(entry, "lineage", "snapshot.step", close, end.step)
        self._account(between, row)

    def _account(self, between: Between, row: Plain) -> None:
        entry, start, end = between.entry, between.start, between.end
        layout = self.intent.layouts[start.stage]
        planned = between.planned(self.lineage.marks[-1])
        stretch = Stretch(start, end, *planned, self.intent.version)
        self._compare(entry, "sums", chunk_row(self.intent.recipe, layout, stretch), _body(row))
        found = [*chunks.place(between), *chunks.sums(between), *chunks.debts(self.intent, entry, end)]
        self.findings[entry.line] += found
        begin = self.lineage.enter_stage(layout.name, start)
        drift = tuple(_ahead(b) - _ahead(a) for a, b in zip(begin.pools, end.pools, strict=True))
        self._stops.append(Stop(entry, between.work_stop, planned))
        self._end_segment()
        self.lineage.close(Mark(entry, end.step, start.stage, planned[1], drift), end)

    def _restart(self, entry: Entry, row: Plain, end: State) -> None:
        """A gap lies before the row: take up the course again behind it."""
        self._end_segment()
        grid = sequence(row.get("grid"), "grid")
        planned_to = signed(grid[-1] if grid else None, "grid")
        self.lineage.restart(Mark(entry, end.step, end.stage, planned_to), end)

    def _closed_early(self, entry: Entry, end: State) -> bool:
        after = self.text.entries[entry.line + 1 : entry.line + 2]
        return bool(after) and after[0].kind == "data" and self.text.row(after[0]).get("step") == end.step

    def _checkpoint(self, entry: Entry, row: Plain) -> None:
        number, hashed = whole(row.get("manifest"), "manifest"), str(row.get("manifest_hash"))
        lineage = self.lineage
        parent, (depth, skip) = lineage.parent, lineage.pointers()
        told = (*(parent.told if parent else ()), *self._warned)
        state: State | None = None
        try:
            state = self._at_its_step(entry, row, self.intent.state(row.get("snapshot")))
            self._stand(entry, row, state)
            self._state_manifest(entry, row, state, told)
        finally:
            step = state.step if state is not None else lineage.marks[-1].step
            lineage.add(Checkpoint(entry, step, number, hashed, depth, skip, told), state)
            self.numbered = (number, hashed)
            self.numbers.add(number)
            self._warned = []

    def _at_its_step(self, entry: Entry, row: Plain, state: State) -> State:
        """The snapshot of a checkpoint row; at the row's step where that fits its positions."""
        step = whole(row.get("step"), "step")
        if step == state.step or step > self.intent.layouts[state.stage].stop_step:
            return state
        if self.intent.positions_at(step) not in (row.get("positions"), state.positions):
            return state
        self._say(entry, "sums", "snapshot.step", step, state.step)
        return replace(state, step=step)

    def _stand(self, entry: Entry, row: Plain, state: State) -> None:
        """A checkpoint row against its snapshot and the rows before it."""
        parent, (depth, skip) = self.lineage.parent, self.lineage.pointers()
        closing = self.lineage.marks[-1].entry
        expected: Plain = {
            "kind": "checkpoint",
            "step": state.step,
            "recipe": self.intent.version,
            "manifest": self.numbered[0] + 1,
            **{key: row[key] for key in ("manifest_hash", "uri", "gpu_hours", "snapshot") if key in row},
            "positions": state.positions,
            "cumulative": cumulative(self.intent.names, state),
            "closing": {"row": closing.number, "offset": closing.offset},
            "lineage": {"depth": depth, "parent": parent and parent.entry.offset, "skip": skip},
        }
        self._compare(entry, "sums", expected, _body(row))
        self.findings[entry.line] += chunks.debts(self.intent, entry, state)
        at = self.lineage.at
        if at is not None:
            start = at if state.stage == at.stage else self.intent.enter(at)
            self.findings[entry.line] += chunks.place(Between(self.intent, entry, start, state))
            self._stops.append(Stop(entry, state.step))
        if self.lineage.checkpointed is not None:
            passed = warnings(self.intent.recipe, self.lineage.checkpointed, state)
            where = f"{entry.where}: warning rows before it"
            self.findings[entry.line] += compared("lineage", where, passed, self._warned)

    def _state_manifest(self, entry: Entry, row: Plain, state: State, told: tuple[Plain, ...]) -> None:
        """Keep what the manifest of a checkpoint row must say, apart from the trainer's words."""
        lineage, names = self.lineage, self.intent.names
        stages = None
        if lineage.is_whole and lineage.at is not None:
            begun = self.intent.enter(lineage.at) if state.step > lineage.at.step else None
            begins = lineage.begins
            if begun is not None:
                begins = lineage.begins_for(self.intent.layouts[begun.stage].name, begun)
            stages = stage_totals(names, begins, state) if begins else {}
        parent = lineage.parent
        self.manifests[whole(row["manifest"], "manifest")] = {
            "number": row["manifest"],
            "time": row.get("time"),
            "previous": self.numbered[1],
            "parent": parent and {"number": parent.manifest, "hash": parent.manifest_hash},
            "gpu_hours": row.get("gpu_hours"),
            "ledger": {"row": (entry.number or 0) - 1, "head": entry.previous},
            "readable_from": self._readable_from,
            "stages": stages,
            "warnings": list(told),
            "accepted_data_changes": self._data_changes(),
            "state": state,
            "uri": row.get("uri"),
            "hash": row.get("manifest_hash"),
            "where": entry.where,
            "holdings": dict(self.holdings),
        }

    def _rewind(self, entry: Entry, row: Plain) -> None:
        back = whole(row.get("to_step"), "to_step")
        self._end_segment()
        furthest, reached = self.lineage.furthest()
        new_data = furthest is not None and furthest.kind == "data"
        if reached is not None and (back > reached.step or (back == reached.step and not new_data)):
            self._say(entry, "lineage", "to_step", f"a step before {reached.step}", back)
        self.lineage.rewind(back, row.get("manifest"))
        self._warned = []
        self._hold()
        parent, mark = self.lineage.parent, self.lineage.marks[-1].entry
        after_data = mark.kind == "data" and parent is not None and mark.line > parent.entry.line
        expected = {
            "kind": "rewind",
            "from_step": reached.step if reached else row.get("from_step"),
            "to_step": back,
            "manifest": parent.manifest if parent and parent.step == back and not after_data else None,
            "discarded": row.get("discarded"),
        }
        there = self.lineage.checkpointed
        if reached is not None and there is not None and there.step == back:
            pairs = zip(self.intent.names, there.pools, reached.pools, strict=True)
            expected["discarded"] = {name: difference(a, b) for name, a, b in pairs}
        elif reached is not None:
            self._stops.append(Stop(entry, back, reached=furthest))
            self._end_segment()
        self._compare(entry, "sums", expected, _body(row))

    def _data_changes(self) -> list[Plain]:
        """Every change of data accepted so far that counts."""
        return [self._accepted[entry.line] for entry in self.lineage.data_entries()]

    def _hold(self) -> None:
        """The pools as the rows that count state them."""
        pools = {name: dict(self.created["pools"][name]) for name in self.intent.names}
        self._readable_from = 0
        for change in self._data_changes():
            for name, marks in change["pools"].items():
                pools[name] = {"fingerprint": marks["after"]}
            self._readable_from = change["step"]
        self.holdings = pools

    def _data(self, entry: Entry, row: Plain) -> None:
        """New data was accepted: the pools that changed are read from their beginning."""
        state, changes = self.intent.state(row.get("snapshot")), mapping(row.get("pools"), "pools")
        self._end_segment()
        expected: Plain = {"kind": "data", "accepted": True, "step": state.step, "pools": {}}
        for name, change in changes.items():
            after = mapping(change, f"pools.{name}").get("after")
            before = self.holdings.get(name, {}).get("fingerprint")
            expected["pools"][name] = {"before": before, "after": after}
            self.holdings[name] = {"fingerprint": after}
        at, mark = self.lineage.at, self.lineage.marks[-1]
        expected["stage"] = self.intent.layouts[mark.stage].name
        expected["grid"] = [mark.planned_to, mark.planned_to]
        expected["snapshot"] = row["snapshot"]
        if at is not None:
            pools = zip(self.intent.names, at.pools, strict=True)
            back = tuple(replace(pool, cursor=Cursor()) if name in changes else pool for name, pool in pools)
            expected["snapshot"] = replace(at, pools=back).to_plain()
        self._compare(entry, "sums", expected, _body(row))
        self._readable_from = state.step
        self._accepted[entry.line] = {"step": state.step, "pools": expected["pools"]}
        self.lineage.close(replace(mark, entry=entry, step=state.step), state)

    def _end_segment(self) -> None:
        """What was collected since the last closing row becomes one piece of work."""
        stops, self._stops = tuple(self._stops), []
        at = self.lineage.at
        if stops and at is not None:
            last = max(stop.step for stop in stops)
            positions = self.intent.positions_at(last) - self.intent.positions_at(at.step)
            stage, start = self.intent.enter(at).stage, self.lineage.marks[-1].entry
            self.segments.append(Segment(start, stops, stage, max(0, positions), dict(self.holdings)))


def _body(row: Plain) -> Plain:
    return {key: value for key, value in row.items() if key not in COMMON}


def _ahead(pool: PoolState) -> int:
    return pool.counts["spent"] - pool.counts["owed"]
