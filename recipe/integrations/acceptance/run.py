"""Acceptance on a run's own data: rows, whole documents, labels, text, resume, ranks."""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from recipe.audit.findings import Finding
from recipe.audit.rows import ARRAYS, Piece, Row, Text
from recipe.audit.verify import Acceptance, Check, Readings, Seen, check_rows, check_seams, claim, open_claim
from recipe.errors import RecipeError
from recipe.integrations.acceptance.text import check_text
from recipe.mixing.row_pieces import Hit
from recipe.mixing.tracing import Search, Stretch, merged
from recipe.mixing.walker import Walker
from recipe.run.opening import open_run
from recipe.run.state import stream_from
from recipe.run.stream import RunStream
from recipe.run.trace_courses import Course, Lineage
from recipe.sequences.slicing import AHEAD as AHEAD_ONLY
from recipe.sequences.slicing import HAS_BOS, HAS_EOS

STEPS = 12
"""Steps of a course whose rows are read."""
ROWS = 32
"""Rows of such a step."""
MOST_COURSES = 8
"""Turns of a run that are looked at, the latest of them."""
CANDIDATES = 4
"""Documents that are looked for, for each that is put together."""
RESUMES = 3
"""Steps whose state is saved and opened apart."""
AHEAD = 64
"""Steps that are looked at where fewer were served."""
WINDOW_POSITIONS = 1 << 32
"""How far from a row the other pieces of its documents are looked for."""

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample:
    """What is looked at."""

    documents: int = 256
    """Documents that are put together again from all their pieces."""
    seed: int | None = None
    """Of the choice; None: drawn anew, so that it cannot be foreseen."""


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
        return Text(held.tokens(number), held.bos if bos else None, held.eos if eos else None)

    def seen(self, step: int, row: int, planned: Planned) -> Seen:
        """A row as the rank gets it that has this row alone, with its documents."""
        curriculum = self.stream.curriculum
        stretch = curriculum.stretch(step)
        batch = self.stream.batch(step, dp_rank=row, dp_size=stretch.batch)
        arrays = {name: batch[name][0] for name in ARRAYS}
        held = Row(f"step {step}, row {row}", planned.pool, arrays, planned.pieces)
        numbers = {int(piece.document) for piece in planned.pieces}
        texts: dict[int | str, Text] = {number: self.text(planned.pool, number) for number in numbers}
        rule = self.stream.recipe.rule(curriculum.stages[stretch.stage].name, planned.pool)
        return Seen(held, rule, texts)


