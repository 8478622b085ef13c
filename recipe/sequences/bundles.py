"""Bundles: pieces that lie side by side in one row and form one segment.

The first piece of a bundle opens the segment, the others carry ``JOINED``: positions run on, and they may
see what stands before them in it. Without any of the rules below every piece is a bundle of its own.

**Groups** (``attention: group``). The pieces of a unit of several documents, in reading order: a bundle goes
on until the next piece would pass the context, so that a unit longer than a row is split at piece edges.
A piece that takes a row of its own goes with no other.

**Markers.** A document with special tokens of its own in front of the body (its lead) has them as a piece
``MARKER`` in front of its first one: tokens ``[-lead, 0)`` of the document, counted special.

**Needs.** Sections that a piece's fresh tokens are read after, and that the piece (under ``attention: group``
its bundle) does not hold, come in front of it as ``CONTEXT``: all overlap, never labelled. Where they do not
fit in a row with the piece, the whole unit is left out as ``oversize`` when the block is first opened; of
what is cut anew nothing is dropped, so such a piece then goes without.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.maths.kernels import inlined, kernel
from recipe.sequences.packing import best_fit, padded
from recipe.sequences.pieces import AHEAD, ALONE, CONTEXT, HAS_BOS, JOINED, MARKER, OLD_BOS, Pieces
from recipe.sequences.transform import positions_of


class Relations(NamedTuple):
    """What the documents of a block have to do with each other.

    ``units`` int64[n]: rising numbers of the units, -1 for documents whose pieces are not bundled by group;
    ``firsts`` int64[n]: index of the first document of each one's unit; ``leads`` int64[n]: special tokens in
    front of its body that are pieces of their own; ``places`` int64[n]: its first body token, counted over
    the pool; ``tokens`` int64[n]: body tokens that may be shown, 0 where it is withdrawn; ``needs``
    int64[m, 4]: as :attr:`recipe.pools.Pool.needs`.
    """

    units: NDArray[np.int64]
    firsts: NDArray[np.int64]
    leads: NDArray[np.int64]
    places: NDArray[np.int64]
    tokens: NDArray[np.int64]
    needs: NDArray[np.int64]


def bundled(pieces: Pieces, relations: Relations, room: int, *, may_drop: bool) -> tuple[Pieces, int]:
    """Pieces with what comes in front of them, those that go on in a segment marked ``JOINED``.

    Args:
        pieces: in reading order, then start, as they were cut and transformed.
        relations: of the documents that they index.
        room: positions of a row.
        may_drop: whether units may be left out whose needs do not fit.

    Returns:
        the pieces; fresh tokens of those that are left out.
    """
    sizes, lost = positions_of(pieces), 0
    rows = np.zeros((len(sizes), 2), np.int64)
    if len(relations.needs) and len(sizes):
        rows = _rows_of_needs(pieces, relations)
        fits = _fits(pieces, sizes, relations, rows, room)
        if may_drop and not fits.all():
            units = np.unique(relations.firsts[pieces.document[~fits]])
            kept = ~np.isin(relations.firsts[pieces.document], units)
            lost = int((pieces.stop - pieces.fresh)[~kept].sum())
            pieces, sizes, rows, fits = pieces.take(kept), sizes[kept], rows[kept], fits[kept]
        rows[~fits] = 0
    out = _bundle(pieces, sizes, relations, rows, room)
    return Pieces(*out), lost


def joined_rows(
    pieces: Pieces, row_of_piece: NDArray[np.int64], units: NDArray[np.int64]
) -> tuple[Pieces, NDArray[np.int64]]:
    """The same for documents joined in one stream: leads as pieces of their own, groups as one segment.

    Args:
        pieces: in stream order; those that begin before token 0 hold some of a lead.
        row_of_piece: int64[num_pieces].
        units: as :class:`Relations` has them.
    """
    out, rows = _split_leads(pieces, row_of_piece, units)
    return Pieces(*out), rows


def packed(pieces: Pieces, rule: Rule) -> NDArray[np.int64]:
    """int64[num_pieces]: the row of each piece; those of a bundle share one."""
    sizes, alone = positions_of(pieces), (pieces.flags & ALONE) > 0
    follows = (pieces.flags & JOINED) > 0
    bundle = None
    if follows.any():
        opens = np.flatnonzero(~follows)
        bundle = np.cumsum(~follows) - 1
        sizes, alone = np.add.reduceat(sizes, opens), np.logical_or.reduceat(alone, opens)
    if rule.method == "none":
        rows = np.arange(len(sizes))
    else:
        sizes = padded(sizes, rule.document_multiple)
        grain = max(1, rule.context // 64) if rule.shuffle_fit else 1
        rows = best_fit(sizes, alone, rule.context, grain)
    return rows if bundle is None else rows[bundle]


def columns_of(pieces: Pieces, multiple: int) -> NDArray[np.int64]:
    """int64[n]: where the tokens of each piece of one row begin, marks before them left out.

    Args:
        pieces: of the row, left to right.
        multiple: every segment takes a multiple of so many positions.
    """
    width = np.where(pieces.flags & AHEAD, 0, positions_of(pieces))
    if multiple > 1 and len(width):
        opens = np.flatnonzero((pieces.flags & JOINED) == 0)
        size = np.add.reduceat(width, opens)
        width[np.append(opens[1:], len(width)) - 1] += -size % multiple
    columns: NDArray[np.int64] = np.cumsum(width) - width + ((pieces.flags & HAS_BOS) > 0)
    return columns


def _rows_of_needs(pieces: Pieces, relations: Relations) -> NDArray[np.int64]:
    """int64[num_pieces, 2]: the rows of needs of each piece's fresh tokens, from and up to."""
    places = relations.places[pieces.document]
    begins, ends = (np.ascontiguousarray(relations.needs[:, column]) for column in (0, 1))
    low = np.searchsorted(ends, places + pieces.fresh, side="right")
    high = np.searchsorted(begins, places + pieces.stop, side="left")
    return np.stack([low, np.maximum(low, high)], axis=1)


