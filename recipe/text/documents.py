"""A text and where it came from; a record that could not be one; how many of each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from recipe.errors import ContentError, Problem, RecipeError
from recipe.pools.sections import Section

Scalar = str | int | float | bool | None
TagValue = Scalar | list[Scalar]

#: Problems named in one error; the rest is counted.
MAX_PROBLEMS = 20
_MOST_ALIKE = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """One text, the unit of provenance."""

    id: str | int
    """The record's own id, or its place (``file:line``)."""
    text: str
    source: str
    """Name of the file, relative to the folder that holds all the sources."""
    line: int | None = None
    """Line or row of the record, or its number in an archive, from 1; None where the file is the document."""
    member: str | None = None
    """Stem of the members of an archive that are the record."""
    group: str | int | None = None
    tags: Mapping[str, TagValue] = field(default_factory=dict)
    sections: tuple[Section, ...] | None = None
    """Its sections, starts in characters of the text, as its record states them; None: it states none."""
    repaired: bool = False
    """Characters that are no Unicode text were replaced by U+FFFD."""

    @property
    def place(self) -> str:
        """``file:line``, ``file:row``, ``file:member``, or the file alone."""
        return place_of(self.source, self.line, self.member)


def place_of(source: str, line: int | None, member: str | None) -> str:
    """The name of a record's place.

    >>> place_of("a.parquet", 3, None), place_of("a.tar", 1, "x/0001"), place_of("a.txt", None, None)
    ('a.parquet:3', 'a.tar:x/0001', 'a.txt')
    """
    within = member if member is not None else line
    return source if within is None else f"{source}:{within}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """A record that gives no document, and why."""

    source: str
    line: int | None
    reason: str
    """One of a few words, counted: ``invalid_json``, ``text_missing``, …"""
    detail: str
    excerpt: str = ""
    """Beginning of the record."""
    member: str | None = None
    """Stem of the members of an archive that are the record."""
    unit: Literal["line", "row"] = "line"
    """What ``line`` counts."""

    def problem(self) -> Problem:
        """The refusal as a problem of the user's input."""
        place = place_of(self.source, self.line, self.member)
        return Problem(place, self.excerpt or "(nothing)", self.detail, repair_of(self.reason, self.detail))

    def to_plain(self) -> dict[str, Any]:
        """One row of the quarantine file."""
        within: dict[str, Any] = {self.unit: self.line} if self.member is None else {"member": self.member}
        return {
            "source": self.source,
            **within,
            "reason": self.reason,
            "detail": self.detail,
            "excerpt": self.excerpt,
        }


_WRONG_TEXT = "name the key that holds the text with --text-key"
_MEMBERS = "members found: "
"""So archives tell of a record without a text."""
_TEXTS = re.compile(r"\.(text|md|markdown|rst|html?|xml|tex|py|c|cc|cpp|h|java|js|ts|go|rs|sh)\b")
_REPAIRS = {
    "invalid_utf8": ("--on-bad replace keeps it with U+FFFD", "--on-bad skip leaves it out"),
    "lone_surrogate": ("--on-bad replace keeps it with U+FFFD", "--on-bad skip leaves it out"),
    "text_missing": (_WRONG_TEXT, "--on-bad skip"),
    "text_not_text": (_WRONG_TEXT, "--on-bad skip"),
    "bad_id": ("name the key of the ids with --id-key, take places with --place-ids", "--on-bad skip"),
    "bad_sections": ("correct the record's sections", "leave it out with --on-bad skip"),
    "too_long": ("raise --max-line-bytes", "leave it out with --on-bad skip"),
    "truncated": ("fetch the file again", "keep what is readable with --on-bad skip"),
    "empty_file": ("fetch the file again", "leave it out with --on-bad skip or --exclude"),
    "bad_member": ("rename the member", "leave the record out with --on-bad skip"),
}
_ANY_REPAIR = ("repair the record", "leave it out with --on-bad skip")


def repair_of(reason: str, detail: str = "", *, may_skip: bool = True) -> str:
    """What mends a record that was refused; or leaves it out, where that is a way.

    Args:
        reason: why.
        detail: what was expected; of members of a tar also which there are.
        may_skip: whether records may be left out.

    >>> repair_of("too_long")
    'raise --max-line-bytes, or leave it out with --on-bad skip'
    """
    repair, skip = _REPAIRS.get(reason, _ANY_REPAIR)
    if _MEMBERS in detail:
        found = _TEXTS.search(detail.partition(_MEMBERS)[2])
        repair = f"name the member that holds the text with --text-member {found[1] if found else 'SUFFIX'}"
    return f"{repair}, or {skip}" if may_skip else repair


