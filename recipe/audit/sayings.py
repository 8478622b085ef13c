"""Rows that only say something about a run: metrics, what was opened, decisions, what was forgotten.

Nothing else tells what they say; checked is that it is said as it should be, of manifests on record, and
that the evidence of a decision is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from recipe.audit.account import Plain
from recipe.audit.chain import Entry
from recipe.audit.findings import shown
from recipe.audit.following import Following, body
from recipe.pools import Finding
from recipe.run.canonical import digest

_HASH = re.compile(r"[0-9a-f]{64}")
_DECIDED = ("choice", "trunk", "amend")
_NO_NUMBERS = ("nan", "inf", "-inf")


def metrics(course: Following, entry: Entry, row: Plain) -> None:
    """Metrics that came later than their checkpoint."""
    _shaped(
        course,
        entry,
        row,
        {
            "manifest": (_is_number, "the number of a manifest on record"),
            "manifest_hash": (_is_hash, "its hash"),
            "metrics": (_are_metrics, "{set: {name: number}}"),
        },
    )
    _known(course, entry, row.get("manifest"), row.get("manifest_hash"))


def opened(course: Following, entry: Entry, row: Plain) -> None:
    """Sealed sets that were looked at."""
    _shaped(
        course,
        entry,
        row,
        {
            "sets": (_are_names, "names of sets"),
            "manifest": (_is_number, "the number of a manifest on record"),
            "by": (_is_text, "a text"),
            "reason": (_is_text, "a text"),
        },
    )
    _known(course, entry, row.get("manifest"), row.get("manifest_hash"))


def decision(course: Following, entry: Entry, row: Plain) -> None:
    """A branch that was adopted, or kept out, and what that rests on."""
    _shaped(
        course,
        entry,
        row,
        {
            "as": (lambda value: value in _DECIDED, f"one of {', '.join(_DECIDED)}"),
            "run": (_is_text, "the name of a run"),
            "id": (_is_text, "what tells it from all others"),
            "manifest": (_is_number, "the number of a manifest"),
            "manifest_hash": (_is_hash, "its hash"),
            "evidence": (_is_hash, "the hash of what it rests on"),
            "approved_by": (_is_text, "a name"),
            "reason": (_is_text, "a text"),
        },
    )
    if row.get("id") == course.created.get("id"):
        _known(course, entry, row.get("manifest"), row.get("manifest_hash"))
    rests_on(course, entry, row.get("evidence"))


def forgotten(course: Following, entry: Entry, row: Plain) -> None:
    """A checkpoint whose weights were deleted."""
    _shaped(
        course,
        entry,
        row,
        {
            "manifest": (_is_number, "the number of a manifest on record"),
            "manifest_hash": (_is_hash, "its hash"),
            "step": (lambda value: type(value) is int and value >= 0, "its step"),
            "reason": (_is_text, "a text"),
        },
    )
    _known(course, entry, row.get("manifest"), row.get("manifest_hash"))
    known = course.manifests.get(row.get("manifest", 0))
    if known is not None and known["state"].step != row.get("step"):
        course.say(entry, "lineage", "step", known["state"].step, row.get("step"))


def rests_on(course: Following, entry: Entry, evidence: object) -> None:
    """The file of an evidence, by its hash."""
    if not isinstance(evidence, str) or not _is_hash(evidence) or course.folder is None:
        return
    name = f"evidence/{evidence}.json"
    course.files.add(name)
    try:
        found = digest((course.folder / name).read_bytes())
    except OSError as error:
        found = error.strerror or "no file"
    if found != evidence:
        expected = f"contents with hash {evidence}, as {entry.where} says"
        course.findings[entry.line].append(Finding("evidence", name, expected, found))


KINDS: dict[str, Callable[[Following, Entry, Plain], None]] = {
    "metrics": metrics,
    "opened": opened,
    "decision": decision,
    "forgotten": forgotten,
}

Shape = tuple[Callable[[Any], bool], str]


def _shaped(course: Following, entry: Entry, row: Plain, shapes: dict[str, Shape]) -> None:
    """Every key as it should be, and no other."""
    said = body(row)
    for key, (is_right, expected) in shapes.items():
        if key not in said:
            course.say(entry, "shape", key, expected, "nothing")
        elif not is_right(said[key]):
            course.say(entry, "shape", key, expected, shown(said[key]))
    for key in sorted({*said} - {*shapes, "kind"}):
        course.say(entry, "shape", key, "nothing", shown(said[key]))


def _known(course: Following, entry: Entry, number: object, hashed: object) -> None:
    """The manifest that a row is about is one on record."""
    known = course.manifests.get(number) if isinstance(number, int) else None
    if known is None:
        if number not in course.numbers:
            course.say(entry, "lineage", "manifest", "the number of a manifest on record", number)
    elif hashed is not None and hashed != known["hash"]:
        course.say(entry, "lineage", "manifest_hash", f"{known['hash']}, that of manifest {number}", hashed)


def _is_number(value: Any) -> bool:
    return type(value) is int and value > 0


def _is_hash(value: Any) -> bool:
    return isinstance(value, str) and bool(_HASH.fullmatch(value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(name, str) for name in value)


def _are_metrics(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and bool(value)
        and all(isinstance(numbers, dict) and numbers for numbers in value.values())
        and all(_is_metric(number) for numbers in value.values() for number in numbers.values())
    )


def _is_metric(value: Any) -> bool:
    return type(value) in (int, float) or value in _NO_NUMBERS
