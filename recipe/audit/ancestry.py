"""A branch and the runs it came from, each followed up to where the next one left it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recipe.audit.chain import NAME, Text, read_text
from recipe.audit.course import Course
from recipe.audit.record import read_recipe, read_sealed

_MOST = 64
"""Generations that are followed."""


def with_parents(folder: Path, course: Course) -> tuple[list[Course], bool]:
    """The run's course behind those of its parents, oldest first; and whether they are all here.

    A parent counts where its folder is at the place on record, or beside the branch, has its identity, and
    holds the checkpoint that the branch left it at.
    """
    courses = [course]
    while isinstance(parent := courses[0].created.get("parent"), dict):
        found = _parent(folder, parent) if len(courses) < _MOST else None
        if found is None:
            return courses, False
        folder, before = found
        courses.insert(0, before)
    return courses, True


def _parent(folder: Path, parent: Mapping[str, Any]) -> tuple[Path, Course] | None:
    places = [Path(str(parent.get("path"))), folder.absolute().parent / str(parent.get("run"))]
    for place in places:
        identity = read_sealed(place, place / "run.yaml").value or {}
        if identity.get("id") == parent.get("id") and (place / NAME).is_file():
            course = _followed(place, parent)
            if course is not None:
                return place, course
    return None


def _followed(folder: Path, parent: Mapping[str, Any]) -> Course | None:
    """The course up to a checkpoint; None where the ledger has no such row, or cannot be followed."""
    text, faults = read_text(folder / NAME)
    line = next((entry.line for entry in text.entries if _is_it(text, entry.line, parent)), None)
    if line is None or any(fault.check == "chain" for fault in faults):
        return None
    upto = Text(text.data, text.entries[: line + 1])
    intent, _ = read_recipe(folder, upto.row(upto.entries[0]))
    if intent is None:
        return None
    course = Course(upto, intent, folder)
    course.follow()
    return course


def _is_it(text: Text, line: int, parent: Mapping[str, Any]) -> bool:
    entry = text.entries[line]
    if entry.kind != "checkpoint":
        return False
    row = text.row(entry)
    return (row.get("manifest"), row.get("manifest_hash")) == (parent.get("manifest"), parent.get("hash"))
