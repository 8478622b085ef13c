"""Acceptance on a run's own data: rows, whole documents, labels, text, resume, ranks."""

from __future__ import annotations

import secrets
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from recipe.audit.findings import Finding
from recipe.audit.rows import ARRAYS, Piece, Row, Text
from recipe.audit.verify import Acceptance, Check, Readings, Seen, check_rows, check_seams, claim, open_claim
from recipe.errors import RecipeError
from recipe.integrations.acceptance.text import check_text
from recipe.mixing.opening import open_pools
from recipe.mixing.tracing import Hit, Search, Stretch, merged
from recipe.mixing.walker import Walker
from recipe.pools import Pool
from recipe.run.folder import RunFolder
from recipe.run.ledger import read_tail, surviving
from recipe.run.opening import open_run
from recipe.run.run import Run
from recipe.run.state import State, stream_from
from recipe.run.stream import RunStream
from recipe.run.turns import turns_backwards
from recipe.sequences.slicing import AHEAD as AHEAD_ONLY
from recipe.sequences.slicing import HAS_BOS, HAS_EOS

MOST_COURSES = 8
"""Turns of a run that are looked at, the latest of them."""
STEPS = 12
"""Steps of a course whose rows are read."""
ROWS = 32
"""Rows of such a step."""
RESUMES = 3
"""Steps of a course whose state is saved and opened apart."""
AHEAD = 64
"""Steps that are looked at where fewer were served."""
WINDOW_POSITIONS = 1 << 30
"""How far from a row the other pieces of its documents are looked for, in positions walked."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Course:
    """Steps of a run between two turns, with a handle that serves them."""

    run: Run
    stream: RunStream
    pools: Mapping[str, Pool]
    first: int
    stop: int
    """The step after the last one that is looked at."""

    def text(self, pool: str, number: int) -> Text:
        """A document as its pool holds it."""
        held = self.pools[pool]
        [bos], [eos] = held.stored_marks(np.array([number]))
        return Text(held.tokens(number), held.bos if bos else None, held.eos if eos else None)

    def stage(self, step: int) -> str:
        """The stage of a step."""
        curriculum = self.stream.curriculum
        return curriculum.stages[curriculum.stretch(step).stage].name


def verify_run(
    path: str | Path,
    *,
    sample: int = 256,
    pools_root: str | Path | None = None,
    tokenizer: str | Path | None = None,
    seed: int | None = None,
) -> Acceptance:
    """Hold what a run serves against its documents; nothing is locked or written.

    Args:
        path: the run's folder.
        sample: documents that are put together again from all their pieces.
        pools_root: where the pools are on this machine; default: where the record says.
        tokenizer: what turns ids into text; default: the recipe's.
        seed: of the choice; default: drawn anew, so that it cannot be foreseen.

    Raises:
        RecipeError: no run, a damaged record, pools that are missing or other ones.
    """
    if sample < 1:
        raise ValueError(f"sample is {sample}; it is a number of documents, at least 1")
    seed = secrets.randbits(32) if seed is None else seed
    chance = np.random.default_rng(seed)
    with ExitStack() as stack:
        courses, gone = _courses(Path(path), pools_root, stack)
        gathered = Gathered(chance)
        for course in courses:
            gathered.read(course, -(-sample // len(courses)))
        first = courses[0]
        checks = [
            check_rows(gathered.rows, gathered.steps),
            *check_seams(gathered.readings),
            check_text(gathered.readings, first.run.recipe, first.pools, tokenizer),
            _check_resume(courses, chance),
            _check_ranks(first, chance),
        ]
    checks += [open_claim("earlier turns", why) for why in gone]
    return Acceptance(str(path), tuple(checks), seed)


def _courses(path: Path, pools_root: str | Path | None, stack: ExitStack) -> tuple[list[Course], list[str]]:
    """The latest courses of a run, latest first; and of those that cannot be served any more, why."""
    folder = RunFolder(path)
    folder.check()
    turns = [row.end_step for row in turns_backwards(folder.ledger)][:MOST_COURSES]
    courses = [_opened(stack, open_run(path, pools_root=pools_root), turns[0], None)]
    checkpoints = _checkpoints(folder, turns[-1]) if len(turns) > 1 else []
    gone = []
    for first, stop in zip(turns[1:], turns, strict=False):
        inside = [step for step in checkpoints if first <= step < stop]
        if not inside:
            continue
        try:
            courses.append(_opened(stack, open_run(path, max(inside), pools_root=pools_root), first, stop))
        except RecipeError as error:
            gone.append(f"steps {first}..{stop - 1}: {error.problems[0].given}")
    return courses, gone


def _checkpoints(folder: RunFolder, first: int) -> list[int]:
    """Steps of the lineage's checkpoints from a step on; its beginning counts as one."""
    steps = [first]
    for row in surviving(folder.ledger, read_tail(folder.ledger)):
        if row.end_step < first:
            break
        if row.kind == "checkpoint":
            steps.append(row.end_step)
    return steps


