"""Rows of a run read for acceptance, and whole documents gathered from all their pieces."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from recipe.audit.infilling import draw_key
from recipe.audit.parts import Piece, Row, Text
from recipe.audit.rows import ARRAYS
from recipe.audit.verify import Readings, Seen
from recipe.mixing.row_pieces import Hit
from recipe.mixing.tracing import Search, Stretch, merged
from recipe.mixing.walker import Walker
from recipe.pools.selection import units_of
from recipe.run.stream import RunStream
from recipe.run.tracing.courses import Course
from recipe.sequences.bundles import columns_of
from recipe.sequences.pieces import AHEAD, MARKER

STEPS = 12
"""Steps of a course whose rows are read."""
ROWS = 32
"""Rows of such a step."""
CANDIDATES = 4
"""Documents that are looked for, for each that is put together."""
WINDOW_POSITIONS = 1 << 32
"""How far from a row the other pieces of its documents are looked for."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Span:
    """Steps of one course that are looked at."""

    course: Course
    first: int
    stop: int

    @property
    def stream(self) -> RunStream:
        """The stream that serves them."""
        return self.course.stream

    @property
    def steps(self) -> range:
        """The steps."""
        return range(self.first, self.stop)

    def text(self, pool: str, number: int) -> Text:
        """A document as its pool holds it."""
        held = self.course.pools[pool]
        [bos], [eos] = held.stored_marks(np.array([number]))
        lead = held.stored(number)[: int(held.fronts(np.array([number]))[0])]
        unit = None
        if held.units is not None:
            [found] = units_of(held, np.array([number])).tolist()
            unit = found if held.units[found + 1] - held.units[found] > 1 else None
        text = Text(held.tokens(number), held.bos if bos else None, held.eos if eos else None, unit=unit)
        return text if len(lead) == bos else replace(text, bos=None, lead=tuple(lead.tolist()))

    def seen(self, step: int, row: int, planned: Planned) -> Seen:
        """A row as the rank gets it that has this row alone, with its documents."""
        curriculum = self.stream.curriculum
        stretch = curriculum.stretch(step)
        batch = self.stream.rows(step, [row])
        arrays = {name: batch[name][0] for name in ARRAYS}
        recipe = self.stream.recipe
        rule = recipe.rule(curriculum.stages[stretch.stage].name, planned.pool)
        order_key = (
            None
            if rule.fim is None
            else draw_key(recipe.seed, planned.epoch, recipe.order_name(planned.pool))
        )
        held = Row(f"step {step}, row {row}", planned.pool, arrays, planned.pieces, order_key)
        numbers = {int(piece.document) for piece in planned.pieces}
        texts: dict[int | str, Text] = {number: self.text(planned.pool, number) for number in numbers}
        if rule.specials == "window":  # marks stand round every piece, whatever is stored
            pool = self.course.pools[planned.pool]
            texts = {number: replace(text, bos=pool.bos, eos=pool.eos) for number, text in texts.items()}
        return Seen(held, rule, texts)


@dataclass(frozen=True, slots=True)
class Planned:
    """The pieces of one row, as the stream planned them: documents by number."""

    pool: str
    epoch: int
    pieces: tuple[Piece, ...]


def planned_rows(stream: RunStream, step: int) -> list[Planned]:
    """What each row of a step is made of.

    Raises:
        ValueError: the run has no such step.
    """
    walked = Walker(stream.ground, stream.snapshot(step)).advance(step + 1)
    rows = []
    for row in range(walked.stretch.batch if walked.num_steps else 0):
        block = walked.blocks[int(walked.block_of[row])]
        first, end = block.rows.ends[int(walked.indices[row]) :][:2].tolist()
        held = block.rows.pieces.take(np.arange(first, end))
        pieces, columns = [], columns_of(held, block.multiple).tolist()
        for k, column in enumerate(columns):
            document, start, stop, fresh, flags = (int(of[k]) for of in held)
            if not flags & (AHEAD | MARKER) and stop > start:
                pieces.append(Piece(int(block.documents[document]), start, stop, fresh, column))
        pool = stream.pools[int(walked.pools[row])]
        rows.append(Planned(pool, block.place.epoch, tuple(pieces)))
    return rows


