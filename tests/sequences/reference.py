"""The rules of slicing, joining, packing and labels in plain words: slow, and independent of the product.

A row is a list of segments, a segment a list of cells ``(document, place, new)``: place -1 is BOS, n is
EOS, else a token of the document; ``new`` says whether it is served for the first time. Below -1 are the
markers of a piece that is filled in the middle, ``part`` the part of it that a cell is in; from -101 down is
what stands in front of a document, -101 being the last of it. Segments that are joined are one to attention.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from recipe.config import Rule


class Cell(NamedTuple):
    document: int
    place: int
    new: bool
    part: int = 0
    context: bool = False
    """Brought in front of something that needs it."""


PREFIX, MIDDLE, SUFFIX = -2, -3, -4
OPENS, CLOSES = -5, -6
"""BOS and EOS round a window."""
MARKER_IDS = {PREFIX: 4, MIDDLE: 5, SUFFIX: 6, OPENS: 2, CLOSES: 1}

Draw = Callable[[int, int], list[int]]
"""Draws of a document (its index) and a token of it."""


class Choices(NamedTuple):
    """What hashes and texts decide: draws by domain, and whether a document may be cut before a token."""

    transform: Draw | None = None
    offset: Draw | None = None
    density: Draw | None = None
    separators: Draw | None = None
    permitted: Callable[[int, int], bool] | None = None
    repeated: Callable[[int, int], bool] | None = None
    """Whether a token stands earlier in its unit, as the pool says."""
    section: Callable[[int, int], bool] | None = None
    """Whether a section begins at a token."""


NO_CHOICES = Choices()


class Need(NamedTuple):
    """Tokens ``start..stop`` of a document are read after ``first..last`` of the one so many behind it."""

    start: int
    stop: int
    behind: int
    first: int
    last: int


LEAD = -100


@dataclass
class Doc:
    """A document: its tokens, and its marks or None."""

    tokens: list[int]
    bos: int | None = None
    eos: int | None = None
    lead: tuple[int, ...] = ()
    """Special tokens in front, BOS among them, of a document that has more than BOS there."""
    unit: int | None = None
    """Number of its group, if that has several documents."""
    needs: tuple[Need, ...] = ()
    sections: tuple[int, ...] = ()
    """Tokens at which sections begin."""

    def __deepcopy__(self, memo: object) -> Doc:
        return self

    def id(self, place: int) -> int:
        if place < LEAD:
            return self.lead[place - LEAD]
        if place < -1:
            return MARKER_IDS[place]
        if place == -1:
            assert self.bos is not None
            return self.bos
        if place == len(self.tokens):
            assert self.eos is not None
            return self.eos
        return self.tokens[place]


@dataclass
class Piece:
    document: int
    start: int
    stop: int
    fresh: int
    bos: bool = False
    eos: bool = False
    alone: bool = False
    wrapped: bool = False
    cuts: tuple[int, int, bool] | None = None
    lead: int = 0
    """It is what stands in front of a document, of so many tokens."""
    context: bool = False
    separator: bool = False
    """Its document's end mark is left out."""

    @property
    def size(self) -> int:
        if self.lead:
            return self.lead
        return self.stop - self.start + self.bos + self.eos + 3 * (self.cuts is not None)

    @property
    def cells(self) -> list[Cell]:
        if self.lead:
            return [Cell(self.document, place, True) for place in range(LEAD - self.lead, LEAD)]
        if self.context:
            return [Cell(self.document, j, False, context=True) for j in range(self.start, self.stop)]
        body = [Cell(self.document, j, j >= self.fresh) for j in range(self.start, self.stop)]
        if self.cuts is not None:
            body = self.filled(*self.cuts)
        if self.wrapped:
            return [Cell(self.document, OPENS, True), *body, Cell(self.document, CLOSES, True)]
        before = [Cell(self.document, -1, True)] if self.bos else []
        return before + body + ([Cell(self.document, self.stop, True)] if self.eos else [])

    def filled(self, a: int, b: int, suffix_first: bool) -> list[Cell]:
        def part(number: int, start: int, stop: int) -> list[Cell]:
            return [Cell(self.document, j, True, number) for j in range(start, stop)]

        pre, mid, suf = ([Cell(self.document, marker, True)] for marker in (PREFIX, MIDDLE, SUFFIX))
        prefix, middle, suffix = part(1, self.start, a), part(2, a, b), part(3, b, self.stop)
        if suffix_first:
            return pre + suf + suffix + mid + prefix + middle
        return pre + prefix + suf + suffix + mid + middle


