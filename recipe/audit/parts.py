"""The parts of a row: pieces with what stands in front of them and their marks, found from the pieces alone.

Where documents are, and what stands in front of them, is worked out here without the code that packs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from numpy.typing import NDArray

from recipe.audit.infilling import EXTRA, Cuts, cuts_of
from recipe.config import Rule
from recipe.pools import Finding


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
    lead: tuple[int, ...] = ()
    """What stands in front of it, BOS among it, if that is more than BOS; ``bos`` is None then."""
    unit: int | None = None
    """Its group, if that has several documents."""

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


class Part(NamedTuple):
    """A stretch of a row: a piece with its marks and what stands in front of it, or marks alone."""

    begin: int
    end: int
    """Where its padding begins, if it has some."""
    piece: Piece | None
    front: int
    """Positions before the piece that are special."""
    eos: bool
    cuts: Cuts | None = None
    """Where it is filled in the middle."""


def is_context(piece: Piece | None, rule: Rule) -> bool:
    """Whether a piece was brought in front of another: nothing of it is fresh."""
    return rule.method != "concat" and piece is not None and piece.fresh == piece.stop


def parts_of(row: Row, rule: Rule, texts: Mapping[int | str, Text]) -> tuple[list[Part], Finding | None]:
    """The parts of a row from left to right, or what is wrong with its places."""
    if rule.document_multiple == 1 and rule.fim is None and rule.specials == "document":
        return _parts(row, rule, texts)
    return _padded_parts(row, rule, texts)


def joined(parts: Sequence[Part], rule: Rule, texts: Mapping[int | str, Text]) -> list[bool]:
    """Whether each part goes on in the segment of the one before it."""

    pieces = [part.piece for part in parts]
    return [False, *(_goes_on(pair, rule, texts) for pair in pairwise(pieces))][: len(parts)]


def _goes_on(pair: tuple[Piece | None, Piece | None], rule: Rule, texts: Mapping[int | str, Text]) -> bool:
    before, after = pair
    if is_context(before, rule):
        return True
    if rule.attention != "group" or before is None or after is None:
        return False
    unit = texts[after.document].unit
    return unit is not None and texts[before.document].unit == unit


def _front(piece: Piece, rule: Rule, text: Text) -> int:
    """Positions in front of a piece that are its document's."""
    if is_context(piece, rule):
        return 0
    if rule.specials == "window":
        return 1
    if piece.start != 0:
        return 0
    if rule.method != "concat" and piece.fresh > 0:
        return 0
    return len(text.lead) or int(text.bos is not None)


def _parts(row: Row, rule: Rule, texts: Mapping[int | str, Text]) -> tuple[list[Part], Finding | None]:
    """What lies between pieces must be their marks, and what stands in front of documents."""
    parts: list[Part] = []
    column = 0
    for piece in row.pieces:
        gap, text = piece.column - column, texts[piece.document]
        front = _front(piece, rule, text)
        if parts and gap == front + 1 and _may_end(parts[-1], texts):
            parts[-1], gap = parts[-1]._replace(end=parts[-1].end + 1, eos=True), gap - 1
        if not parts and rule.method == "concat":
            if gap == front + 1:
                parts.append(Part(0, 1, None, 0, True))  # the end mark of a document cut off before
                gap -= 1
            front = min(front, gap)
        if gap != front:
            return parts, _no_marks(row, piece.column, gap)
        end = piece.column + piece.stop - piece.start
        parts.append(Part(piece.column - front, end, piece, front, False))
        column = end
    left = row.num_used - column
    is_clear = rule.method != "concat" or rule.eos_keep == 1
    if parts and left and is_clear and _may_end(parts[-1], texts):
        parts[-1], left = parts[-1]._replace(end=parts[-1].end + 1, eos=True), left - 1
    if left and (left == 1 or rule.method == "concat"):
        parts.append(Part(row.num_used - left, row.num_used, None, left if parts else 0, not parts))
    elif left:
        return parts, _no_marks(row, column, left)
    return parts, None


def _padded_parts(row: Row, rule: Rule, texts: Mapping[int | str, Text]) -> tuple[list[Part], Finding | None]:
    """The segments of a row whose pieces each begin at a multiple of positions, padded behind their end, and
    of one whose pieces may be filled in the middle, or each have marks.

    Such a row has no mark alone: every segment is a piece with its own marks.
    """
    parts: list[Part] = []
    multiple, end = rule.document_multiple, 0
    for number, piece in enumerate(row.pieces):
        text, before = texts[piece.document], row.pieces[number - 1] if number else None
        front = _front(piece, rule, text)
        begin = end if _goes_on((before, piece), rule, texts) else -(-end // multiple) * multiple
        if piece.column != begin + front:
            return parts, _no_marks(row, piece.column, piece.column - begin)
        cuts = None
        if rule.fim is not None and row.draw_key is not None and not is_context(piece, rule):
            cuts = cuts_of(rule, row.draw_key, int(piece.document), piece[1:4])
        end = piece.column + piece.stop - piece.start + (EXTRA if cuts is not None else 0)
        eos = _has_end((row, number), rule, texts, (begin, end))
        parts.append(Part(begin, end + eos, piece, front, eos, cuts))
        end += eos
    used = sum(part.end - part.begin for part in parts)
    if row.num_used != used or end > len(row.ids):
        place = f"{row.where}: attention_mask"
        return parts, Finding("rows", place, f"{used} positions that are no padding", str(row.num_used))
    return parts, None


def _has_end(at: tuple[Row, int], rule: Rule, texts: Mapping[int | str, Text], span: tuple[int, int]) -> bool:
    """Whether the end mark of a piece's document has a position; one that may be left out is looked for."""
    (row, number), (begin, end) = at, span
    piece = row.pieces[number]
    text = texts[piece.document]
    if is_context(piece, rule):
        return False
    if rule.specials == "window":
        return True
    if piece.stop < text.num_tokens or text.eos is None:
        return False
    extra = EXTRA if rule.fim is not None else 0
    if piece.column - begin + piece.stop - piece.start >= rule.context - extra:
        return False
    if rule.eos_keep == 1:
        return True
    after = row.pieces[number + 1] if number + 1 < len(row.pieces) else None
    stop = len(row.ids) if after is None else after.column - _front(after, rule, texts[after.document])
    return end < stop and bool(row.arrays["attention_mask"][end])


def _may_end(part: Part, texts: Mapping[int | str, Text]) -> bool:
    """Whether a part holds its document's last token, and the document has an end mark."""
    if part.piece is None or part.eos:
        return False
    text = texts[part.piece.document]
    return part.piece.stop == text.num_tokens and text.eos is not None


def _no_marks(row: Row, column: int, gap: int) -> Finding:
    place = f"{row.where}, before column {column}"
    return Finding("rows", place, "a piece, or the marks of the pieces beside it", f"{gap} other positions")
