"""Rows of a batch against the documents they were made from: ids, labels, attention, positions, padding.

What a row must hold is worked out here from its pieces, the documents and the rule, without the code that
assembles rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.audit.findings import Finding
from recipe.audit.infilling import EXTRA, Cuts, cuts_of, values
from recipe.config import Rule

IGNORED = -100
"""A label that is none."""
EITHER = -101
"""An expected value that the pieces alone do not tell."""
ARRAYS = ("input_ids", "labels", "position_ids", "segment_ids", "attention_mask")


class Piece(NamedTuple):
    """Body tokens ``start..stop`` of a document in a row, from ``column`` on; before ``fresh`` is overlap.

    Of a piece that is filled in the middle ``column`` is that of its first marker.
    """

    document: int | str
    start: int
    stop: int
    fresh: int
    column: int


@dataclass(frozen=True, slots=True)
class Text:
    """A document as its pool holds it: body tokens, and the marks that are stored with it."""

    tokens: NDArray[Any]
    bos: int | None = None
    eos: int | None = None

    @property
    def num_tokens(self) -> int:
        """Body tokens."""
        return len(self.tokens)


@dataclass(frozen=True, slots=True)
class Row:
    """One row that a trainer is handed."""

    where: str
    pool: str
    arrays: Mapping[str, NDArray[Any]]
    """By name, each of ``context`` values."""
    pieces: tuple[Piece, ...]
    draw_key: int | None = None
    """Key by which pieces are filled in the middle; their documents are then numbers."""

    @property
    def ids(self) -> NDArray[Any]:
        """Its input ids."""
        return self.arrays["input_ids"]

    @property
    def num_used(self) -> int:
        """Positions that are not padding."""
        return int((self.arrays["attention_mask"] != 0).sum())


class _Part(NamedTuple):
    """A stretch of a row that is one segment: a piece with its marks, or a mark alone."""

    begin: int
    end: int
    """Where its padding begins, if it has some."""
    piece: Piece | None
    bos: bool
    eos: bool
    cuts: Cuts | None = None
    """Where it is filled in the middle."""


def row_faults(row: Row, rule: Rule, texts: Mapping[int | str, Text]) -> list[Finding]:
    """What is wrong with a row: of every array the first column that differs.

    Args:
        row: as it was handed out.
        rule: of its pool in its stage.
        texts: the documents of its pieces.
    """
    parts, fault = (
        _parts(row, texts)
        if rule.document_multiple == 1 and rule.fim is None and rule.specials == "document"
        else _padded_parts(row, rule, texts)
    )
    if fault is not None:
        return [fault]
    expected = _expected(row, rule, texts, parts)
    found = []
    for name in ARRAYS:
        want, have = expected[name], np.asarray(row.arrays[name], dtype=np.int64)
        wrong = np.flatnonzero((want != have) & (want != EITHER))
        if len(wrong):
            at = int(wrong[0])
            place = f"{row.where}, column {at}{_piece_at(row, at)}: {name}"
            found.append(Finding("rows", place, str(int(want[at])), str(int(have[at]))))
    return found


def allowed_pairs(segments: NDArray[Any]) -> int:
    """How many (query, key) pairs attention may use: the key not later, in the same segment.

    >>> allowed_pairs(np.array([0, 0, 0, 1, 1, -1]))
    9
    """
    sizes = np.unique(segments[segments >= 0], return_counts=True)[1]
    return int((sizes * (sizes + 1) // 2).sum())


def _piece_at(row: Row, column: int) -> str:
    if row.draw_key is not None:  # places of tokens are not those of the document
        return ""
    for piece in row.pieces:
        if piece.column <= column < piece.column + piece.stop - piece.start:
            token = piece.start + column - piece.column
            return f" (document {piece.document!r}, token {token} of piece {piece.start}..{piece.stop})"
    return ""


def _parts(row: Row, texts: Mapping[int | str, Text]) -> tuple[list[_Part], Finding | None]:
    """The segments of a row from left to right; what lies between pieces must be their marks."""
    parts: list[_Part] = []
    column = 0
    for piece in row.pieces:
        gap = piece.column - column
        if parts and gap and _may_end(parts[-1], texts):
            parts[-1], gap = parts[-1]._replace(end=parts[-1].end + 1, eos=True), gap - 1
        bos = gap > 0 and piece.start == 0 and texts[piece.document].bos is not None
        if gap - bos == 1 and not parts:
            parts.append(_Part(0, 1, None, False, True))  # the end mark of a document cut off before
            gap -= 1
        if gap != bos:
            return parts, _no_marks(row, piece.column, gap)
        end = piece.column + piece.stop - piece.start
        parts.append(_Part(piece.column - bos, end, piece, bos, False))
        column = end
    left = row.num_used - column
    if parts and left and _may_end(parts[-1], texts):
        parts[-1], left = parts[-1]._replace(end=parts[-1].end + 1, eos=True), left - 1
    if left == 1:
        parts.append(_Part(row.num_used - 1, row.num_used, None, bool(parts), not parts))
    elif left:
        return parts, _no_marks(row, column, left)
    return parts, None


def _padded_parts(
    row: Row, rule: Rule, texts: Mapping[int | str, Text]
) -> tuple[list[_Part], Finding | None]:
    """The segments of a row whose pieces each begin at a multiple of positions, padded behind their end, and
    of one whose pieces may be filled in the middle, or each have marks.

    Such a row has no mark alone: every segment is a piece with its own marks.
    """
    parts: list[_Part] = []
    multiple, begin, wrapped = rule.document_multiple, 0, rule.specials == "window"
    for piece in row.pieces:
        text = texts[piece.document]
        bos = wrapped or (piece.fresh == 0 and text.bos is not None)
        if piece.column != begin + bos:
            return parts, _no_marks(row, piece.column, piece.column - begin)
        end = piece.column + piece.stop - piece.start
        ends = piece.stop == text.num_tokens and text.eos is not None
        eos = wrapped or (ends and end - begin < rule.context - (EXTRA if rule.fim is not None else 0))
        cuts = None
        if rule.fim is not None and row.draw_key is not None:
            cuts = cuts_of(rule, row.draw_key, int(piece.document), piece[1:4])
        end += EXTRA if cuts is not None else 0
        parts.append(_Part(begin, end + eos, piece, bos, eos, cuts))
        begin = -(-(end + eos) // multiple) * multiple
    used = sum(part.end - part.begin for part in parts)
    if row.num_used != used or begin > len(row.ids):
        place = f"{row.where}: attention_mask"
        return parts, Finding("rows", place, f"{used} positions that are no padding", str(row.num_used))
    return parts, None


def _may_end(part: _Part, texts: Mapping[int | str, Text]) -> bool:
    """Whether a part holds its document's last token, and the document has an end mark."""
    if part.piece is None or part.eos:
        return False
    text = texts[part.piece.document]
    return part.piece.stop == text.num_tokens and text.eos is not None