@inlined
def _holder(relations: Any, unit: tuple[int, int], place: int) -> Any:
    """The document of a unit (first, stop) that holds a token, -1 if none does: their places rise."""
    first, stop = unit
    j = first - 1 + np.searchsorted(relations.places[first:stop], place, side="right")
    return j if j >= first and place < relations.places[j] + relations.tokens[j] else -1


@inlined
def _wanted(i: int, relations: Any, rows: NDArray[np.int64], document: int, found: NDArray[np.int64]) -> int:
    """Write (document, start, stop) that piece i needs, in order, what meets made one; how many these are."""
    needs, unit = relations.needs, relations.firsts[document]
    stop = np.searchsorted(relations.firsts, unit, side="right")
    k = 0
    for row in range(rows[i, 0], rows[i, 1]):
        j = _holder(relations, (unit, stop), needs[row, 2])
        if j < 0:
            continue
        start, end = needs[row, 2] - relations.places[j], needs[row, 3] - relations.places[j]
        at = k
        while at > 0 and (found[at - 1, 0], found[at - 1, 1]) > (j, start):
            found[at] = found[at - 1]
            at -= 1
        found[at, 0], found[at, 1], found[at, 2] = j, start, end
        k += 1
    last = -1
    for at in range(k):
        if last >= 0 and found[last, 0] == found[at, 0] and found[at, 1] <= found[last, 2]:
            found[last, 2] = max(found[last, 2], found[at, 2])
        else:
            last += 1
            found[last] = found[at]
    return last + 1


@inlined
def _less(spans: NDArray[np.int64], count: int, holder: tuple[int, int, int], out: NDArray[np.int64]) -> int:
    """Write to ``out`` the spans without what a piece (document, start, stop) holds; how many are left."""
    document, start, stop = holder
    k = 0
    for at in range(count):
        low, high = spans[at, 1], spans[at, 2]
        if spans[at, 0] != document or stop <= low or high <= start:
            out[k] = spans[at]
            k += 1
            continue
        if low < start:
            out[k, 0], out[k, 1], out[k, 2] = document, low, start
            k += 1
        if stop < high:
            out[k, 0], out[k, 1], out[k, 2] = document, stop, high
            k += 1
    return k


@inlined
def _total(spans: NDArray[np.int64], count: int) -> int:
    total = 0
    for at in range(count):
        total += spans[at, 2] - spans[at, 1]
    return total


@inlined
def _lead(i: int, pieces: Any, relations: Any) -> int:
    """Positions of the lead in front of piece i."""
    return relations.leads[pieces.document[i]] if pieces.fresh[i] == 0 else 0