@dataclass
class Row:
    segments: list[list[Cell]]
    ahead: Cell | None = None
    """The cell that follows the row in a joined stream."""
    joined: list[bool] = field(default_factory=list)
    """Whether a segment goes on in the one before it; empty: none does."""
    separators: int = 0

    def goes_on(self, number: int) -> bool:
        return 0 <= number < len(self.joined) and self.joined[number]


@dataclass
class Opened:
    """A block's rows as they are packed, before the shuffle, and what was left out."""

    rows: list[Row]
    dropped: dict[str, int] = field(default_factory=dict)
    aligned: list[int] = field(default_factory=lambda: [0, 0, 0])
    """Cuts moved back, cuts that stayed where none is permitted, starts moved forward."""

    def drop(self, reason: str, tokens: int) -> None:
        if tokens:
            self.dropped[reason] = self.dropped.get(reason, 0) + tokens


def region_of(token: int, n: int, window: int) -> int:
    """0, 1, 2: head (the first two windows), middle, tail; head and tail are at most a half."""
    if token < min(2 * window, Fraction(n, 2)):
        return 0
    return 2 if token >= n - 2 * window else 1


def slice_document(
    number: int,
    doc: Doc,
    rule: Rule,
    out: Opened,
    run: tuple[int, int] | None = None,
    choices: Choices = NO_CHOICES,
) -> list[Piece]:
    """The pieces of one document, or of what an earlier rule left of it (``run``)."""
    n = len(doc.tokens)
    a, b = run if run is not None else (0, n)
    if a == b:
        return []
    strides = rule.strides or (rule.stride,) * 3
    front = len(doc.lead) or int(doc.bos is not None)
    first = min(rule.window, rule.context - markers(rule) - front)
    is_first_opening = run is None and n > first
    if is_first_opening and rule.oversize == "drop":
        out.drop("oversize", n)
        return []
    head = 0
    if is_first_opening and rule.random_offset and rule.oversize == "split" and choices.offset is not None:
        head = choices.offset(number, 0)[0] % min(strides[0], rule.context - markers(rule) - front + 1)
    pieces: list[Piece] = []
    fresh, end = a, a + strides[region_of(a, n, rule.window)] if a > 0 else head or first
    while fresh < b:
        cut = moved_back(number, (fresh, end), rule, out, choices) if end < b else b
        if is_first_opening and rule.oversize == "truncate":
            out.drop("oversize", n - cut)
            b = cut
        pieces.append(Piece(number, 0 if fresh == 0 else max(0, end - rule.window), cut, fresh))
        step = rule.window if head and fresh == 0 else strides[region_of(cut, n, rule.window)]
        fresh, end = cut, cut + step
    if run is None:
        end_of(pieces, n, first, rule, out)
    for piece in pieces:
        moved_forward(piece, rule, out, choices)
        piece.wrapped = rule.specials == "window"
        piece.bos = piece.wrapped or (piece.fresh == 0 and doc.bos is not None)
        size = piece.size + (len(doc.lead) if piece.fresh == 0 else 0)
        ends = piece.stop == n and doc.eos is not None and size < rule.context - markers(rule)
        piece.eos = piece.wrapped or ends
    if is_first_opening:
        pieces = thin(told_once(pieces, rule, out, choices), n, rule, out, choices)
    return pieces


def moved_back(number: int, span: tuple[int, int], rule: Rule, out: Opened, choices: Choices) -> int:
    """The last permitted place from a window's end back to ``align_within`` tokens before it, or the end."""
    fresh, end = span
    if rule.align == "none" or choices.permitted is None:
        return end
    able = [c for c in range(end, fresh, -1) if c >= end - rule.align_within and choices.permitted(number, c)]
    out.aligned[0] += bool(able) and able[0] < end
    out.aligned[1] += not able
    return able[0] if able else end


def moved_forward(piece: Piece, rule: Rule, out: Opened, choices: Choices) -> None:
    """A window starts at the first permitted place inside its overlap."""
    if rule.align == "none" or choices.permitted is None or piece.start == 0:
        return
    able = [c for c in range(piece.start, piece.fresh) if choices.permitted(piece.document, c)]
    if able and able[0] > piece.start:
        out.aligned[2] += 1
        piece.start = able[0]


