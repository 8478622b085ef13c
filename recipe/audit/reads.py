"""What was read of each pool: stretches of its reading without a jump, from the rows that count.

A reading jumps where steps were skipped, where other data was accepted, and where a branch began its
data anew; it goes on across everything else. What a branch's parents read counts, where they are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from recipe.audit.books import Book, books_of
from recipe.audit.course import Course
from recipe.audit.lineage import TURNS, Mark
from recipe.audit.state import Cursor, PoolState, State
from recipe.audit.terms import Terms
from recipe.config import Rule
from recipe.errors import RecipeError
from recipe.pools import Pool
from recipe.pools.growth import grown_from

Prefix = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Read:
    """A stretch of a pool's reading: what lies between two places, under one set of rules."""

    book: Book
    start: Cursor
    stop: Cursor
    held: tuple[Cursor, ...]
    """Ranges to be read again, at the start."""
    left: tuple[Cursor, ...]
    """Of them, those that are left at the stop: the last ones, the first of these perhaps in part."""
    stage: int
    prefix: Prefix | None
    """Units of an epoch and of its extents, where the pool was smaller then."""
    life: int
    """How often the reading had begun anew."""


@dataclass(frozen=True, slots=True)
class History:
    """All that was read of one pool."""

    reads: tuple[Read, ...]
    state: PoolState
    """Where it stands."""
    replaced: int = 0
    """Documents begun of other pools that stood in its place."""
    note: str = ""
    """What is taken for granted, where a parent is not here."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Steps of one stage between two turns."""

    terms: Terms
    stage: int
    start: State
    stop: State


def histories(courses: Sequence[Course], pools: Mapping[str, Pool], *, whole: bool) -> dict[str, History]:
    """By pool of the last course; ``courses`` are a run and its parents, oldest first.

    ``whole``: whether the first of them is no branch. Pools that are not there are left out; nothing is
    known, {}, where a row of the lineage cannot be read.
    """
    last = courses[-1].terms
    known: list[_Stretch] = []
    for stretch in (stretch for course in courses for stretch in _stretches(course)):
        if stretch is None:
            return {}
        known.append(stretch)
    shelves = _Shelves(pools)
    found = {}
    for name, state in zip(last.names, known[-1].stop.pools, strict=True):
        if name in pools:
            collector = _Collector(pools[name], last.intent.recipe.order_name(name), shelves)
            if not whole:
                collector.assume(known[0])
            for stretch in known:
                collector.add(stretch)
            found[name] = collector.history(state)
    return found


def _stretches(course: Course) -> Iterator[_Stretch | None]:
    """In order; None where a snapshot cannot be read."""
    lineage = course.lineage
    at = [place for place, mark in enumerate(lineage.marks) if mark.entry.kind in TURNS]
    for place, after in pairwise([*at, len(lineage.marks)]):
        turn, inner = lineage.marks[place], lineage.marks[place + 1 : after]
        state = lineage.snapshot(turn.entry, turn.terms)
        ends = [(mark.stage, lineage.snapshot(mark.entry, mark.terms)) for mark in _ends_of_stages(inner)]
        if after == len(lineage.marks):
            stop = lineage.furthest()[1]
            ends.append((0 if stop is None else stop.stage, stop))
        for stage, end in ends:
            yield None if state is None or end is None else _Stretch(turn.terms, stage, state, end)
            state = end


def _ends_of_stages(marks: Sequence[Mark]) -> Iterator[Mark]:
    for place, mark in enumerate(marks):
        if place + 1 == len(marks) or marks[place + 1].stage != mark.stage:
            yield mark


class _Shelves:
    """The books of each set of terms, by what pools' orders are keyed on."""

    def __init__(self, pools: Mapping[str, Pool]) -> None:
        self._by_order: dict[int, dict[str, Book]] = {}
        self._pools = pools

    def of(self, terms: Terms, order: str, pool: Pool) -> Book:
        """The book of a pool under some terms, whatever it was called then."""
        known = self._by_order.get(id(terms))
        if known is None:
            recipe = terms.intent.recipe
            known = {book.order or book.name: book for book in books_of(recipe, {}, terms.withdrawn)}
            self._by_order[id(terms)] = known
        return replace(known[order], found=pool)