@kernel
def _fits(
    pieces: Any, sizes: NDArray[np.int64], relations: Any, rows: NDArray[np.int64], room: int
) -> NDArray[np.bool_]:
    """bool[num_pieces]: whether a piece and what it needs fit in a row."""
    out = np.ones(len(sizes), np.bool_)
    most = 1 + (rows[:, 1] - rows[:, 0]).max()
    found, left = np.empty((most, 3), np.int64), np.empty((most + 1, 3), np.int64)
    for i in range(len(sizes)):
        if rows[i, 1] > rows[i, 0]:
            document = pieces.document[i]
            count = _wanted(i, relations, rows, document, found)
            count = _less(found, count, (document, pieces.start[i], pieces.stop[i]), left)
            out[i] = _total(left, count) + sizes[i] + _lead(i, pieces, relations) <= room
    return out


@inlined
def _put(out: NDArray[np.int64], k: int, entry: tuple[int, int, int, int], flags: int) -> NDArray[np.int64]:
    """The same columns with one more piece: (document, start, stop, fresh) and its flags."""
    if k == out.shape[1]:
        more = np.empty((5, 2 * k + 16), np.int64)
        more[:, :k] = out
        out = more
    out[0, k], out[1, k], out[2, k], out[3, k] = entry
    out[4, k] = flags
    return out


@kernel
def _bundle(
    pieces: Any, sizes: NDArray[np.int64], relations: Any, rows: NDArray[np.int64], room: int
) -> NDArray[np.int64]:
    """int64[5, k]: columns of the pieces, with those that come in front."""
    out = np.empty((5, len(sizes)), np.int64)
    cap = 2 + len(sizes) + ((rows[:, 1] - rows[:, 0]).max() if len(rows) else 0)
    own = np.empty((cap, 3), np.int64)
    spans, other = np.empty_like(own), np.empty_like(own)
    k, begin, used, unit = 0, 0, room, -1
    for i in range(len(sizes)):
        document, flags = pieces.document[i], pieces.flags[i]
        start, stop, fresh = pieces.start[i], pieces.stop[i], pieces.fresh[i]
        lead, count = _lead(i, pieces, relations), 0
        if rows[i, 1] > rows[i, 0]:
            count = _less(other, _wanted(i, relations, rows, document, other), (document, start, stop), own)
        goes_on = unit >= 0 and relations.units[document] == unit and flags & ALONE == 0
        left = count
        if goes_on:
            spans[:left] = own[:left]
            for at in range(begin, k):
                if left > 0:
                    left = _less(spans, left, (out[0, at], out[1, at], out[2, at]), other)
                    spans, other = other, spans
            goes_on = used + _total(spans, left) + lead + sizes[i] <= room
        if not goes_on:
            spans[:count] = own[:count]
            left, begin, used = count, k, 0
        used += _total(spans, left) + lead + sizes[i]
        for at in range(left):
            entry = (spans[at, 0], spans[at, 1], spans[at, 2], spans[at, 2])
            out = _put(out, k, entry, CONTEXT | (JOINED if k > begin else 0))
            k += 1
        if lead > 0:
            out = _put(out, k, (document, -lead, 0, 0), MARKER | (JOINED if k > begin else 0))
            k += 1
        out = _put(out, k, (document, start, stop, fresh), flags | (JOINED if k > begin else 0))
        k += 1
        unit = relations.units[document] if flags & ALONE == 0 else -1
    return out[:, :k].copy()


@kernel
def _split_leads(
    pieces: Any, row_of_piece: NDArray[np.int64], units: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """int64[5, k] and int64[k]: the pieces and their rows."""
    out = np.empty((5, 2 * len(row_of_piece)), np.int64)
    rows = np.empty(2 * len(row_of_piece), np.int64)
    k = 0
    for i in range(len(row_of_piece)):
        row, document, flags = row_of_piece[i], pieces.document[i], pieces.flags[i]
        start, stop, fresh = pieces.start[i], pieces.stop[i], pieces.fresh[i]
        follows = k > 0 and rows[k - 1] == row and flags & AHEAD == 0
        joined = JOINED if follows and units[document] >= 0 and units[out[0, k - 1]] == units[document] else 0
        if start < 0:
            end = min(stop, 0)
            old = OLD_BOS if fresh >= 0 else 0
            out = _put(out, k, (document, start, end, end), MARKER | old | joined | flags & AHEAD)
            rows[k] = row
            k += 1
            start, fresh, joined = 0, max(fresh, 0), JOINED
        if pieces.start[i] >= 0 or stop > 0:
            out = _put(out, k, (document, start, stop, fresh), flags | joined)
            rows[k] = row
            k += 1
    return out[:, :k].copy(), rows[:k].copy()
