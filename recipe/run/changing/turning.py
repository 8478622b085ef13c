"""A turn of an open run: another recipe from a step on, put on record, and the course that follows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from recipe.config import Recipe
from recipe.mixing.opening import close_pools
from recipe.pools import Pool
from recipe.run.changing.amending import turned, worked_out
from recipe.run.changing.approval import Approval
from recipe.run.changing.change import open_for
from recipe.run.checkpoint import Writer
from recipe.run.course import Course
from recipe.run.place import Place, stream_of
from recipe.run.standing import Turning
from recipe.run.state import State
from recipe.run.statement import Subject
from recipe.run.words import words_at


def turn_course(
    course: Course, new: Recipe, approval: Approval, step: int, allow: Sequence[str] = ()
) -> Iterator[tuple[Course, State]]:
    """Turn a course to a settled recipe; yields what follows it, once that is on record, then finishes.

    Args:
        course: of an open run.
        new: the whole recipe.
        approval: why, and who approved it.
        step: the first step under it; not behind the course.
        allow: dotted names that a changed policy may have beside the shipped ones.

    Yields:
        the course from there on, and the state from which every rank goes on.

    Raises:
        RecipeError: as :func:`recipe.amend_run`; nothing is on record then.
        ValueError: accepted data is not on record yet, or a reason that cannot be put there.
    """
    said = approval.to_plain()
    if course.standing.turning is not None:
        raise ValueError("accepted data is not on record yet: write a checkpoint first")
    state = course.state_at(course.snapshot_ahead(step))
    place = Place(state=state, version_hash=course.subject.version_hash, from_state=False)
    change = open_for(place, new, None, None)
    try:
        _, base = worked_out(course.folder, place, change, anew=approval.by == "policy", allow=allow)
        subject, turning = turned(course.folder, place, change, base, said)
        for followed in _followed(course, subject, turning, change.pools):
            yield followed, followed.state_at(base)
    except BaseException:
        close_pools(change.pools.values())
        raise


def _followed(
    course: Course, subject: Subject, turning: Turning, pools: Mapping[str, Pool]
) -> Iterator[Course]:
    """Put a turn on record, where a checkpoint is with one of its own; yields the course that follows it."""
    folder, before, standing, step = course.folder, course.stream, course.standing, turning.base.step
    subject = replace(subject, turn=turning.place(subject))
    stream = stream_of(folder, subject, pools, turning.base)
    stream.follow(lambda: before)
    writer = Writer(folder, subject, stream)
    if step > standing.opened.step:
        on_record = iter([writer.write_turn(replace(standing, turning=replace(turning, stream=before)))])
    else:
        on_record = writer.write(replace(standing, turning=turning), step, words_at(folder, step))
    for written in on_record:
        yield Course(folder=folder, stream=stream, writer=writer, standing=written)