def told_once(pieces: list[Piece], rule: Rule, out: Opened, choices: Choices) -> list[Piece]:
    """The pieces that say something new, the first and the last one, and those in which a section begins."""
    if rule.duplicates is None or choices.repeated is None:
        return pieces
    kept = []
    for number, piece in enumerate(pieces):
        fresh = range(piece.fresh, piece.stop)
        old = sum(choices.repeated(piece.document, token) for token in fresh)
        begins = choices.section is not None and any(choices.section(piece.document, t) for t in fresh)
        if number in (0, len(pieces) - 1) or begins or old < rule.duplicates * len(fresh):
            kept.append(piece)
        else:
            out.drop("duplicate", len(fresh))
    return kept


def repeated_tokens(units: list[list[list[int]]], size: int) -> set[tuple[int, int]]:
    """(document, token) of every token that lies in a stretch of ``size`` seen before in its unit."""
    out, document = set[tuple[int, int]](), 0
    for unit in units:
        seen = set[tuple[int, ...]]()
        for body in unit:
            for first in range(len(body) - size + 1):
                stretch = tuple(body[first : first + size])
                if stretch in seen:
                    out |= {(document, token) for token in range(first, first + size)}
                seen.add(stretch)
            document += 1
    return out


def thin(pieces: list[Piece], n: int, rule: Rule, out: Opened, choices: Choices) -> list[Piece]:
    """The pieces that the density of their region keeps."""
    if rule.density is None or choices.density is None:
        return pieces
    kept = []
    for piece in pieces:
        share = rule.density[region_of(piece.fresh, n, rule.window)]
        if Fraction(choices.density(piece.document, piece.fresh)[0], 2**64) < share:
            kept.append(piece)
        else:
            out.drop("thinned", piece.stop - piece.fresh)
    return kept


def markers(rule: Rule) -> int:
    return 0 if rule.fim is None else 3


def fill(pieces: list[Piece], rule: Rule, draw: Draw) -> None:
    """Cut the pieces in three that the draws choose."""
    assert rule.fim is not None
    for piece in pieces:
        if piece.fresh == piece.start:
            chosen, order, *cuts = draw(piece.document, piece.start)
            if Fraction(chosen, 2**64) < rule.fim.rate:
                a, b = sorted(piece.start + cut % (piece.stop - piece.start + 1) for cut in cuts)
                piece.cuts = (a, b, Fraction(order, 2**64) < rule.fim.spm)


def end_of(pieces: list[Piece], n: int, first: int, rule: Rule, out: Opened) -> None:
    """What the tail rule makes of the piece that reaches the document's end."""
    last = pieces[-1]
    full = first if last.fresh == 0 else rule.window
    if last.stop < n or last.stop - last.start >= full:
        return
    if rule.tail == "drop":
        out.drop("short" if last.fresh == 0 else "tail", last.stop - last.fresh)
        pieces.pop()
    elif rule.tail == "backfill" and last.fresh > 0:
        if last.stop - last.fresh < rule.min_tail:
            out.drop("tail", last.stop - last.fresh)
            pieces.pop()
        else:
            last.start = n - rule.window
    elif rule.tail == "pad":
        last.alone = True


def takes(size: int, rule: Rule) -> int:
    """Positions of a piece with what it is padded with."""
    while size % rule.document_multiple:
        size += 1
    return size


def bundle(
    docs: list[Doc], pieces: list[Piece], rule: Rule, out: Opened, *, may_drop: bool, hidden: set[int]
) -> list[list[Piece]]:
    """Pieces that lie side by side in one segment, with what comes in front of each."""
    long = {_unit(docs, p.document) for p in pieces if _in_front(docs, [p], p, rule, hidden) is None}
    if may_drop:
        out.drop("oversize", sum(p.stop - p.fresh for p in pieces if _unit(docs, p.document) in long))
        pieces = [piece for piece in pieces if _unit(docs, piece.document) not in long]
    bundles: list[list[Piece]] = []
    for piece in pieces:
        held = bundles[-1] if bundles else []
        unit = docs[piece.document].unit
        able = rule.attention == "group" and unit is not None and bool(held) and not piece.alone
        if able and docs[held[-1].document].unit == unit and not held[-1].alone:
            more = _in_front(docs, [*held, piece], piece, rule, hidden)
            if _in_front(docs, [piece], piece, rule, hidden) is None:
                more = _lead(docs, piece)  # its needs fit nowhere
            if more is not None and sum(p.size for p in (*held, *more, piece)) <= rule.context:
                held += [*more, piece]
                continue
        own = _in_front(docs, [piece], piece, rule, hidden)
        bundles.append([*(_lead(docs, piece) if own is None else own), piece])
    return bundles


