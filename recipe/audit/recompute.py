"""Rows computed again from the state before them, and held against what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

from recipe.audit.account import Plain, Stretch, by_name, chunk_row, cumulative, difference
from recipe.audit.books import OpenBlock, books_of
from recipe.audit.chain import Text
from recipe.audit.findings import compared, shown
from recipe.audit.following import COMMON
from recipe.audit.intent import Intent
from recipe.audit.replay import Ground, Replayed, ended_if_last, entered, replay
from recipe.audit.segments import Anew, Segment, Stop
from recipe.audit.skips import at_next_epoch, grown, skipped
from recipe.audit.state import Cursor, Malformed, PoolState, State
from recipe.audit.terms import Terms
from recipe.errors import RecipeError
from recipe.pools import Finding, Pool, grown_from


class _Was(NamedTuple):
    """How a pool gives what it once was."""

    is_there: bool
    prefix: tuple[int, int] | None = None
    """Units and those of an extent that it had, where it has grown since."""


@dataclass(frozen=True, slots=True)
class Bench:
    """Everything needed to compute rows again."""

    text: Text
    pools: Mapping[str, Pool]
    """Those that are there."""
    _known: dict[tuple[str, object], _Was] = field(default_factory=dict)

    def ground(self, terms: Terms) -> Ground:
        """What steps under some terms were served from: pools as they were, or their beginnings."""
        books = []
        for book in books_of(terms.intent.recipe, self.pools, terms.withdrawn):
            was = self._was(terms, book.name)
            books.append(replace(book, found=book.found if was.is_there else None, prefix=was.prefix))
        return Ground(terms.intent.layouts, tuple(books), terms.intent.carried)

    def can(self, segment: Segment) -> bool:
        """Whether all pools are there that a segment was served from."""
        return all(self.has(segment.terms, name) for name in segment.drawn)

    def was(self, name: str, fingerprint: object) -> bool:
        """Whether a pool has a fingerprint, or had it before it grew."""
        return _was(self.pools.get(name), fingerprint).is_there

    def has(self, terms: Terms, name: str) -> bool:
        """Whether a pool is there as it was under some terms, or has only grown since."""
        return self._was(terms, name).is_there

    def _was(self, terms: Terms, name: str) -> _Was:
        """A pool as it was under some terms."""
        mark = terms.holdings.get(name, {}).get("fingerprint")
        if (name, mark) not in self._known:
            self._known[name, mark] = _was(self.pools.get(name), mark)
        return self._known[name, mark]


def _was(pool: Pool | None, fingerprint: object) -> _Was:
    if pool is None or pool.fingerprint == fingerprint:
        return _Was(pool is not None)
    try:
        prefix = grown_from(str(fingerprint), pool)
    except (RecipeError, ValueError):
        return _Was(False)
    return _Was(True, (prefix.units, prefix.extent_units))


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
        work = _Work(bench, segment, ground, cache)
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

    bench: Bench
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
    return work.intent.state_of(start, work.bench.text.row(start))


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
        row: Plain = self.work.bench.text.row(stop.entry)
        expected = self._expected(stop, state, row)
        observed = {key: value for key, value in row.items() if key not in COMMON}
        if stop.entry.kind != "chunk":
            observed = {key: observed.get(key) for key in expected}
        elif expected["snapshot"] != row.get("snapshot"):
            outcome.states[stop.entry.line] = state
        outcome.findings[stop.entry.line] = compared("replay", stop.entry.where, expected, observed)

    def _expected(self, stop: Stop, state: State, row: Plain) -> Plain:
        work, intent = self.work, self.work.intent
        if stop.anew is not None:
            return {"snapshot": _moved(work.bench, stop.anew, intent.names, state).to_plain()}
        if stop.entry.kind == "skip":
            seen = skipped(work.ground, self.start, state, returned=bool(row.get("returned")))
            numbers = {"sequences": dict(seen.sequences), "tokens": dict(seen.tokens)}
            return {**numbers, "snapshot": seen.base.to_plain()}
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


def _moved(bench: Bench, anew: Anew, names: Sequence[str], state: State) -> State:
    """A turn's state with the pools whose reading it moved, computed from what they were before."""
    found = {anew.called.get(name, name): pool for name, pool in bench.pools.items()}
    books = {book.name: book for book in Bench(bench.text, found).ground(anew.terms).books}
    pools = []
    for name, stated in zip(names, state.pools, strict=True):
        pool = anew.pools.get(name)
        if pool is None:
            pools.append(stated)
            continue
        book = books[anew.called.get(name, name)]
        if name in anew.grown:
            was = _was(book.found, anew.grown[name])
            if was.prefix is None:
                raise Malformed(f"grown.{name}", "what the pool was before", anew.grown[name])
            pool = grown(pool, was.prefix)
        pools.append(at_next_epoch(book, pool) if name in anew.next_epoch else pool)
    return replace(state, pools=tuple(pools))


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