def verify_run(
    path: str | Path,
    *,
    sample: Sample | None = None,
    pools_root: str | Path | None = None,
    tokenizer: str | Path | None = None,
    sources: Sequence[str | Path] = (),
) -> Acceptance:
    """Hold what a run serves against its documents; nothing is locked or written.

    Args:
        path: the run's folder.
        sample: how much is looked at, and by which choice.
        pools_root: where the pools are on this machine; default: where the record says.
        tokenizer: what turns ids into text; default: the recipe's.
        sources: folders that held the texts which the pools were made from.

    Raises:
        RecipeError: no run, a damaged record, pools that are missing or other ones.
    """
    sample = sample or Sample()
    if sample.documents < 1:
        raise ValueError(f"sample is {sample.documents}; it is a number of documents, at least 1")
    seed = secrets.randbits(32) if sample.seed is None else sample.seed
    chance = np.random.default_rng(seed)
    with Lineage(Path(path), None if pools_root is None else Path(pools_root)) as lineage:
        spans = _spans(lineage)
        gathered = Gathered(chance)
        for span in spans:
            gathered.read(span, -(-sample.documents // len(spans)))
        checks = [
            check_rows(gathered.rows, gathered.steps),
            *check_seams(gathered.readings),
            check_text(gathered.readings, lineage.last, tokenizer, [Path(root) for root in sources]),
            _check_resume(path, pools_root, _some(chance, spans[0].steps, RESUMES)),
            _check_ranks(spans[0], chance),
        ]
        gaps = [
            open_claim("gap", f"steps {gap.first_step}..{gap.stop_step - 1} of {gap.run}: {gap.why}")
            for gap in lineage.gaps
        ]
    return Acceptance(str(path), (*checks, *gaps), seed)


def _spans(lineage: Lineage) -> list[Span]:
    """The latest courses with their steps, latest first; the last one goes on for some that are to come."""
    last = lineage.last
    ahead = min(last.stream.num_steps, max(lineage.step, last.first_step + AHEAD))
    earlier = [Span(course, course.first_step, course.stop_step) for course in lineage.courses[-2::-1]]
    return [Span(last, last.first_step, ahead), *earlier][:MOST_COURSES]


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
        pieces, column = [], 0
        for k in range(first, end):
            document, start, stop, fresh, flags = (int(of[k]) for of in block.rows.pieces)
            if flags & AHEAD_ONLY:
                continue
            column += bool(flags & HAS_BOS)
            if stop > start:
                pieces.append(Piece(int(block.documents[document]), start, stop, fresh, column))
            column += stop - start + bool(flags & HAS_EOS)
        pool = stream.pools[int(walked.pools[row])]
        rows.append(Planned(pool, block.place.epoch, tuple(pieces)))
    return rows


class Gathered:
    """Rows and documents that were read, over all courses."""

    def __init__(self, chance: np.random.Generator) -> None:
        """Nothing yet."""
        self.rows: list[Seen] = []
        self.steps = 0
        self.readings = Readings()
        self._chance = chance

    def read(self, span: Span, documents: int) -> None:
        """Read rows of some steps, and all pieces of some of the documents that they hold."""
        steps = _some(self._chance, span.steps, STEPS)
        wanted: dict[int, set[int]] = {}
        read = []
        for step in steps:
            try:
                planned = planned_rows(span.stream, step)
            except ValueError:  # a pool ran dry before it
                break
            self.steps += bool(planned)
            rows = _some(self._chance, range(len(planned)), ROWS)
            self.rows += [span.seen(step, row, planned[row]) for row in rows]
            of_rows = [(planned[row].pool, piece.document) for row in rows for piece in planned[row].pieces]
            for pool, number in _some(self._chance, of_rows, CANDIDATES * -(-documents // len(steps))):
                wanted.setdefault(span.stream.pools.index(pool), set()).add(int(number))
            read.append(step)
        for hit in sorted(self._chosen(span, list(_hits(span, wanted, read)), documents)):
            piece = Piece(hit.document, hit.start, hit.stop, hit.fresh, hit.column)
            planned_row = Planned(span.stream.pools[hit.pool], hit.epoch, (piece,))
            self.readings.add(span.seen(hit.step, hit.row, planned_row), hit.epoch)

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


def _some(chance: np.random.Generator, of: Sequence[T], most: int) -> list[T]:
    """At most so many of a sequence, in its order; the first and the last are among them."""
    if len(of) <= most:
        return list(of)
    inner = chance.choice(len(of) - 2, max(0, most - 2), replace=False) + 1
    return [of[k] for k in sorted({0, len(of) - 1, *inner.tolist()})][:most]


def _check_resume(path: str | Path, pools_root: str | Path | None, steps: Sequence[int]) -> Check:
    """State bytes, opened apart, go on with the same batches (F4)."""
    findings, compared = list[Finding](), 0
    with open_run(path, pools_root=pools_root) as run:
        for step in steps:
            try:
                expected = {
                    after: run.stream().batch(after) for after in (step, step + 1)[: run.num_steps - step]
                }
                state = run.state(step)
            except (ValueError, RecipeError):
                break
            with closing(stream_from(state)) as other:
                compared += 1
                for after, batch in expected.items():
                    where = f"step {after}, from the state of step {step}"
                    findings += _unequal(where, batch, other.batch(after))
    if not compared:
        return open_claim("resume", "no step can be served")
    return claim("resume", f"{compared} states saved and opened apart: the same batches follow", findings)


def _check_ranks(span: Span, chance: np.random.Generator) -> Check:
    """What ranks are dealt is the global batch, each row once."""
    findings, sizes = list[Finding](), set[int]()
    for step in _some(chance, span.steps, 1):
        batch = span.stream.curriculum.stretch(step).batch
        try:
            whole = span.stream.batch(step)
        except ValueError:
            break
        for size in [size for size in (1, 2, 3, 4, 8, batch) if batch % size == 0]:
            parts = [span.stream.batch(step, dp_rank=rank, dp_size=size) for rank in range(size)]
            together = {name: np.concatenate([part[name] for part in parts]) for name in ARRAYS}
            findings += _unequal(f"step {step}, {size} ranks", whole, together)
            sizes.add(size)
    if not sizes:
        return open_claim("ranks", "no step can be served")
    said = f"{', '.join(map(str, sorted(sizes)))} ranks: together they hold the global batch, row by row"
    return claim("ranks", said, findings)


def _unequal(where: str, expected: Mapping[str, Any], observed: Mapping[str, Any]) -> list[Finding]:
    """Arrays of two batches that differ: the first place of each."""
    found = []
    for name in ARRAYS:
        a, b = expected[name], observed[name]
        if a.shape != b.shape:
            found.append(Finding("batches", f"{where}: {name}", str(a.shape), str(b.shape)))
        elif (wrong := np.argwhere(a != b)).size:
            row, column = wrong[0].tolist()
            place = f"{where}, row {row}, column {column}: {name}"
            found.append(Finding("batches", place, str(a[row, column]), str(b[row, column])))
    return found