def _unit(docs: list[Doc], number: int) -> object:
    unit = docs[number].unit
    return ("document", number) if unit is None else ("unit", unit)


def _lead(docs: list[Doc], piece: Piece) -> list[Piece]:
    size = len(docs[piece.document].lead)
    return [Piece(piece.document, 0, 0, 0, lead=size)] if size and piece.fresh == 0 else []


def _in_front(
    docs: list[Doc], held: list[Piece], piece: Piece, rule: Rule, hidden: set[int]
) -> list[Piece] | None:
    """What the piece needs and none of those held has, then what stands in front of it; None: no room."""
    wanted = {
        (piece.document + need.behind, token)
        for need in docs[piece.document].needs
        if need.start < piece.stop and need.stop > piece.fresh
        for token in range(need.first, need.last)
        if docs[piece.document + need.behind].tokens and piece.document + need.behind not in hidden
    }
    has = {(p.document, token) for p in held if not p.lead for token in range(p.start, p.stop)}
    context: list[Piece] = []
    for document, token in sorted(wanted - has):
        last = context[-1] if context else None
        if last is not None and last.document == document and last.stop == token:
            last.stop = last.fresh = token + 1
        else:
            context.append(Piece(document, token, token + 1, token + 1, context=True))
    context += _lead(docs, piece)
    return context if sum(p.size for p in (*context, piece)) <= rule.context else None