def _no_marks(row: Row, column: int, gap: int) -> Finding:
    place = f"{row.where}, before column {column}"
    return Finding("rows", place, "a piece, or the marks of the pieces beside it", f"{gap} other positions")


def _expected(
    row: Row, rule: Rule, texts: Mapping[int | str, Text], parts: Sequence[_Part]
) -> dict[str, NDArray[np.int64]]:
    size = len(row.ids)
    ids, labels, positions = (np.full(size, fill, np.int64) for fill in (0, IGNORED, 0))
    segments, mask = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    for number, part in enumerate(parts):
        here = slice(part.begin, part.end)
        mask[here] = 1
        segments[here] = 0 if rule.attention == "sequence" else number
        positions[here] = np.arange(part.end - part.begin) + (
            part.begin if rule.positions == "continue" else 0
        )
        padding = np.arange(part.end, -(-part.end // rule.document_multiple) * rule.document_multiple)
        positions[padding] = positions[part.end - 1] + 1 + padding - part.end
        if part.piece is None:
            ids[here] = labels[here] = EITHER
        else:
            ids[here], labels[here] = _piece_values(part, rule, texts[part.piece.document])
    if rule.cross_labels:
        _cross(parts, rule, ids, labels, texts)
    return dict(zip(ARRAYS, (ids, labels, positions, segments, mask), strict=True))


def _piece_values(part: _Part, rule: Rule, text: Text) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids and labels of a piece with its marks."""
    piece = part.piece
    assert piece is not None
    if part.cuts is not None:
        at_end = text.eos if piece.stop == text.num_tokens or rule.specials == "window" else None
        around = (text.bos if part.bos else None, at_end, part.eos)
        return values(rule, text.tokens, (piece.start, piece.stop), part.cuts, around)
    if rule.specials == "window":
        return _wrapped_values(piece, rule, text)
    body = np.asarray(text.tokens[piece.start : piece.stop], dtype=np.int64)
    index = np.arange(piece.start, piece.stop)
    labelled = index >= (piece.start if rule.overlap_labels else piece.fresh)
    is_fresh_end = len(labelled) > 0 and bool(labelled[-1])
    if rule.labels == "inputs":
        own = labelled & np.concatenate([[False], labelled[:-1]])
        if part.bos and len(own):
            own[0] = True
        labels = np.where(own, body, IGNORED)
        first, last = IGNORED, text.eos if is_fresh_end else IGNORED
    else:
        after = np.asarray(text.tokens[piece.start + 1 : piece.stop + 1], dtype=np.int64)
        ends = text.eos if text.eos is not None else IGNORED
        after = np.concatenate([after, np.full(len(body) - len(after), ends)])
        labels = np.where(labelled, after, IGNORED)
        first, last = int(text.tokens[0]) if text.num_tokens else IGNORED, IGNORED
    if part.bos and rule.method == "concat" and rule.stride < rule.context:
        first = EITHER  # the mark may lie in the overlap, which the pieces do not tell
        if rule.labels == "inputs" and len(labels):
            labels[0] = EITHER
    marks = ([text.bos] if part.bos else [], [text.eos] if part.eos else [])
    ids = np.concatenate([marks[0], body, marks[1]])
    said = ([first] if part.bos else [], [last] if part.eos else [])
    return ids.astype(np.int64), np.concatenate([said[0], labels, said[1]]).astype(np.int64)


def _wrapped_values(piece: Piece, rule: Rule, text: Text) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids and labels of a window with marks round it: every fresh token and EOS are predicted."""
    assert text.bos is not None
    assert text.eos is not None
    ids = [text.bos, *(int(token) for token in text.tokens[piece.start : piece.stop]), text.eos]
    first = piece.start if rule.overlap_labels else piece.fresh
    own = [IGNORED] * (1 + first - piece.start) + ids[1 + first - piece.start :]
    labels = own if rule.labels == "inputs" else [*own[1:], IGNORED]
    return np.array(ids, np.int64), np.array(labels, np.int64)


def _cross(
    parts: Sequence[_Part],
    rule: Rule,
    ids: NDArray[np.int64],
    labels: NDArray[np.int64],
    texts: Mapping[int | str, Text],
) -> None:
    """Labels across documents: the last position of one predicts the first id of the next in its row."""
    for number, part in enumerate(parts):
        piece = part.piece
        at_end = piece is not None and piece.stop == texts[piece.document].num_tokens
        ended = at_end or (part.eos and rule.specials == "document")
        if not ended or (part.eos is False and piece is not None and texts[piece.document].eos is not None):
            continue
        after = parts[number + 1] if number + 1 < len(parts) else None
        unclear = piece is None or piece.fresh == piece.stop or after is None or after.piece is None
        target = part.end - 1 if rule.labels == "shifted" else part.end
        if target < len(labels):
            labels[target] = EITHER if unclear or after is None else ids[after.begin]
