"""Rows computed again from the state before them, and held against what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from recipe.audit.account import Plain, Stretch, by_name, chunk_row, cumulative, difference
from recipe.audit.chain import Text
from recipe.audit.findings import Finding, compared, shown
from recipe.audit.following import COMMON
from recipe.audit.intent import Intent
from recipe.audit.reading import OpenBlock, books_of
from recipe.audit.replay import Ground, Replayed, ended_if_last, entered, replay
from recipe.audit.segments import Segment, Stop
from recipe.audit.state import Cursor, Malformed, PoolState, State
from recipe.audit.terms import Terms
from recipe.errors import RecipeError
from recipe.pools import Pool


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything needed to compute rows again."""

    text: Text
    pools: Mapping[str, Pool]
    """Those that are there."""

    def ground(self, terms: Terms) -> Ground:
        """What steps under some terms were served from."""
        intent = terms.intent
        books = books_of(intent.recipe, self.pools, terms.withdrawn)
        return Ground(intent.layouts, books, intent.carried)


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
    terms: Terms | None = None
    for segment in segments:
        if segment.terms is not terms:
            terms, ground = segment.terms, bench.ground(segment.terms)
            cache: dict[tuple[str, Cursor], OpenBlock] = {}
        work = _Work(bench.text, segment, ground, cache)
        outcome = _Trial(work, _stated(work)).run()
        true_start = total.states.get(segment.start.line)
        if true_start is not None and not outcome.agrees:
            again = _Trial(work, true_start).run()
            outcome = again if again.agrees else outcome
        total.add(outcome)
    return total


@dataclass(frozen=True, slots=True)
class _Work:
    """One segment and what it is computed from."""

    text: Text
    segment: Segment
    ground: Ground
    cache: dict[tuple[str, Cursor], OpenBlock]

    @property
    def intent(self) -> Intent:
        """The recipe that was in force."""
        return self.segment.terms.intent


def _stated(work: _Work) -> State:
    """The state that a segment's first row holds."""
    start = work.segment.start
    return work.intent.state_of(start, work.text.row(start))


@dataclass(frozen=True, slots=True)
class _Trial:
    """One segment computed again from a start state."""

    work: _Work
    start: State

    def run(self) -> Outcome:
        """The outcome; what cannot be computed is a finding, too."""
        outcome, ground, segment = Outcome(), self.work.ground, self.work.segment
        last = ground.layouts[entered(ground, self.start).stage].stop_step
        steps = sorted({stop.step for stop in segment.stops if self.start.step < stop.step <= last})
        try:
            seen = replay(ground, self.start, steps, self.work.cache)
            states = {self.start.step: self.start, **dict(zip(steps, seen.states, strict=True))}
            for stop in segment.stops:
                if stop.step in states:
                    self._compare(stop, states[stop.step], outcome)
        except (Malformed, RecipeError, ValueError, ArithmeticError, LookupError, AssertionError) as error:
            return Outcome(apart=[self._impossible(error)])
        _seen_on_the_way(self.work, seen, outcome)
        outcome.positions = segment.positions
        return outcome

    def _impossible(self, error: Exception) -> Finding:
        segment = self.work.segment
        where, start = segment.stops[0].entry.where, f"row {segment.start.number}, where it starts"
        if isinstance(error, Malformed):
            field = f"{where}: {error.field} of {start}"
            return Finding("replay", field, error.expected, shown(error.observed))
        told = str(error) or type(error).__name__
        return Finding("replay", where, f"steps that can be served from the snapshot of {start}", shown(told))

    def _compare(self, stop: Stop, state: State, outcome: Outcome) -> None:
        """One row against the true state at its step."""
        row: Plain = self.work.text.row(stop.entry)
        expected = self._expected(stop, state)
        observed = {key: value for key, value in row.items() if key not in COMMON}
        if stop.entry.kind != "chunk":
            observed = {key: observed.get(key) for key in expected}
        elif expected["snapshot"] != row.get("snapshot"):
            outcome.states[stop.entry.line] = state
        outcome.findings[stop.entry.line] = compared("replay", stop.entry.where, expected, observed)

    def _expected(self, stop: Stop, state: State) -> Plain:
        work, intent = self.work, self.work.intent
        if stop.entry.kind == "chunk":
            begin = entered(work.ground, self.start)
            stretch = Stretch(begin, state, *stop.planned, intent.version)
            return chunk_row(intent.recipe, work.ground.layouts[begin.stage], stretch)
        if stop.reached is not None:
            back = by_name(intent.names, state)
            given = stop.reached.items()
            return {
                "discarded": {name: difference(back.get(name, PoolState()), pool) for name, pool in given}
            }
        state = ended_if_last(work.ground, state, work.cache)
        return {"snapshot": state.to_plain(), "cumulative": cumulative(intent.names, state)}


def _seen_on_the_way(work: _Work, seen: Replayed, outcome: Outcome) -> None:
    """Blocks that do not add up, and pools that were ever too far from their share."""
    last, names = work.segment.stops[-1].entry.where, work.intent.names
    for pool, at, by_length, by_account in seen.unequal:
        where = f"{last}: block {at.block} of epoch {at.epoch} of pool {names[pool]}"
        expected = f"{by_length} body tokens, as its documents hold"
        outcome.apart.append(
            Finding("conservation", where, expected, f"{by_account} served fresh or dropped")
        )
    for pool in seen.outside:
        where = f"{last}: pool {names[pool]}"
        outcome.apart.append(
            Finding(
                "drift", where, "within the bound of its share at every sequence", str(seen.furthest[pool])
            )
        )
    outcome.blocks = seen.blocks
    stage = work.ground.layouts[seen.stage].name
    outcome.furthest = {stage: dict(zip(names, seen.furthest, strict=True))}