class RecordsError(ContentError):
    """Faults of what was read: the same command finds them again, however much of it is done."""


def refuse_all(refusals: list[Refusal], *, is_all: bool = False) -> RecipeError:
    """One error that names the first refusals and counts the rest.

    What more than three say alike is told once, with the number of the others.

    Args:
        refusals: of what was read together; there may be more behind it.
        is_all: no record beside them gave a document: then one reason is told once, whatever the details.
    """
    alike: dict[tuple[str, ...], list[Refusal]] = {}
    one_reason = is_all and len({refusal.reason for refusal in refusals}) == 1
    for refusal in refusals:
        key = () if one_reason else (refusal.source, refusal.reason, refusal.detail)
        alike.setdefault(key, []).append(refusal)
    problems = []
    for some in alike.values():
        told = some if len(some) <= _MOST_ALIKE else some[:1]
        problems += [refusal.problem() for refusal in told]
        if more := len(some) - len(told):
            where = f"{problems[-1].where} (the same in {more:,} more records so far)"
            problems[-1] = replace(problems[-1], where=where)
    rest = len(problems) - MAX_PROBLEMS
    title = "records that give no document" + (f" (and {rest:,} more problems so far)" if rest > 0 else "")
    # A connection may have broken where a file ends early: then the next attempt goes on.
    kind = RecipeError if any(refusal.reason == "truncated" for refusal in refusals) else RecordsError
    return kind(title, problems[:MAX_PROBLEMS])


@dataclass(slots=True)
class Tally:
    """What was read; ``read = kept + duplicate + other_split + empty + quarantined`` always holds."""

    read: int = 0
    kept: int = 0
    empty: int = 0
    repaired: int = 0
    """Documents kept with replaced characters (a part of ``kept``)."""
    blank_lines: int = 0
    """Lines of white space alone: no records, so not part of ``read``."""
    quarantined: dict[str, int] = field(default_factory=dict)
    """Records by reason."""
    duplicate: int | None = None
    """Documents left out because another one holds the same; None: nobody looked."""
    other_split: int | None = None
    """Documents of groups left out because a smaller split holds the same; None: there are no splits."""

    def leave_out(self, duplicate: int | None, other_split: int | None) -> None:
        """Count kept documents as left out, where somebody looked."""
        self.kept -= (duplicate or 0) + (other_split or 0)
        self.duplicate, self.other_split = duplicate, other_split

    def refuse(self, reason: str) -> None:
        """Count one record that gives no document."""
        self.read += 1
        self.quarantined[reason] = self.quarantined.get(reason, 0) + 1

    def keep(self, document: Document) -> None:
        """Count one document with text."""
        self.read += 1
        self.kept += 1
        self.repaired += document.repaired

    def take_back(self, document: Document) -> None:
        """Count one document no more that was counted as kept."""
        self.read -= 1
        self.kept -= 1
        self.repaired -= document.repaired

    def skip_empty(self) -> None:
        """Count one document without a token."""
        self.read += 1
        self.empty += 1

    def add(self, other: Tally) -> None:
        """Add the counts of another reading."""
        self.read += other.read
        self.kept += other.kept
        self.empty += other.empty
        self.repaired += other.repaired
        self.blank_lines += other.blank_lines
        for reason, count in other.quarantined.items():
            self.quarantined[reason] = self.quarantined.get(reason, 0) + count

    def check(self) -> None:
        """Assert that nothing was lost on the way."""
        left_out = (self.duplicate or 0) + (self.other_split or 0) + self.empty
        assert self.read == self.kept + left_out + sum(self.quarantined.values()), self

    def to_plain(self) -> dict[str, Any]:
        """Plain values for a card or JSON."""
        return {
            "read": self.read,
            "kept": self.kept,
            "empty": self.empty,
            "repaired": self.repaired,
            "blank_lines": self.blank_lines,
            "quarantined": dict(sorted(self.quarantined.items())),
            **({} if self.duplicate is None else {"duplicate": self.duplicate}),
            **({} if self.other_split is None else {"other_split": self.other_split}),
        }

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> Tally:
        """The tally that `to_plain` wrote."""
        return cls(**{**data, "quarantined": dict(data["quarantined"])})
