"""Snapshots on record are found by halving, and are those of the turn that is asked about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import recipe
from recipe.run.changing.amend import amend_run
from recipe.run.changing.approval import Approval
from recipe.run.ledger import read_rows
from recipe.run.tracing.courses import Course, Lineage
from recipe.run.tracing.record import Record, RowMark
from tests.run.conftest import Build

WHY = Approval(reason="evaluation", approved_by="Ada")


@pytest.fixture
def path(build: Build, tmp_path: Path) -> Path:
    """A run of 25 steps whose every chunk is one or two steps, with checkpoints at steps 4, 9 and 20."""
    stages = build().stages
    chunked = {name: stage.model_copy(update={"chunk": 96}) for name, stage in stages.items()}
    with recipe.start_run(build().model_copy(update={"stages": chunked}), tmp_path / "run") as run:
        for step in (4, 9, 20):
            run.checkpoint(step)
    return tmp_path / "run"


def every_mark(course: Course) -> Iterator[RowMark]:
    """The marks of a course and all between them."""

    def within(low: RowMark, high: RowMark) -> Iterator[RowMark]:
        middle = course.record.between(low, high)
        if middle is not None:
            assert low.step < middle.step < high.step
            yield from within(low, middle)
            yield middle
            yield from within(middle, high)

    for low, high in course.pairs:
        yield from within(low, high)
        yield high


def walked(course: Course, step: int) -> object:
    """The state of a step, walked to from the course's beginning."""
    *_, at = course.stream.walk(course.marks[0].snapshot, step)
    return at


def test_every_checkpoint_and_chunk_row_is_met(path: Path):
    rows = [row for row in read_rows(path / "ledger.jsonl") if row.kind in ("chunk", "checkpoint")]
    with Lineage(path) as lineage:
        (course,) = lineage.courses
        assert [mark.step for mark in every_mark(course)] == sorted({row.end_step for row in rows})


def test_marks_are_the_states_of_their_steps_whatever_was_rewound(path: Path):
    with recipe.open_run(path, step=9) as run:
        run.checkpoint(10)
        run.checkpoint(13)
    with recipe.open_run(path, step=4) as run:
        run.checkpoint(18)
        run.checkpoint(21)
    with Lineage(path) as lineage:
        (course,) = lineage.courses
        marks = list(every_mark(course))
        assert [mark.step for mark in marks] == sorted({mark.step for mark in marks})
        assert len(marks) > 12
        assert all(mark.snapshot == walked(course, mark.step) for mark in marks)


def test_rows_of_a_turn_that_was_rewound_are_passed_over(path: Path):
    """Between the checkpoints at 4 and 17 lie rows of an amendment that does not count."""
    amend_run(path, ["stages.one.quotas.rest=90%"], from_pool="a", approval=WHY, at=9)
    with recipe.open_run(path) as run:
        run.checkpoint(14)
    with recipe.open_run(path, step=4) as run:
        run.checkpoint(17)
    with Lineage(path) as lineage:
        (course,) = lineage.courses
        marks = list(every_mark(course))
        assert all(mark.snapshot == walked(course, mark.step) for mark in marks)
        assert {mark.step for mark in marks} >= {4, 10, 12, 14, 16, 17}


def test_every_turn_has_marks_of_its_own(path: Path):
    amend_run(path, ["stages.one.quotas.rest=60%"], from_pool="a", approval=WHY, at=9)
    with recipe.open_run(path) as run:
        run.checkpoint(14)
    amend_run(path, ["stages.two.quotas.a=20%"], from_pool="c", approval=WHY)
    with recipe.open_run(path) as run:
        run.checkpoint(23)
    with Lineage(path) as lineage:
        assert [(c.first_step, c.stop_step, c.version) for c in lineage.courses] == [
            (0, 9, 1),
            (9, 14, 2),
            (14, 23, 3),
        ]
        for course in lineage.courses:
            marks = list(every_mark(course))
            assert marks[-1].step == course.stop_step
            assert all(mark.snapshot == walked(course, mark.step) for mark in marks if mark.step > 9)


def test_the_last_mark_before_a_step_is_found(path: Path):
    with Lineage(path) as lineage:
        (course,) = lineage.courses
        steps = [0, *(mark.step for mark in every_mark(course))]
        for step in range(21):
            assert course.before(step).step == max(one for one in steps if one <= step)


def test_a_row_is_found_by_its_number(path: Path):
    record = Record(path / "ledger.jsonl")
    rows = list(read_rows(path / "ledger.jsonl"))
    assert [record.numbered(number) for number in range(len(rows))] == rows
    assert record.numbered(len(rows)) is None
