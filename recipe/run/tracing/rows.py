"""What a row of a run was made of, down to the lines of its sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from recipe.errors import RecipeError
from recipe.mixing.row_pieces import Hit, row_hits
from recipe.run.tracing.courses import Course, Lineage
from recipe.run.tracing.sources import Sources
from recipe.run.tracing.tokenizers import tokenizers
from recipe.run.tracing.values import Progress, RowPiece, watch_nothing
from recipe.sequences.region import region_of


def trace_row(  # noqa: PLR0913 - the options of the verb
    path: str | Path,
    step: int,
    row: int,
    *,
    sources: Sequence[str | Path] = (),
    tokenizer: str | None = None,
    pools_root: str | Path | None = None,
    progress: Progress = watch_nothing,
) -> list[RowPiece]:
    """What a row of a step holds, left to right, and where its text is.

    Args:
        path: the run's folder.
        step: of the run; one that is not on record yet is walked to.
        row: of the global batch, in schedule order.
        sources: folders, or URLs of a store, that source files are looked for below, before the working
            directory.
        tokenizer: ``bytes`` or a path; default: the recipe's.
        pools_root: where the pools are on this machine; default: where they were.
        progress: called while steps are walked.

    Raises:
        RecipeError: no run, no such step or row, a pool that is missing or changed, or a step that
            cannot be traced.
    """
    with Lineage(Path(path), None if pools_root is None else Path(pools_root)) as lineage:
        course = course_of(lineage, step)
        of = RowSources(sources, tokenizer).of(course)
        return pieces_of_row(lineage, course, (step, row), of, progress)


class RowSources(NamedTuple):
    """Where the texts of a row may be."""

    roots: Sequence[str | Path] = ()
    tokenizer: str | None = None

    def of(self, course: Course) -> Sources:
        """Those of the rows of a course; what was read for one row is there for the next."""
        return Sources(tokenizers(course.stream.recipe, self.tokenizer), self.roots)


def pieces_of_row(
    lineage: Lineage, course: Course, at: tuple[int, int], of: Sources, progress: Progress
) -> list[RowPiece]:
    """What a row of a step of a course holds.

    Raises:
        RecipeError: no such step or row.
    """
    step, row = at
    curriculum = course.stream.curriculum
    batch = curriculum.stretch(step).batch if 0 <= step < curriculum.num_steps else 0
    if not 0 <= row < batch:
        raise _no_row(lineage, course, (step, row), batch)
    start = course.before(step).snapshot
    hits = row_hits(course.stream.ground, start, (step, row), lambda done: progress(done, step + 1))
    if hits is None:
        raise _no_row(lineage, course, (step, row), 0)
    for pool in {hit.pool for hit in hits}:
        of.load(course.pools[course.stream.pools[pool]], [hit.document for hit in hits])
    return [_row_piece(course, hit, of, lineage.step) for hit in hits]


def _row_piece(course: Course, hit: Hit, sources: Sources, on_record: int) -> RowPiece:
    pool, curriculum = course.pools[course.stream.pools[hit.pool]], course.stream.curriculum
    stage = curriculum.stages[curriculum.stretch(hit.step).stage].name
    return RowPiece(
        pool=pool.name,
        document=pool.ids([hit.document])[0],
        epoch=hit.epoch,
        columns=(hit.column, hit.column + hit.stop - hit.start),
        start=hit.start,
        stop=hit.stop,
        fresh=hit.fresh,
        status="read" if hit.step < on_record else "will be read",
        source=sources.place(pool, hit.document, (hit.start, hit.stop)),
        region=region_of(pool, hit.document, hit.fresh, course.stream.recipe.rule(stage, pool.name)),
    )


def course_of(lineage: Lineage, step: int) -> Course:
    """The course that a step belongs to.

    Raises:
        RecipeError: it cannot be traced.
    """
    for gap in lineage.gaps:
        if gap.first_step <= step < gap.stop_step:
            raise RecipeError.single(
                f"{lineage.run}: a step that cannot be traced",
                f"step {step}",
                given=gap.why,
                expected=f"a step outside {gap.first_step}..{gap.stop_step - 1} of {gap.run}",
                fix="put back what is missing",
            )
    return next((c for c in lineage.courses if c.first_step <= step < c.stop_step), lineage.last)


def _no_row(lineage: Lineage, course: Course, at: tuple[int, int], batch: int) -> RecipeError:
    step, row = at
    num_steps = course.stream.num_steps
    return RecipeError.single(
        f"{lineage.run}: no such {'row' if batch else 'step'}",
        "row" if batch else "step",
        given=f"row {row}" if batch else f"step {step}",
        expected=f"rows 0..{batch - 1} of step {step}"
        if batch
        else f"steps 0..{num_steps - 1}, if it goes on",
        fix="steps, and the rows of a global batch in schedule order, count from 0",
    )
