"""Which rows an audit computes again: from a step or a manifest on, of one stage, or all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from recipe.audit.course import Course
from recipe.audit.segments import Segment
from recipe.errors import Problem, RecipeError

_MANIFEST = re.compile(r"@(\d{1,18})|(?:.*/)?(\d{6,18})\.yaml")


@dataclass(frozen=True, slots=True)
class Scope:
    """What was asked for; chain, sums and manifests are always checked whole."""

    since: int | str | None = None
    """A step, or a manifest: ``"@12"``, or the path of its file."""
    stage: str | None = None

    @property
    def is_whole(self) -> bool:
        """Whether every row is meant."""
        return self.since is None and self.stage is None

    @property
    def said(self) -> str:
        """In words; "" for all rows."""
        since = [] if self.since is None else [f"since {_named(self.since)}"]
        return " ".join([*since, *([] if self.stage is None else [f"of stage {self.stage}"])])


def within(course: Course, segments: Sequence[Segment], scope: Scope) -> list[Segment]:
    """The segments that hold a row of the scope.

    Raises:
        RecipeError: the run has no such step, manifest or stage.
    """
    problems: list[Problem] = []
    step, line = _since(course, scope.since, problems)
    stage = _stage(course, scope.stage, problems)
    if problems:
        raise RecipeError("recipe audit", problems)
    return [
        segment
        for segment in segments
        if (stage is None or segment.stage == stage)
        and any(stop.step > step and stop.entry.line > line for stop in segment.stops)
    ]


def _since(course: Course, since: int | str | None, problems: list[Problem]) -> tuple[int, int]:
    """Rows count that end behind this step and stand behind this line."""
    if since is None:
        return -1, -1
    text = str(since).strip()
    if match := _MANIFEST.fullmatch(text):
        return -1, _line_of(course, int(match[1] or match[2]), text, problems)
    last = max((stop.step for segment in course.segments for stop in segment.stops), default=0)
    if text.isdecimal() and int(text) <= last:
        return int(text), -1
    manifest = f"@{max(course.numbers, default=1)}"
    expected = f"a step in 0..{last}, which rows tell of, or a manifest such as {manifest}"
    problems.append(Problem("--since", text, expected, "`recipe status` shows both"))
    return -1, -1


def _line_of(course: Course, number: int, text: str, problems: list[Problem]) -> int:
    """Line of the checkpoint row of a manifest."""
    for entry in course.text.entries:
        if entry.kind == "checkpoint" and course.text.row(entry).get("manifest") == number:
            return entry.line
    known = f"1..{max(course.numbers)}" if course.numbers else "none so far"
    problems.append(
        Problem("--since", text, f"a manifest on record: {known}", "`recipe status` shows the last")
    )
    return -1


def _stage(course: Course, name: str | None, problems: list[Problem]) -> int | None:
    if name is None:
        return None
    names = [layout.name for layout in course.intent.layouts]
    if name in names:
        return names.index(name)
    near = get_close_matches(name, names, n=1)
    fix = f"did you mean {near[0]!r}?" if near else "name a stage of the run's recipe"
    problems.append(Problem("--stage", name, f"one of {', '.join(names)}", fix))
    return None


def _named(since: int | str) -> str:
    match = _MANIFEST.fullmatch(str(since).strip())
    return f"manifest {int(match[1] or match[2])}" if match else f"step {since}"
