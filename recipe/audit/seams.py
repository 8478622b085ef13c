"""The pieces of a document put together again: sorted by start, overlaps dropped, joined.

The result must be the document's tokens, whatever window, stride, offset and tail; where it is not, the
first bad piece is named, its start, and the seam.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.audit.infilling import IGNORED
from recipe.audit.parts import Piece, Row, Text
from recipe.pools import Finding


@dataclass(frozen=True, slots=True)
class Held:
    """A piece as a row held it: the ids and labels of its body tokens."""

    piece: Piece
    where: str
    ids: NDArray[Any]
    labels: NDArray[Any]

    @classmethod
    def of(cls, row: Row, piece: Piece) -> Held:
        """A piece cut out of its row."""
        here = slice(piece.column, piece.column + piece.stop - piece.start)
        where = f"{row.where}, column {piece.column}"
        return cls(piece, where, row.ids[here], row.arrays["labels"][here])


@dataclass(frozen=True, slots=True)
class Joined:
    """A document put together again."""

    tokens: NDArray[np.int64]
    finding: Finding | None
    num_pieces: int


def is_whole(pieces: Sequence[Held], num_tokens: int) -> bool:
    """Whether every token of a document is fresh in one of its pieces."""
    fresh = sorted((held.piece.fresh, held.piece.stop) for held in pieces)
    reached = 0
    for start, stop in fresh:
        if start > reached:
            return False
        reached = max(reached, stop)
    return reached >= num_tokens


def join(name: str, pieces: Sequence[Held], text: Text) -> Joined:
    """Sort by start, drop overlaps, join, and compare with the document's tokens.

    Args:
        name: of the document, as a finding shows it.
        pieces: of one reading of the document, in any order.
        text: the document.
    """
    ordered = sorted(pieces, key=lambda held: (held.piece.start, held.piece.stop))
    tokens = np.empty(0, np.int64)
    finding: Finding | None = None
    for number, held in enumerate(ordered):
        place = f"{name}, piece {number + 1} of {len(ordered)}, which starts at token {held.piece.start}"
        finding = finding or _seam_fault(f"{place} ({held.where})", held, tokens, text)
        tokens = np.concatenate([tokens, np.asarray(held.ids, np.int64)[len(tokens) - held.piece.start :]])
    if finding is None and len(tokens) != text.num_tokens:
        where = f"{name}, after piece {len(ordered)}"
        finding = Finding("seams", where, f"{text.num_tokens} tokens", f"{len(tokens)} tokens")
    return Joined(tokens, finding, len(ordered))


def _seam_fault(where: str, held: Held, before: NDArray[np.int64], text: Text) -> Finding | None:
    """What is wrong where a piece is joined to the ones before it."""
    piece, seam = held.piece, len(before)
    if piece.start > seam:
        gap = f"tokens {seam}..{piece.start} are in no piece"
        return Finding("seams", f"{where}: seam at token {seam}", f"a piece that begins by token {seam}", gap)
    if piece.fresh != seam:
        said = f"fresh from token {piece.fresh} on"
        return Finding("seams", f"{where}: seam at token {seam}", f"fresh from token {seam} on", said)
    ids = np.asarray(held.ids, dtype=np.int64)
    overlap = before[piece.start :]
    for want, first, what in (
        (overlap, piece.start, "overlap"),
        (np.asarray(text.tokens[piece.start : piece.stop], dtype=np.int64), piece.start, "token"),
    ):
        have = ids[: len(want)]
        wrong = np.flatnonzero(want[: len(have)] != have)
        if len(wrong) or len(have) < len(want):
            at = int(wrong[0]) if len(wrong) else len(have)
            place = f"{where}: {what} {first + at}, seam at token {seam}"
            given = f"id {int(have[at])}" if at < len(have) else "nothing"
            return Finding("seams", place, f"id {int(want[at])}", given)
    return None


def label_faults(name: str, pieces: Sequence[Held], text: Text) -> list[Finding]:
    """Token j of a document (j >= 1) is a label exactly once if token j - 1 was served fresh, else never.

    Only for labels that are shifted and not repeated in overlaps; others break the law on purpose.
    """
    times, expected = np.zeros(text.num_tokens + 1, np.int64), np.zeros(text.num_tokens + 1, np.int64)
    for held in pieces:
        piece = held.piece
        times[1 + piece.start : 1 + piece.stop] += np.asarray(held.labels) != IGNORED
        expected[1 + piece.fresh : 1 + piece.stop] = 1
    if text.eos is None:
        times[-1] = expected[-1] = 0  # nothing follows; it may predict the next document
    wrong = np.flatnonzero(times != expected)
    if not len(wrong):
        return []
    at = int(wrong[0])
    what = "its end mark" if at == text.num_tokens else f"token {at}"
    return [Finding("labels", f"{name}: {what}", f"a label {expected[at]} times", f"{times[at]} times")]
