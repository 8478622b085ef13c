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
from recipe.audit.replay import Ground, Replayed, entered, replay
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
        outcome = _one(bench, segment, _start(bench, segment), cache)
        true_start = total.states.get(segment.start.line)
        if true_start is not None and any(outcome.findings.values()):
            again = _one(bench, segment, true_start, cache)
            outcome = outcome if any(again.findings.values()) else again
        total.add(outcome)
    return total


def _start(bench: Bench, segment: Segment) -> State:
    return bench.intent.state_of(segment.start, bench.text.row(segment.start))


def _one(bench: Bench, segment: Segment, start: State, cache: dict[tuple[str, Cursor], OpenBlock]) -> Outcome:
    """One segment from a start state; what cannot be computed is a finding, too."""
    outcome = Outcome(findings={stop.entry.line: [] for stop in segment.stops})
    layout = bench.ground.layouts[entered(bench.ground, start).stage]
    steps = sorted({stop.step for stop in segment.stops if start.step < stop.step <= layout.stop_step})
    try:
        seen = replay(bench.ground, start, steps, cache)
        states = {start.step: start, **dict(zip(steps, seen.states, strict=True))}
        for stop in segment.stops:
            if stop.step in states:
                outcome.findings[stop.entry.line] = _held_against(
                    bench, start, stop, states[stop.step], outcome
                )
    except (Malformed, RecipeError, ValueError, ArithmeticError, LookupError, AssertionError) as error:
        first = segment.stops[0].entry
        outcome.findings[first.line].append(_impossible(first.where, segment, error))
        return outcome
    _seen_on_the_way(bench, segment, seen, outcome)
    outcome.positions = segment.positions
    return outcome


def _impossible(where: str, segment: Segment, error: Exception) -> Finding:
    start = f"row {segment.start.number}, where its steps begin"
    if isinstance(error, Malformed):
        return Finding("replay", f"{where}: {error.field} of {start}", error.expected, shown(error.observed))
    told = str(error) or type(error).__name__
    return Finding("replay", where, f"steps that can be served from the snapshot of {start}", shown(told))


def _held_against(bench: Bench, start: State, stop: Stop, state: State, outcome: Outcome) -> list[Finding]:
    row: Plain = bench.text.row(stop.entry)
    observed = {key: value for key, value in row.items() if key not in COMMON}
    if stop.entry.kind == "rewind":
        names = bench.intent.names
        assert stop.reached is not None
        reached = bench.intent.state_of(stop.reached, bench.text.row(stop.reached))
        pairs = zip(names, state.pools, reached.pools, strict=True)
        expected: Plain = {"discarded": {name: difference(a, b) for name, a, b in pairs}}
    else:
        state = _as_ended(bench, row, state)
        expected = {"snapshot": state.to_plain()}
    if stop.entry.kind == "checkpoint":
        expected["cumulative"] = cumulative(bench.intent.names, state)
    if stop.entry.kind == "chunk":
        begin = entered(bench.ground, start)
        stretch = Stretch(begin, state, *stop.planned, bench.intent.version)
        expected = chunk_row(bench.intent.recipe, bench.ground.layouts[begin.stage], stretch)
        if expected["snapshot"] != row.get("snapshot"):
            outcome.states[stop.entry.line] = state
    else:
        observed = {key: observed.get(key) for key in expected}
    return compared("replay", stop.entry.where, expected, observed)


def _as_ended(bench: Bench, row: Plain, state: State) -> State:
    """The state, or, where the row says that the run ended here and it did, the state that says so.

    Whether a checkpoint at the very step where a pool runs dry knows it depends on how far its
    handle had read.
    """
    said = row.get("snapshot", {}).get("ended")
    if said is not True or state.ended or state.step >= bench.ground.layouts[-1].stop_step:
        return state
    after = replay(bench.ground, state, [state.step + 1], {}).states[0]
    return after if after.ended and after.step == state.step else state


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
