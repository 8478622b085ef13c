"""Rows computed again from the state before them, and held against what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from recipe.audit.account import Plain, Stretch, chunk_row, cumulative, difference
from recipe.audit.chain import Text
from recipe.audit.course import COMMON
from recipe.audit.findings import Finding, compared, shown
from recipe.audit.intent import Intent
from recipe.audit.reading import OpenBlock
from recipe.audit.replay import Ground, Replayed, ended_if_last, entered, replay
from recipe.audit.segments import Segment, Stop
from recipe.audit.state import Cursor, Malformed, State
from recipe.errors import RecipeError


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything needed to compute rows again."""

    text: Text
    intent: Intent
    ground: Ground


@dataclass(slots=True)
class Outcome:
    """What computing some rows again gave."""

    findings: dict[int, list[Finding]] = field(default_factory=dict)
    """By line of the ledger; a line that is here was computed again."""
    apart: list[Finding] = field(default_factory=list)
    """Findings about blocks and drift."""
    states: dict[int, State] = field(default_factory=dict)
    """By line of a chunk row: its true end."""
    furthest: dict[str, dict[str, Fraction]] = field(default_factory=dict)
    blocks: int = 0
    positions: int = 0

    @property
    def agrees(self) -> bool:
        """Whether nothing was found."""
        return not self.apart and not any(self.findings.values())

    def add(self, other: Outcome) -> None:
        """Take in another outcome."""
        self.findings |= other.findings
        self.apart += other.apart
        self.states |= other.states
        for stage, pools in other.furthest.items():
            here = self.furthest.setdefault(stage, {})
            for name, tokens in pools.items():
                here[name] = max(tokens, here.get(name, Fraction(0)))
        self.blocks += other.blocks
        self.positions += other.positions


def recompute(bench: Bench, segments: Sequence[Segment]) -> Outcome:
    """Compute segments again; those that follow each other share their open blocks.

    A segment that disagrees, after one whose end was found to be wrong, is tried from the right
    end as well: then only the row that was changed is named.
    """
    total = Outcome()
    cache: dict[tuple[str, Cursor], OpenBlock] = {}
    for segment in segments:
        stated = bench.intent.state_of(segment.start, bench.text.row(segment.start))
        outcome = _Trial(bench, segment, stated, cache).run()
        true_start = total.states.get(segment.start.line)
        if true_start is not None and not outcome.agrees:
            again = _Trial(bench, segment, true_start, cache).run()
            outcome = again if again.agrees else outcome
        total.add(outcome)
    return total


@dataclass(frozen=True, slots=True)
class _Trial:
    """One segment computed again from a start state."""

    bench: Bench
    segment: Segment
    start: State
    cache: dict[tuple[str, Cursor], OpenBlock]

    def run(self) -> Outcome:
        """The outcome; what cannot be computed is a finding, too."""
        outcome, ground = Outcome(), self.bench.ground
        last = ground.layouts[entered(ground, self.start).stage].stop_step
        steps = sorted({stop.step for stop in self.segment.stops if self.start.step < stop.step <= last})
        try:
            seen = replay(ground, self.start, steps, self.cache)
            states = {self.start.step: self.start, **dict(zip(steps, seen.states, strict=True))}
            for stop in self.segment.stops:
                if stop.step in states:
                    self._compare(stop, states[stop.step], outcome)
        except (Malformed, RecipeError, ValueError, ArithmeticError, LookupError, AssertionError) as error:
            return Outcome(apart=[self._impossible(error)])
        _seen_on_the_way(self.bench, self.segment, seen, outcome)
        outcome.positions = self.segment.positions
        return outcome

    def _impossible(self, error: Exception) -> Finding:
        where, start = self.segment.stops[0].entry.where, f"row {self.segment.start.number}, where it starts"
        if isinstance(error, Malformed):
            field = f"{where}: {error.field} of {start}"
            return Finding("replay", field, error.expected, shown(error.observed))
        told = str(error) or type(error).__name__
        return Finding("replay", where, f"steps that can be served from the snapshot of {start}", shown(told))

    def _compare(self, stop: Stop, state: State, outcome: Outcome) -> None:
        """One row against the true state at its step."""
        row: Plain = self.bench.text.row(stop.entry)
        expected = self._expected(stop, state)
        observed = {key: value for key, value in row.items() if key not in COMMON}
        if stop.entry.kind != "chunk":
            observed = {key: observed.get(key) for key in expected}
        elif expected["snapshot"] != row.get("snapshot"):
            outcome.states[stop.entry.line] = state
        outcome.findings[stop.entry.line] = compared("replay", stop.entry.where, expected, observed)

    def _expected(self, stop: Stop, state: State) -> Plain:
        bench, names = self.bench, self.bench.intent.names
        if stop.entry.kind == "chunk":
            begin = entered(bench.ground, self.start)
            stretch = Stretch(begin, state, *stop.planned, bench.intent.version)
            return chunk_row(bench.intent.recipe, bench.ground.layouts[begin.stage], stretch)
        if stop.reached is not None:
            reached = bench.intent.state_of(stop.reached, bench.text.row(stop.reached))
            pairs = zip(names, state.pools, reached.pools, strict=True)
            return {"discarded": {name: difference(a, b) for name, a, b in pairs}}
        state = ended_if_last(bench.ground, state, self.cache)
        return {"snapshot": state.to_plain(), "cumulative": cumulative(names, state)}


def _seen_on_the_way(bench: Bench, segment: Segment, seen: Replayed, outcome: Outcome) -> None:
    """Blocks that do not add up, and pools that were ever too far from their share."""
    last = segment.stops[-1].entry.where
    for pool, at, by_length, by_account in seen.unequal:
        where = f"{last}: block {at.block} of epoch {at.epoch} of pool {bench.intent.names[pool]}"
        expected = f"{by_length} body tokens, as its documents hold"
        outcome.apart.append(
            Finding("conservation", where, expected, f"{by_account} served fresh or dropped")
        )
    for pool in seen.outside:
        where = f"{last}: pool {bench.intent.names[pool]}"
        outcome.apart.append(
            Finding(
                "drift", where, "within the bound of its share at every sequence", str(seen.furthest[pool])
            )
        )
    outcome.blocks = seen.blocks
    stage = bench.ground.layouts[seen.stage].name
    outcome.furthest = {stage: dict(zip(bench.intent.names, seen.furthest, strict=True))}
