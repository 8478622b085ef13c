"""Rows of a batch against the documents they were made from: ids, labels, attention, positions, padding.

What a row must hold is worked out here from its pieces, the documents and the rule, without the code that
assembles rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.audit.infilling import IGNORED, values
from recipe.audit.parts import Part, Piece, Row, Text, is_context, joined, parts_of
from recipe.config import Rule
from recipe.pools import Finding

EITHER = -101
"""An expected value that the pieces alone do not tell."""
ARRAYS = ("input_ids", "labels", "position_ids", "segment_ids", "attention_mask")


def row_faults(row: Row, rule: Rule, texts: Mapping[int | str, Text]) -> list[Finding]:
    """What is wrong with a row: of every array the first column that differs.

    Args:
        row: as it was handed out.
        rule: of its pool in its stage.
        texts: the documents of its pieces.
    """
    parts, fault = parts_of(row, rule, texts)
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


def _expected(
    row: Row, rule: Rule, texts: Mapping[int | str, Text], parts: Sequence[Part]
) -> dict[str, NDArray[np.int64]]:
    size = len(row.ids)
    ids, labels, positions = (np.full(size, fill, np.int64) for fill in (0, IGNORED, 0))
    segments, mask = np.full(size, -1, np.int64), np.zeros(size, np.int64)
    goes_on, segment, begin = joined(parts, rule, texts), -1, 0
    for number, part in enumerate(parts):
        if not goes_on[number]:
            segment, begin = segment + 1, part.begin
        here = slice(part.begin, part.end)
        mask[here] = 1
        segments[here] = 0 if rule.attention == "sequence" else segment
        positions[here] = np.arange(part.begin, part.end) - (0 if rule.positions == "continue" else begin)
        if part.piece is None and rule.eos_keep != 1:
            positions[here], segments[here] = EITHER, EITHER  # an end mark, or what begins the next document
        ids[here], labels[here] = _part_values(part, rule, texts)
        if number + 1 < len(parts) and goes_on[number + 1]:
            continue
        padding = np.arange(part.end, -(-part.end // rule.document_multiple) * rule.document_multiple)
        positions[padding] = positions[part.end - 1] + 1 + padding - part.end
    if rule.attention == "group" and any(part.piece is None for part in parts):
        positions[:], segments[:] = EITHER, EITHER  # whose group a mark alone belongs to, pieces do not tell
    if rule.cross_labels:
        _cross(parts, rule, ids, labels, texts)
    return dict(zip(ARRAYS, (ids, labels, positions, segments, mask), strict=True))


def _part_values(
    part: Part, rule: Rule, texts: Mapping[int | str, Text]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids and labels of a part; what stands in front of its document predicts the document's first id."""
    if part.piece is None:
        unknown = np.full(part.end - part.begin, EITHER, np.int64)
        return unknown, unknown
    text = texts[part.piece.document]
    if not text.lead or not part.front:
        return _piece_values(part, rule, text)
    ids, labels = _piece_values(part._replace(front=0), rule, text)
    said = np.full(part.front, IGNORED, np.int64)
    is_unclear = rule.method == "concat" and rule.stride < rule.context  # it may lie in the overlap
    (labels if rule.labels == "inputs" else said[::-1])[0] = EITHER if is_unclear else ids[0]
    return np.concatenate([text.lead[-part.front :], ids]), np.concatenate([said, labels])


def _piece_values(part: Part, rule: Rule, text: Text) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ids and labels of a piece with its marks."""
    piece = part.piece
    assert piece is not None
    if part.cuts is not None:
        at_end = text.eos if piece.stop == text.num_tokens or rule.specials == "window" else None
        around = (text.bos if part.front else None, at_end, part.eos)
        return values(rule, text.tokens, (piece.start, piece.stop), part.cuts, around)
    if rule.specials == "window" and not is_context(piece, rule):
        return _wrapped_values(piece, rule, text)
    body = np.asarray(text.tokens[piece.start : piece.stop], dtype=np.int64)
    index = np.arange(piece.start, piece.stop)
    again = rule.overlap_labels and not is_context(piece, rule)
    labelled = index >= (piece.start if again else piece.fresh)
    is_fresh_end = len(labelled) > 0 and bool(labelled[-1])
    if rule.labels == "inputs":
        own = labelled & np.concatenate([[False], labelled[:-1]])
        if part.front and len(own):
            own[0] = True
        labels = np.where(own, body, IGNORED)
        first, last = IGNORED, text.eos if is_fresh_end else IGNORED
    else:
        after = np.asarray(text.tokens[piece.start + 1 : piece.stop + 1], dtype=np.int64)
        ends = text.eos if text.eos is not None else IGNORED
        after = np.concatenate([after, np.full(len(body) - len(after), ends)])
        labels = np.where(labelled, after, IGNORED)
        first, last = int(text.tokens[0]) if text.num_tokens else IGNORED, IGNORED
    if part.front and rule.method == "concat" and rule.stride < rule.context:
        first = EITHER  # the mark may lie in the overlap, which the pieces do not tell
        if rule.labels == "inputs" and len(labels):
            labels[0] = EITHER
    marks = ([text.bos] if part.front else [], [text.eos] if part.eos else [])
    ids = np.concatenate([marks[0], body, marks[1]])
    said = ([first] if part.front else [], [last] if part.eos else [])
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
    parts: Sequence[Part],
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
        if is_context(piece, rule) or (after is not None and is_context(after.piece, rule)):
            continue
        unclear = piece is None or piece.fresh == piece.stop or after is None or after.piece is None
        target = part.end - 1 if rule.labels == "shifted" else part.end
        if target < len(labels):
            labels[target] = EITHER if unclear or after is None else ids[after.begin]
