"""Acceptance: claims about rows that were handed out, each with what was compared and what was wrong.

Nothing here opens a run or draws a row: whoever does hands them in.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from recipe.audit.findings import once
from recipe.audit.parts import Row, Text
from recipe.audit.rows import row_faults
from recipe.audit.seams import Held, Joined, is_whole, join, label_faults
from recipe.audit.tiny_model import loss_fault
from recipe.config import Rule
from recipe.pools import Finding

SHOWN = 20
"""Findings of one claim that are kept; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Check:
    """One claim: whether it holds, and what was compared."""

    name: str
    ok: bool | None
    """None where nothing could be compared, or the rules leave nothing to claim: neither right nor wrong."""
    said: str
    findings: tuple[Finding, ...] = ()
    applies: bool = True
    """False where the rules leave nothing to claim."""

    @property
    def is_open(self) -> bool:
        """Whether it could not be checked."""
        return self.ok is None and self.applies


@dataclass(frozen=True, slots=True)
class Acceptance:
    """A list of claims."""

    subject: str
    checks: tuple[Check, ...]
    seed: int | None = None
    """Of the choice of what was looked at; None where nothing was chosen."""

    @property
    def ok(self) -> bool:
        """Whether claims were checked and every one of these holds; `unchecked` are the others."""
        return not self.failed and any(check.ok for check in self.checks)

    @property
    def failed(self) -> tuple[str, ...]:
        """Names of the claims that do not hold."""
        return tuple(check.name for check in self.checks if check.ok is False)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The claims that could not be checked, with why."""
        return tuple(f"{check.name}: {check.said}" for check in self.checks if check.is_open)

    def to_plain(self) -> dict[str, Any]:
        """What ``recipe audit verify --json`` prints."""
        return {
            "ok": self.ok,
            "subject": self.subject,
            "seed": self.seed,
            "unchecked": list(self.unchecked),
            "checks": [
                {
                    "check": check.name,
                    "ok": check.ok,
                    "applies": check.applies,
                    "said": check.said,
                    "findings": [asdict(finding) for finding in check.findings],
                }
                for check in self.checks
            ],
        }


def claim(name: str, said: str, findings: Iterable[Finding] = ()) -> Check:
    """A claim that holds when nothing was found."""
    found = once(findings)
    more = f"; {len(found) - SHOWN} more findings are not shown" if len(found) > SHOWN else ""
    return Check(name, not found, said + more, found[:SHOWN])


def open_claim(name: str, why: str) -> Check:
    """A claim that could not be looked at."""
    return Check(name, None, why)


@dataclass(frozen=True, slots=True)
class Seen:
    """A row, with the rule that it follows and the documents of its pieces."""

    row: Row
    rule: Rule
    texts: Mapping[int | str, Text]


def check_rows(rows: Sequence[Seen], steps: int) -> Check:
    """Rows are those of their documents: ids, labels, positions, attention, padding."""
    said = f"{len(rows):,} rows of {steps} steps: ids, labels, positions, attention and padding"
    if not rows:
        return open_claim("rows", "no row was served yet")
    return claim(
        "rows", said, (fault for seen in rows for fault in row_faults(seen.row, seen.rule, seen.texts))
    )


Key = tuple[str, int, int | str]
"""A pool, an epoch, a document."""


@dataclass(slots=True)
class Readings:
    """Pieces gathered by document and epoch, from rows in any order; a row may be met again."""

    _held: dict[Key, dict[str, tuple[Held, Rule]]] = field(default_factory=lambda: defaultdict(dict))
    _texts: dict[tuple[str, int | str], Text] = field(default_factory=dict)

    def add(self, seen: Seen, epoch: int) -> None:
        """Take the pieces out of a row."""
        pool = seen.row.pool
        for piece in seen.row.pieces:
            held = Held.of(seen.row, piece)
            self._held[pool, epoch, piece.document][held.where] = held, seen.rule
            self._texts[pool, piece.document] = seen.texts[piece.document]

    def __len__(self) -> int:
        """Readings of documents, seen whole or not."""
        return len(self._held)

    def pieces(self, key: Key) -> list[Held]:
        """The pieces of one reading of a document."""
        return [held for held, _ in self._held[key].values()]

    def joined(self) -> dict[Key, Joined]:
        """The documents of which every token was seen fresh, put together again."""
        found = {}
        for key in self._held:
            pool, epoch, document = key
            pieces, text = self.pieces(key), self._texts[pool, document]
            if is_whole(pieces, text.num_tokens):
                found[key] = join(_name(pool, epoch, document), pieces, text)
        return found

    def loss_findings(self) -> tuple[int, list[Finding]]:
        """Readings of which the tiny model's loss was compared, and those where it is another."""
        compared, found = 0, []
        for (pool, epoch, document), held in self._held.items():
            if all(_has_plain_labels(rule) for _, rule in held.values()):
                pieces, text = [piece for piece, _ in held.values()], self._texts[pool, document]
                compared += 1
                fault = loss_fault(_name(pool, epoch, document), pieces, text)
                found += [] if fault is None else [fault]
        return compared, found

    def label_findings(self) -> list[Finding]:
        """Breaches of the one-label-once law, of documents seen whole or not."""
        found = []
        for (pool, epoch, document), held in self._held.items():
            rules = [rule for _, rule in held.values()]
            if all(map(_has_plain_labels, rules)):
                pieces = [piece for piece, _ in held.values()]
                found += label_faults(_name(pool, epoch, document), pieces, self._texts[pool, document])
        return found


def _has_plain_labels(rule: Rule) -> bool:
    """Whether the one-label-once law of whole documents holds."""
    breaks = rule.labels != "shifted" or rule.overlap_labels or rule.fim or rule.specials == "window"
    return not breaks


def check_seams(readings: Readings) -> list[Check]:
    """Documents join to their tokens (A10), and every token is a label once."""
    joined = readings.joined()
    if not readings:
        return [
            open_claim("seams", "no document was read yet"),
            open_claim("labels", "no label was served yet"),
            open_claim("loss", "no label was served yet"),
        ]
    several = sum(one.num_pieces > 1 for one in joined.values())
    open_ones = len(readings) - len(joined)
    said = (
        f"{len(joined):,} documents, {several:,} of them in several pieces: sorted, overlaps dropped, "
        f"joined, they are their tokens"
    )
    if open_ones:
        said += f"; {open_ones:,} more were not seen whole: they go on elsewhere, or parts are dropped"
    seams = [one.finding for one in joined.values() if one.finding is not None]
    law = f"{len(readings):,} documents: a token is a label once if the one before it was served fresh"
    whole = claim("seams", said, seams) if joined else open_claim("seams", said)
    return [whole, claim("labels", law, readings.label_findings()), _check_loss(readings)]


def _check_loss(readings: Readings) -> Check:
    """The loss of a model that sees one token back, over labels as served and worked out from the texts."""
    compared, faults = readings.loss_findings()
    if not compared:
        why = "labels are repeated, moved or in rows of their own: no law to hold them to"
        return Check("loss", None, why, applies=False)
    law = f"a model of the last token alone loses on {compared:,} documents what their texts make it lose"
    return claim("loss", law, faults)


def _name(pool: str, epoch: int, document: int | str) -> str:
    again = f", reading {epoch + 1}" if epoch else ""
    return f"pool {pool}, document {document!r}{again}"