class Gathered:
    """Rows and documents that were read, over all courses."""

    def __init__(self, chance: np.random.Generator, watch: Callable[[int], None]) -> None:
        """Nothing yet; ``watch`` is called with the rows read so far."""
        self._watch, self._done = watch, 0
        self.rows: list[Seen] = []
        self.steps = 0
        self.readings = Readings()
        self._chance = chance

    def read(self, span: Span, documents: int) -> None:
        """Read rows of some steps, and all pieces of some of the documents that they hold."""
        steps = some(self._chance, span.steps, STEPS)
        wanted: dict[int, set[int]] = {}
        read = []
        for step in steps:
            try:
                planned = planned_rows(span.stream, step)
            except ValueError:  # a pool ran dry before it
                break
            self.steps += bool(planned)
            rows = some(self._chance, range(len(planned)), ROWS)
            self.rows += [self._seen(span, step, row, planned[row]) for row in rows]
            of_rows = [(planned[row].pool, piece.document) for row in rows for piece in planned[row].pieces]
            for pool, number in some(self._chance, of_rows, CANDIDATES * -(-documents // len(steps))):
                wanted.setdefault(span.stream.pools.index(pool), set()).add(int(number))
            read.append(step)
        for hit in sorted(self._chosen(span, list(_hits(span, wanted, read)), documents)):
            piece = Piece(hit.document, hit.start, hit.stop, hit.fresh, hit.column)
            planned_row = Planned(span.stream.pools[hit.pool], hit.epoch, (piece,))
            self.readings.add(self._seen(span, hit.step, hit.row, planned_row), hit.epoch)

    def _seen(self, span: Span, step: int, row: int, planned: Planned) -> Seen:
        self._done += 1
        self._watch(self._done)
        return span.seen(step, row, planned)

    def _chosen(self, span: Span, hits: Sequence[Hit], documents: int) -> list[Hit]:
        """The pieces of so many documents: those seen whole first, of these the ones in several pieces."""
        readings: dict[tuple[int, int, int], list[Hit]] = {}
        for hit in hits:
            readings.setdefault((hit.pool, hit.epoch, hit.document), []).append(hit)

        def rank(key: tuple[int, int, int]) -> tuple[bool, bool]:
            held = span.text(span.stream.pools[key[0]], key[2]).num_tokens
            seen = sum(hit.stop - hit.fresh for hit in readings[key])
            return seen < held, len(readings[key]) == 1

        keys = list(readings)
        order = sorted((keys[k] for k in self._chance.permutation(len(keys))), key=rank)
        return [hit for key in order[:documents] for hit in readings[key]]


def _hits(span: Span, wanted: Mapping[int, set[int]], steps: Sequence[int]) -> Iterator[Hit]:
    """Every piece of some documents that was read, or will be, not too far from some steps."""
    search = Search(span.stream.ground, wanted)
    for stretch in merged(s for window in _windows(span, steps) for s in _stretches(span, search, window)):
        for _, found in search.walk(stretch):
            yield from found


def _stretches(span: Span, search: Search, window: tuple[int, int]) -> Iterator[Stretch]:
    """What of a window is to be walked: of what is on record, only where the documents can be."""
    course = span.course
    low, high = course.before(window[0]), course.before(window[1])
    if low.step < high.step:
        yield from search.stretches(low, high, course.record.between)
    if high.step < window[1]:
        yield Stretch(high.snapshot, window[1])


def _windows(span: Span, steps: Sequence[int]) -> list[tuple[int, int]]:
    """Steps round some, where these overlap made one."""
    positions_at = span.stream.curriculum.positions_at
    windows: list[tuple[int, int]] = []
    for step in steps:
        here = positions_at(step)
        low = span.first + bisect_left(span.steps, here - WINDOW_POSITIONS, key=positions_at)
        high = span.first + bisect_right(span.steps, here + WINDOW_POSITIONS, key=positions_at)
        if windows and low <= windows[-1][1]:
            windows[-1] = (windows[-1][0], max(high, windows[-1][1]))
        else:
            windows.append((low, high))
    return windows


def some(chance: np.random.Generator, of: Sequence[T], most: int) -> list[T]:
    """At most so many of a sequence, in its order; the first and the last are among them."""
    if len(of) <= most:
        return list(of)
    inner = chance.choice(len(of) - 2, max(0, most - 2), replace=False) + 1
    return [of[k] for k in sorted({0, len(of) - 1, *inner.tolist()})][:most]