def _opened(stack: ExitStack, run: Run, first: int, stop: int | None) -> Course:
    """A course; the one in force goes on for some steps that are still to be served."""
    stack.enter_context(run)
    stream = run.stream()
    paths = {name: Path(held.path) for name, held in State.from_bytes(run.state()).holdings.items()}
    pools = {name: stack.enter_context(pool) for name, pool in open_pools(run.recipe, paths).items()}
    ahead = min(stream.num_steps, max(run.step, first + AHEAD)) if stop is None else stop
    return Course(run, stream, pools, first, ahead)


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

    def read(self, course: Course, documents: int) -> None:
        """Read rows of some steps, and all pieces of some of the documents that they hold."""
        steps = _some(self._chance, range(course.first, course.stop), STEPS)
        wanted: dict[int, set[int]] = {}
        windows = []
        for step in steps:
            try:
                planned = planned_rows(course.stream, step)
            except ValueError:  # a pool ran dry before it
                break
            self.steps += bool(planned)
            rows = _some(self._chance, range(len(planned)), ROWS)
            self.rows += [seen(course, step, row, planned[row]) for row in rows]
            of_rows = [(planned[row].pool, piece.document) for row in rows for piece in planned[row].pieces]
            for pool, number in _some(self._chance, of_rows, -(-documents // len(steps))):
                wanted.setdefault(course.stream.pools.index(pool), set()).add(int(number))
            windows.append(_window(course, step))
        self._read_documents(course, wanted, windows)

    def _read_documents(
        self, course: Course, wanted: Mapping[int, set[int]], windows: Sequence[tuple[int, int]]
    ) -> None:
        """Every piece of some documents in one turn, as far as is walked."""
        stream = course.stream
        search = Search(stream.ground, wanted)
        stretches = merged(Stretch(stream.snapshot(low), high) for low, high in windows)
        hits = [hit for stretch in stretches for _, found in search.walk(stretch) for hit in found]
        for hit in sorted(hits):
            planned = Planned(stream.pools[hit.pool], hit.epoch, (_piece(hit),))
            self.readings.add(seen(course, hit.step, hit.row, planned), hit.epoch)


def _piece(hit: Hit) -> Piece:
    return Piece(hit.document, hit.start, hit.stop, hit.fresh, hit.column)


def seen(course: Course, step: int, row: int, planned: Planned) -> Seen:
    """A row as it is handed out, with its documents."""
    batch = course.stream.curriculum.stretch(step).batch
    arrays = course.stream.batch(step, dp_rank=row, dp_size=batch)
    held = Row(
        f"step {step}, row {row}", planned.pool, {name: arrays[name][0] for name in ARRAYS}, planned.pieces
    )
    texts: dict[int | str, Text] = {
        piece.document: course.text(planned.pool, int(piece.document)) for piece in planned.pieces
    }
    return Seen(held, course.run.recipe.rule(course.stage(step), planned.pool), texts)


def _window(course: Course, step: int) -> tuple[int, int]:
    """Steps round one in which the other pieces of its documents are looked for."""
    curriculum = course.stream.curriculum
    here = curriculum.positions_at(step)
    steps = range(course.first, course.stop)
    low = bisect_left(steps, here - WINDOW_POSITIONS, key=curriculum.positions_at)
    high = bisect_right(steps, here + WINDOW_POSITIONS, key=curriculum.positions_at)
    return course.first + low, course.first + high


def _some(chance: np.random.Generator, of: Sequence[T], most: int) -> list[T]:
    """At most so many of a sequence, in its order; the first and the last are among them."""
    if len(of) <= most:
        return list(of)
    inner = chance.choice(len(of) - 2, max(0, most - 2), replace=False) + 1
    return [of[k] for k in sorted({0, len(of) - 1, *inner.tolist()})][:most]


def _check_resume(courses: Sequence[Course], chance: np.random.Generator) -> Check:
    """State bytes, opened apart, go on with the same batches."""
    findings, compared = list[Finding](), 0
    for course in courses:
        for step in _some(chance, range(course.first, course.stop), RESUMES):
            try:
                expected = dict(course.stream.batches(step, stop=min(step + 2, course.stop), read_ahead=0))
                state = course.run.state(step)
            except (ValueError, RecipeError):
                break
            with closing(stream_from(state)) as other:
                compared += bool(expected)
                for after, batch in expected.items():
                    where = f"step {after}, from the state of step {step}"
                    findings += _unequal(where, batch, other.batch(after))
    if not compared:
        return open_claim("resume", "no step can be served")
    return claim("resume", f"{compared} states saved and opened apart: the same batches follow", findings)


def _check_ranks(course: Course, chance: np.random.Generator) -> Check:
    """What ranks are dealt is the global batch, each row once."""
    findings, sizes = list[Finding](), set[int]()
    for step in _some(chance, range(course.first, course.stop), 1):
        batch = course.stream.curriculum.stretch(step).batch
        try:
            whole = course.stream.batch(step)
        except ValueError:
            break
        for size in [size for size in (1, 2, 3, 4, 8, batch) if batch % size == 0]:
            parts = [course.stream.batch(step, dp_rank=rank, dp_size=size) for rank in range(size)]
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
