"""The rows of a ledger followed so far: what counts, what was found, what can be computed again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipe.audit.account import Plain
from recipe.audit.chain import Entry, Text
from recipe.audit.findings import compared, shown
from recipe.audit.intent import Intent
from recipe.audit.lineage import Lineage, Mark
from recipe.audit.segments import Segment, Stop
from recipe.audit.state import Malformed, State, sequence, whole
from recipe.audit.terms import Terms
from recipe.audit.withdrawals import TakenDown
from recipe.config import Recipe
from recipe.pools import Finding

COMMON = ("format", "row", "time", "previous", "hash")
"""Fields of every row; the chain is checked over them."""


class Following:
    """Findings by line, so that a recomputation can put better ones in their place."""

    def __init__(self, text: Text, intent: Intent, folder: Path | None = None) -> None:
        """Over the lines of a ledger; ``intent`` is the recipe of its first row."""
        self.text = text
        self.folder = folder
        """Of the run: where the files are that rows name."""
        self.first = intent
        self.lineage = Lineage(self.snapshot)
        self.findings: dict[int, list[Finding]] = {}
        self.segments: list[Segment] = []
        self.manifests: dict[int, Plain] = {}
        """By number: what the manifest must say."""
        self.numbered: tuple[int, str | None] = (0, None)
        """Number and hash of the last manifest on record, discarded or not."""
        self.copied: tuple[int, ...] = ()
        """Numbers of the last two manifests that ``latest.yaml`` is a copy of, one after the other."""
        self.numbers: set[int] = set()
        """Of all manifests that rows name."""
        self.created: Plain = {}
        self.stated: dict[str, tuple[str, Plain]] = {}
        """By pool: the row that first tells of it, and what it says."""
        self.versions: set[int] = {intent.version}
        """Of all recipes that rows name, discarded or not."""
        self.lists = 0
        """Withdrawals that rows name, discarded or not."""
        self.lists_read: list[tuple[Terms, TakenDown]] = []
        """The documents that withdrawals name, and the terms before each."""
        self.taken: dict[str, NDArray[np.int64]] = {}
        """By pool: documents that were withdrawn under any checkpoint, discarded or not."""
        self.replaced: set[str] = set()
        """Pools that other data was accepted for, whatever became of that."""
        self.files: set[str] = set()
        """Further files that rows name, by their path in the run's folder."""
        self.prior: Plain | None = None
        """Tokens before the start, as every manifest repeats them."""
        self.parent: Plain | None = None
        """Of a branch: number and hash of the manifest it started from."""
        self.before: Plain = {}
        """Of a branch: tokens by stage, pool and kind in its parents."""
        self.told: tuple[Plain, ...] = ()
        """Of a branch: warnings in its parents."""
        self.changes: list[Plain] = []
        """Of a branch: changes of data accepted in its parents."""
        self.of_parent = ""
        """Of a branch: how far its parent was looked at."""
        self.warned: list[Plain] = []
        """Warning rows since the last checkpoint."""
        self.accepted: dict[int, Plain] = {}
        """By line: changes of data, as manifests state them."""
        self.stops: list[Stop] = []
        """Rows since the last closing row, and that row's own."""

    @property
    def terms(self) -> Terms:
        """In force."""
        return self.lineage.turn.terms if self.lineage.turns else Terms(self.first)

    @property
    def intent(self) -> Intent:
        """The recipe in force."""
        return self.terms.intent

    @property
    def holdings(self) -> Mapping[str, Plain]:
        """The pools as rows state them."""
        return self.terms.holdings

    @property
    def recipes(self) -> list[Recipe]:
        """Every recipe that a row was served under, discarded or not, and the one in force."""
        intents = [*(segment.terms.intent for segment in self.segments), self.intent]
        return list({id(intent.recipe): intent.recipe for intent in intents}.values())

    def held(self, name: str) -> Plain:
        """What the record says of a pool: in force, or else when it was last."""
        return self.holdings.get(name) or self.stated.get(name, ("", {}))[1]

    def say(self, entry: Entry, check: str, field: str, expected: object, observed: object) -> None:
        """Something is found at a row."""
        found = Finding(check, f"{entry.where}: {field}", str(expected), shown(observed))
        self.findings[entry.line].append(found)

    def compare(self, entry: Entry, check: str, expected: Plain, observed: Plain) -> None:
        """A row, or some of it, against what it must say."""
        self.findings[entry.line] += compared(check, entry.where, expected, observed)

    def snapshot(self, entry: Entry, terms: Terms) -> State | None:
        """The snapshot that a row holds; None when it cannot be read."""
        try:
            return terms.intent.state_of(entry, self.text.row(entry)) if terms.is_known else None
        except (Malformed, ValueError, AttributeError):
            return None

    def turn(self, entry: Entry, state: State | None, terms: Terms) -> None:
        """The course turns: steps go on from a state, under these terms; None: it is not known."""
        before, was_lost = self.lineage.marks[-1], self.lineage.is_lost
        stage, planned_to = before.stage, before.planned_to
        if was_lost and state is not None:
            grid = sequence(self.text.row(entry).get("grid"), "grid")
            stage, planned_to = state.stage, whole(grid[-1] if grid else None, "grid")
            self.lineage.is_whole = False
        left = () if state is None else state.left
        step = before.step if state is None else state.step
        self.lineage.close(Mark(entry, step, stage, planned_to, terms, left=left), state)
        if state is None:
            self.lineage.lose()

    def go_on(self, mark: Mark, stop: Stop, drawn: frozenset[str]) -> None:
        """A chunk's row without a fault goes on from the last closing row, in its leg."""
        self.findings[mark.entry.line] = []
        before, layout = self.lineage.marks[-1], mark.terms.intent.layouts[mark.stage]
        positions = layout.positions_at(mark.step) - layout.positions_at(before.step)
        stops, self.stops = (*self.stops, stop), []
        self.segments.append(Segment(before.entry, stops, mark.stage, positions, mark.terms, drawn))
        self.lineage.close(mark)

    def end_segment(self) -> None:
        """What was collected since the last closing row becomes one piece of work."""
        stops, self.stops = tuple(self.stops), []
        if not stops or self.lineage.is_lost or not self.terms.is_known:
            return
        mark, intent = self.lineage.marks[-1], self.intent
        last, stage = max(stop.step for stop in stops), intent.stage_of(mark.step)
        positions = max(0, intent.positions_at(last) - intent.positions_at(mark.step))
        drawn = intent.drawn(stage, mark.step, last)
        self.segments.append(Segment(mark.entry, stops, stage, positions, self.terms, drawn))


def body(row: Plain) -> Plain:
    """A row without what every row has."""
    return {key: value for key, value in row.items() if key not in COMMON}