class _Collector:
    """Puts the stretches of one pool together."""

    def __init__(self, pool: Pool, order: str, shelves: _Shelves) -> None:
        self._pool = pool
        self._order = order
        self._shelves = shelves
        self._reads: list[Read] = []
        self._life = 0
        self._replaced = 0
        self._note = ""
        self._known: dict[str, tuple[bool, Prefix | None]] = {pool.fingerprint: (True, None)}

    def assume(self, stretch: _Stretch) -> None:
        """A parent that is not here read without a jump up to where its branch began."""
        found = self._state(stretch.terms, stretch.start)
        if found is None or not found[1].counts["documents"]:
            return
        name, state = found
        self._note = "what it read before the branch is not known: its parent is not here"
        if state.cursor != Cursor():
            self._note = "its parent is not here: before the branch it is taken to have read without a jump"
            before = replace(state, cursor=Cursor(), held=())
            self._read(stretch, name, (before, replace(state, held=())))

    def add(self, stretch: _Stretch) -> None:
        """What a stretch of steps read of the pool."""
        start, stop = (self._state(stretch.terms, state) for state in (stretch.start, stretch.stop))
        if start is not None and stop is not None:
            self._read(stretch, start[0], (start[1], stop[1]))

    def history(self, state: PoolState) -> History:
        """All of it."""
        return History(tuple(self._reads), state, self._replaced, self._note)

    def _state(self, terms: Terms, state: State) -> tuple[str, PoolState] | None:
        """Of the pool, whatever it was called, and its name."""
        recipe = terms.intent.recipe
        places = zip(terms.names, state.pools, strict=True)
        return next((place for place in places if recipe.order_name(place[0]) == self._order), None)

    def _read(self, stretch: _Stretch, name: str, states: tuple[PoolState, PoolState]) -> None:
        before, after = states
        if (before.cursor, before.held) == (after.cursor, after.held):
            return
        is_it, prefix = self._was(str(stretch.terms.holdings.get(name, {}).get("fingerprint")))
        if not is_it:
            self._replaced += after.counts["documents"] - before.counts["documents"]
            return
        start, stop = (_sized(state.cursor, prefix) for state in states)
        held, left = (tuple(_sized(place, prefix) for place in state.held) for state in states)
        book = self._shelves.of(stretch.terms, self._order, self._pool)
        self._join(Read(book, start, stop, held, left, stretch.stage, prefix, self._life))

    def _join(self, read: Read) -> None:
        """Add it, to the stretch before where nothing lies between."""
        last = self._reads[-1] if self._reads else None
        if last is not None and _progress(read.start) < _progress(last.stop):
            self._life += 1
            read = replace(read, life=self._life)
        if last is not None and _goes_on(last, read):
            self._reads[-1] = replace(last, book=read.book, stop=read.stop, left=read.left)
        else:
            self._reads.append(read)

    def _was(self, fingerprint: str) -> tuple[bool, Prefix | None]:
        """Whether a pool was this one, or a beginning of it; and then its units and those of its extents."""
        if fingerprint not in self._known:
            try:
                prefix = grown_from(fingerprint, self._pool)
                self._known[fingerprint] = True, (prefix.units, prefix.extent_units)
            except (RecipeError, ValueError, LookupError, TypeError):
                self._known[fingerprint] = False, None
        return self._known[fingerprint]


def _sized(place: Cursor, prefix: Prefix | None) -> Cursor:
    return place if prefix is None or place.prefix is not None else replace(place, prefix=prefix)


def _progress(place: Cursor) -> tuple[int, int, int, int]:
    """Rises while a pool is read on."""
    return place.epoch, place.block, len(place.cuts), place.sequence


def _goes_on(last: Read, read: Read) -> bool:
    """Whether one stretch begins where another ended, under rules that leave out the same tokens."""
    if (last.stop, last.left, last.life, last.prefix) != (read.start, read.held, read.life, read.prefix):
        return False
    if last.book.withdrawn.number != read.book.withdrawn.number:
        return False
    behind = slice(last.stage + 1)
    if last.book.rules[behind] != read.book.rules[behind]:
        return False
    return last.stage == read.stage or not any(map(drops, (*last.book.rules, *read.book.rules)))


def drops(rule: Rule) -> bool:
    """Whether a rule may leave out tokens of a document."""
    if rule.method == "concat":
        return rule.tail != "keep"
    leaves_out = rule.density is not None or rule.duplicates is not None or bool(rule.behind)
    return rule.tail in ("drop", "backfill") or rule.oversize != "split" or leaves_out