def pack(bundles: list[list[Piece]], rule: Rule) -> list[list[list[Piece]]]:
    """Best fit, decreasing: fullest row first, then the oldest; within a row as given."""
    if rule.method == "none":
        return [[bundle] for bundle in bundles]
    rows: list[list[int]] = []
    room: list[int] = []
    sizes = [takes(sum(piece.size for piece in bundle), rule) for bundle in bundles]
    alone = [any(piece.alone for piece in bundle) for bundle in bundles]
    grain = max(1, rule.context // 64) if rule.shuffle_fit else 1
    for i in sorted(range(len(bundles)), key=lambda i: (-(sizes[i] // grain), i)):
        needed = -(-sizes[i] // grain)
        able = [r for r in range(len(rows)) if room[r] // grain >= needed and not alone[rows[r][0]]]
        if able and not alone[i]:
            row = min(able, key=lambda r: (room[r] // grain, r))
        else:
            row = len(rows)
            rows.append([])
            room.append(rule.context)
        rows[row].append(i)
        room[row] -= sizes[i]
    return [[bundles[i] for i in sorted(row)] for row in rows]


def row_of(bundles: list[list[Piece]]) -> Row:
    pieces = [piece for bundle in bundles for piece in bundle]
    joined = [number > 0 for bundle in bundles for number in range(len(bundle))]
    return Row([p.cells for p in pieces], None, joined, sum(piece.separator for piece in pieces))


def is_kept(number: int, rule: Rule, choices: Choices) -> bool:
    """Whether the end mark of a document takes a position."""
    if rule.eos_keep == 1 or choices.separators is None:
        return True
    return Fraction(choices.separators(number, 0)[0], 2**64) < rule.eos_keep


def join(
    docs: list[Doc],
    runs: list[tuple[int, int, int]],
    rule: Rule,
    keep: bool,
    out: Opened,
    choices: Choices = NO_CHOICES,
) -> None:
    """Documents joined with their marks and cut every stride: T + 1 ids an example."""
    flat: list[tuple[int, Cell]] = []
    for number, (document, a, b) in enumerate(runs):
        doc = docs[document]
        places = [-1] if a == 0 and doc.bos is not None else []
        places += range(LEAD - len(doc.lead), LEAD) if a == 0 else []
        places += range(a, b)
        kept = doc.eos is not None and is_kept(document, rule, choices)
        places += [b] if b == len(doc.tokens) and kept else []
        flat += [(number, Cell(document, place, True)) for place in places]
    context, stride = rule.context, rule.stride
    spans = []
    while len(spans) * stride + context + 1 <= len(flat):
        spans.append((len(spans) * stride, len(spans) * stride + context))
    end = spans[-1][1] if spans else 0
    left = sum(0 <= cell.place < len(docs[cell.document].tokens) for _, cell in flat[end:])
    if left and keep:
        spans.append((len(spans) * stride, min(len(flat), len(spans) * stride + context)))
    else:
        out.drop("tail", left)
    served = 0
    for low, high in spans:
        segments: dict[tuple[int, bool], list[Cell]] = {}
        for at in range(low, high):
            number, cell = flat[at]
            segments.setdefault((number, cell.place >= LEAD), []).append(cell._replace(new=at >= served))
        served = max(served, high)
        joined = [False] + [
            one[0] == two[0]
            or (rule.attention == "group" and _same_group(docs, runs[one[0]][0], runs[two[0]][0]))
            for one, two in pairwise(segments)
        ]
        ends = [cell.document for cells in segments.values() for cell in cells if _is_last(docs, cell)]
        left_out = sum(docs[d].eos is not None and not is_kept(d, rule, choices) for d in ends)
        ahead = flat[high][1] if high < len(flat) else None
        out.rows.append(Row(list(segments.values()), ahead, joined, left_out))


def _same_group(docs: list[Doc], one: int, two: int) -> bool:
    return docs[one].unit is not None and docs[one].unit == docs[two].unit


def _is_last(docs: list[Doc], cell: Cell) -> bool:
    return cell.place >= 0 and cell.place == len(docs[cell.document].tokens) - 1


def open_block(
    docs: list[Doc],
    rule: Rule,
    runs: list[tuple[int, int, int]] | None = None,
    choices: Choices = NO_CHOICES,
    hidden: frozenset[int] = frozenset(),
) -> Opened:
    """The rows of a block, in the order in which they were opened; ``hidden``: documents withdrawn."""
    out = Opened([])
    if rule.method == "concat":
        joined = runs if runs is not None else [(i, 0, len(d.tokens)) for i, d in enumerate(docs) if d.tokens]
        join(docs, joined, rule, rule.tail == "keep" or runs is not None, out, choices)
        return out
    pieces = []
    if runs is None:
        for i, doc in enumerate(docs):
            pieces += slice_document(i, doc, rule, out, None, choices)
    else:
        for i, a, b in runs:
            pieces += slice_document(i, docs[i], rule, out, (a, b), choices)
    if rule.fim is not None and choices.transform is not None:
        fill(pieces, rule, choices.transform)
    for piece in pieces:
        if piece.eos and not is_kept(piece.document, rule, choices):
            piece.eos, piece.separator = False, True
    bundles = bundle(docs, pieces, rule, out, may_drop=runs is None, hidden=set(hidden))
    out.rows = [row_of(row) for row in pack(bundles, rule)]
    return out


def left_over(docs: list[Doc], rows: list[Row]) -> list[tuple[int, int, int]]:
    """Fresh tokens of unserved rows, merged per document into maximal runs."""
    fresh = sorted(
        (cell.document, cell.place)
        for row in rows
        for segment in row.segments
        for cell in segment
        if cell.new and 0 <= cell.place < len(docs[cell.document].tokens)
    )
    runs: list[tuple[int, int, int]] = []
    for document, place in fresh:
        if runs and runs[-1][0] == document and runs[-1][2] == place:
            runs[-1] = (document, runs[-1][1], place + 1)
        else:
            runs.append((document, place, place + 1))
    return runs


NO_LABEL = -100


def written(docs: list[Doc], row: Row, rule: Rule) -> dict[str, list[int]]:
    """What a row looks like in a batch."""
    out: dict[str, list[int]] = {"input_ids": [], "position_ids": [], "segment_ids": [], "labels": []}
    out["attention_mask"] = []
    shifted: list[int] = []
    attended, begin = -1, 0
    for number, segment in enumerate(row.segments):
        if not row.goes_on(number):
            attended, begin = attended + 1, len(shifted)
        following = row.segments[number + 1][0] if number + 1 < len(row.segments) else row.ahead
        if following is not None and following.context:
            following = None  # what is needed is no text that follows
        for index, cell in enumerate(segment):
            column = len(out["input_ids"])
            doc = docs[cell.document]
            out["input_ids"].append(doc.id(cell.place))
            out["position_ids"].append(column if rule.positions == "continue" else column - begin)
            out["segment_ids"].append(0 if rule.attention == "sequence" else attended)
            if segment[0].place == OPENS:
                shifted.append(_wrapped_label(docs, segment, index, following, rule))
            elif any(LEAD < other.place < -1 for other in segment):
                shifted.append(_filled_label(docs, segment, index))
            else:
                shifted.append(_label(docs, cell, following, rule))
            before = column - 1
            seen = index > 0 or (number > 0 and _predicts(docs, row.segments[number - 1]))
            seen = seen and not (index == 0 and cell.context)
            known = before >= 0 and seen and shifted[before] != NO_LABEL
            out["labels"].append(shifted[before] if known else NO_LABEL)
            out["attention_mask"].append(1)
        for _ in range(0 if row.goes_on(number + 1) else takes(len(shifted), rule) - len(shifted)):
            out["input_ids"].append(0)
            out["position_ids"].append(out["position_ids"][-1] + 1)
            out["segment_ids"].append(-1)
            out["labels"].append(NO_LABEL)
            out["attention_mask"].append(0)
            shifted.append(NO_LABEL)
    if rule.labels == "shifted":
        out["labels"] = shifted
    size = len(shifted)
    for key, pad in (("input_ids", 0), ("position_ids", 0), ("segment_ids", -1), ("labels", -100)):
        out[key] += [pad] * (rule.context - size)
    out["attention_mask"] += [0] * (rule.context - size)
    return out


def _predicts(docs: list[Doc], segment: list[Cell]) -> bool:
    """Whether the last cell of a segment says something of the next one."""
    return segment[-1].place == LEAD - 1 or _ended(docs, segment)


def _filled_label(docs: list[Doc], segment: list[Cell], index: int) -> int:
    """The next id; none where it is the piece's own first token, or where nothing is left but a cut."""
    doc = docs[segment[0].document]
    body = sorted(cell.place for cell in segment if 0 <= cell.place < len(doc.tokens))
    if index + 1 < len(segment):
        after = segment[index + 1].place
        return NO_LABEL if after == body[0] > 0 else doc.id(after)
    if segment[index].place == len(doc.tokens) or body[-1] + 1 < len(doc.tokens) or doc.eos is None:
        return NO_LABEL
    return doc.eos


def _wrapped_label(
    docs: list[Doc], segment: list[Cell], index: int, following: Cell | None, rule: Rule
) -> int:
    """The next id, where that is no token read again; no piece reads ahead."""
    doc = docs[segment[0].document]
    if index + 1 < len(segment):
        after = segment[index + 1]
        is_again = after.place >= 0 and not after.new and not rule.overlap_labels
        return NO_LABEL if is_again else doc.id(after.place)
    if rule.cross_labels and following is not None and _ended(docs, segment):
        return docs[following.document].id(following.place)
    return NO_LABEL


def _ended(docs: list[Doc], segment: list[Cell]) -> bool:
    """Whether the document ends with this segment."""
    if segment[0].place == OPENS:
        return max(cell.place for cell in segment) == len(docs[segment[0].document].tokens) - 1
    return _ends(docs, segment[-1])


def _ends(docs: list[Doc], cell: Cell) -> bool:
    """Whether the document ends with this cell."""
    doc = docs[cell.document]
    return cell.place == len(doc.tokens) - (doc.eos is None)


def _label(docs: list[Doc], cell: Cell, following: Cell | None, rule: Rule) -> int:
    if cell.context or not (cell.new or rule.overlap_labels):
        return NO_LABEL
    if cell.place < LEAD:
        if cell.place < LEAD - 1:
            return NO_LABEL
        assert following is not None
        return docs[following.document].id(following.place)
    if not _ends(docs, cell):
        return docs[cell.document].id(cell.place + 1)
    if rule.cross_labels and following is not None:
        return docs[following.document].id(following.place)
    return NO_LABEL


def counts(docs: list[Doc], row: Row, rule: Rule) -> dict[str, int]:
    """Tokens of a row by kind, and documents begun."""
    cells = [cell for segment in row.segments for cell in segment]
    body = [cell for cell in cells if 0 <= cell.place < len(docs[cell.document].tokens)]
    labels = written(docs, row, rule)["labels"]
    return {
        "body": len(body),
        "overlap": sum(not cell.new for cell in body),
        "special": len(cells) - len(body),
        "padding": rule.context - len(cells),
        "labels": sum(label != NO_LABEL for label in labels),
        "documents": sum(cell.place == 0 and cell.new for cell in body),
        "separators": row.separators,
    }
