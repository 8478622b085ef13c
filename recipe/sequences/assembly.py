"""Rows of a batch: tokens copied once, from mapped files straight into the arrays a trainer takes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.maths.kernels import imported, inlined, kernel
from recipe.sequences.page import Page
from recipe.sequences.slicing import (
    AHEAD,
    CONTEXT,
    ENDS,
    HAS_BOS,
    HAS_EOS,
    INFILLED,
    JOINED,
    MARKER,
    OLD_BOS,
    OLD_EOS,
    WRAPPED,
)
from recipe.sequences.transform import CUT_MASK, FIRST_CUT, SECOND_CUT, SPM

IGNORED = -100
"""What ``labels`` holds where a position carries no label."""

PADDING_ID = 0
"""What ``input_ids`` holds in padding; masked from attention and loss."""

TOKEN_TYPES = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32")
"""Token widths that can be read."""

AHEAD_BYTES = 1 << 14
"""How much of the next piece is fetched while one is copied."""

_carray = imported("numba", "carray")
_pointer = imported("recipe.sequences.intrinsics", "pointer")
_fetch = imported("recipe.sequences.intrinsics", "fetch")

_MARKERS = tuple(np.empty(0, name) for name in TOKEN_TYPES)
"""One empty array a width: the copying loop is compiled for those in use."""


DOCUMENT, START, STOP, FRESH, FLAGS, TOKENS, SLOT, BASE = range(8)
"""Columns of ``Sheet.pieces``: document number, span, flags; the document's body tokens, the slot of its
part, and the place of its first body token there."""

WIDTH, BOS, EOS, OVERLAP_LABELS, INPUTS, CROSS_LABELS, WHOLE_ROW, GO_ON, MULTIPLE, PREFIX = range(10)
"""Columns of ``Sources.rules``: index into ``TOKEN_TYPES``; mark ids, -1 where there is none; then 0 or 1:
overlap has labels, labels are inputs, labels across documents, attention over the row, positions go on; then
what the positions of every piece are a multiple of; from ``PREFIX`` on ids of the prefix, middle and suffix
markers, -1 where there are none."""


class Sheet(NamedTuple):
    """Sequences ready to be copied: row r holds entries ``ends[r]..ends[r + 1]`` of ``pieces``.

    ``ends`` int64[num_rows + 1]; ``pool`` int64[num_rows]; ``pieces`` int64[num_pieces, 8]: one line of
    the processor's memory a piece.
    """

    ends: NDArray[np.int64]
    pool: NDArray[np.int64]
    pieces: NDArray[np.int64]


class Sources(NamedTuple):
    """Where tokens come from: ``address`` uint64[num_slots] of every part, 0 while it is not opened.

    ``rules`` int64[num_pools, 12] says what is made of them.
    """

    address: NDArray[np.uint64]
    rules: NDArray[np.int64]


def assemble(what: tuple[Sheet, NDArray[np.int64], Sources], widths: tuple[int, ...], page: Page) -> int:
    """Fill a batch with some rows of a sheet.

    Args:
        what: the sheet, int64[rows] the rows wanted, and where their tokens come from.
        widths: the token widths that the pools have, as indices into ``TOKEN_TYPES``.
        page: memory of ``len(rows)`` rows.

    Returns:
        -1, or the slot of a part that has to be opened first; the batch is then unfinished.
    """
    sheet, rows, sources = what
    given, memory = (*sheet, *sources), (*page,)
    for width in widths:
        slot = int(_assemble(_MARKERS[width], width, given, rows, memory))
        if slot >= 0:
            return slot
    return -1


def segment_lengths(segment_ids: NDArray[np.int32]) -> tuple[NDArray[np.int32], int]:
    """Cumulative segment lengths of the flattened rows, for variable-length attention.

    The padding at the end of a row is a segment of its own, so that the last entry is rows x context.

    Returns:
        ``cu_seqlens`` int32[num_segments + 1], and ``max_seqlen``.

    >>> segment_lengths(np.array([[0, 0, 1, -1], [0, 0, 0, 0]], np.int32))
    (array([0, 2, 3, 4, 8], dtype=int32), 4)
    """
    edges = np.ones(segment_ids.shape, bool)
    edges[:, 1:] = segment_ids[:, 1:] != segment_ids[:, :-1]
    starts = np.append(np.flatnonzero(edges.reshape(-1)), segment_ids.size).astype(np.int32)
    return starts, int(np.diff(starts).max(initial=0))


def padded_segment_lengths(
    segment_ids: NDArray[np.int32], multiple: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """Cumulative segment lengths, true and padded, of rows whose pieces take multiples of positions.

    As variable-length kernels of context parallelism take them: segment k begins at ``padded[k]`` of the
    flattened rows and has ``true[k + 1] - true[k]`` positions, then padding. What is left of a row is a
    segment of its own without any true position.

    Returns:
        ``cu_seqlens`` int32[num_segments + 1], which ends with the positions that are no padding;
        ``cu_seqlens_padded`` int32[num_segments + 1], which ends with rows x context; and ``max_seqlen``,
        the longest of these, what is left of a row included.

    Source:
        ``cu_seqlens_q`` and ``cu_seqlens_q_padded`` of NVIDIA Transformer Engine's ``thd`` layout, and of
        Megatron-core's ``PackedSeqParams``.

    >>> padded_segment_lengths(np.array([[0, 0, 0, -1, 1, -1, -1, -1]], np.int32), 2)
    (array([0, 3, 4, 4], dtype=int32), array([0, 4, 6, 8], dtype=int32), 4)
    """
    edges = np.ones(segment_ids.shape, bool)
    edges[:, 1:] = segment_ids[:, 1:] != segment_ids[:, :-1]
    flat = segment_ids.reshape(-1)
    bounds = np.append(np.flatnonzero(edges.reshape(-1)), flat.size)
    is_piece = flat[bounds[:-1]] >= 0
    starts, lengths = bounds[:-1][is_piece], np.diff(bounds)[is_piece]
    taken = lengths + -lengths % multiple
    begins = np.unique(np.concatenate([starts, starts + taken, [0, flat.size]]))
    true = np.zeros(len(begins), np.int32)
    true[np.searchsorted(begins, starts) + 1] = lengths
    longest = int(np.diff(begins).max(initial=0))
    return np.cumsum(true, dtype=np.int32), begins.astype(np.int32), longest


@inlined
def _copy(source: Any, out: NDArray[np.int64]) -> None:
    """Widen tokens; both run from index 0, so that the loop becomes vector instructions."""
    for i in range(len(out)):
        out[i] = source[i]


@inlined
def _fill(
    tokens: Any, ids: NDArray[np.int64], labels: NDArray[np.int64], span: tuple[int, int, int, int], code: int
) -> None:
    """Copy one piece: its tokens, and as labels the next tokens (code 0) or the same ones (code 1).

    ``span``: start, stop, first labelled token, document tokens; ``tokens[i]`` is body token i.
    """
    start, stop, labelled, n = span
    _copy(tokens[start:stop], ids)
    if code == 1:
        first = min(labelled + 1, stop)
        labels[: first - start] = IGNORED
        _copy(tokens[first:stop], labels[first - start :])
        return
    last = max(min(stop, n - 1), labelled)
    labels[: labelled - start] = IGNORED
    _copy(tokens[labelled + 1 : last + 1], labels[labelled - start : last - start])


@inlined
def _number(positions: NDArray[np.int32], segments: NDArray[np.int32], first: int, segment: int) -> None:
    """Positions from ``first`` on and the segment's number, over one piece."""
    for i in range(len(positions)):
        positions[i] = first + i
    for i in range(len(segments)):
        segments[i] = segment


@inlined
def _first_id(tokens: Any, start: int, stop: int, flags: int, marks: tuple[int, int]) -> int:
    if flags & HAS_BOS:
        return marks[0]
    if start == stop and not flags & AHEAD:
        return marks[1]
    return np.int64(tokens[start])  # type: ignore[return-value]


@inlined
def _piece(
    tokens: Any,
    ids: NDArray[np.int64],
    labels: NDArray[np.int64],
    place: tuple[int, int, int, int, int, int, bool],
    rule: tuple[int, int, bool, bool],
) -> tuple[int, bool]:
    """Write one piece at column ``col``; returns the next column, and whether a document ended there.

    ``place``: column, start, stop, fresh, flags, the document's tokens, and whether the position before
    predicts the piece's first id.
    """
    col, start, stop, fresh, flags, n, seam = place
    bos_id, eos_id, overlap_labels, inputs = rule
    lead = IGNORED
    if seam:
        first = _first_id(tokens, start, stop, flags, (bos_id, eos_id))
        if inputs:
            lead = first
        else:
            labels[col - 1] = first
    if flags & AHEAD:
        return col, False
    begin = col
    bos = flags & HAS_BOS > 0 and (overlap_labels or flags & OLD_BOS == 0)
    labelled = start if overlap_labels and not flags & CONTEXT else fresh
    wrapped = flags & WRAPPED > 0
    if flags & HAS_BOS:
        ids[col] = bos_id
        leads = bos and not inputs and (not wrapped or labelled == start)
        labels[col] = tokens[start] if leads else IGNORED
        col += 1
    size = stop - start
    _fill(tokens, ids[col : col + size], labels[col : col + size], (start, stop, labelled, n), int(inputs))
    if inputs and bos and size > 0:
        at = labelled if wrapped else start
        labels[col + at - start] = tokens[at]
    elif wrapped and labelled > start:
        labels[col + labelled - start - 1] = tokens[labelled]  # no piece before reads it ahead
    last = stop == n and size > 0
    if (last or wrapped) and labelled < stop and not inputs:
        labels[col + size - 1] = eos_id if flags & ENDS else IGNORED
    col += size
    if flags & HAS_EOS:
        ids[col] = eos_id
        labels[col] = eos_id if inputs and stop > labelled else IGNORED
        col += 1
        ended = (overlap_labels or flags & OLD_EOS == 0) and (last or not wrapped)
    else:
        ended = last and flags & ENDS == 0 and labelled < stop
    if lead != IGNORED:
        labels[begin] = lead
    return col, ended


@kernel
def _infilled(
    tokens: Any,
    wide: tuple[NDArray[np.int64], NDArray[np.int64]],
    place: tuple[int, int, int, int],
    of: NDArray[np.int64],
) -> int:
    """Write one piece that is filled in the middle, at column ``col``; returns the next column."""
    (ids, labels), (col, start, stop, flags) = wide, place
    begin = col
    a, b = start + (flags >> FIRST_CUT & CUT_MASK), start + (flags >> SECOND_CUT & CUT_MASK)
    if flags & HAS_BOS:
        ids[col] = of[BOS]
        col += 1
    head = b if flags & SPM else a  # the middle marker stands before [head, b), or before all up to b
    first = start if flags & SPM else a
    ids[col] = of[PREFIX]
    col += 1
    opening = col  # where token ``start`` stands
    if not flags & SPM:
        _copy(tokens[start:head], ids[col : col + head - start])
        col += head - start
    ids[col] = of[PREFIX + 2]
    col += 1
    if flags & SPM or a == start:
        opening = col
    _copy(tokens[b:stop], ids[col : col + stop - b])
    col += stop - b
    ids[col] = of[PREFIX + 1]
    col += 1
    if b > first and first == start:
        opening = col
    _copy(tokens[first:b], ids[col : col + b - first])
    col += b - first
    if flags & HAS_EOS:
        ids[col] = of[EOS]
        col += 1
    if of[INPUTS]:
        labels[begin] = IGNORED
        _copy(ids[begin + 1 : col], labels[begin + 1 : col])
    else:
        _copy(ids[begin + 1 : col], labels[begin : col - 1])
        labels[col - 1] = of[EOS] if flags & ENDS and not flags & HAS_EOS else IGNORED
        opening -= 1
    if start > 0 and not flags & WRAPPED:
        labels[opening] = IGNORED
    return col


@inlined
def _lead(
    stored: Any, ids: NDArray[np.int64], labels: NDArray[np.int64], place: tuple[int, int, bool, bool]
) -> int:
    """Write what stands in front of a document, ``stored``, at column ``col``; returns the next column.

    ``place``: column, flags, whether the position before predicts its first id, labels are inputs.
    """
    col, flags, seam, inputs = place
    if seam and not inputs:
        labels[col - 1] = stored[0]
    if flags & AHEAD:
        return col
    after = col + len(stored)
    _copy(stored, ids[col:after])
    labels[col:after] = IGNORED
    if seam and inputs:
        labels[col] = stored[0]
    return after


@inlined
def _written(marker: Any, first: int, wide: Any, place: Any, by: Any) -> tuple[int, bool, bool]:
    """Write a piece of any kind; ``first``: address of its document's first body token.

    Returns:
        the next column; whether a document ended there; whether a document begins there that what stands
        in front of it predicts.
    """
    (ids, labels), (col, start, stop, _fresh, flags, _n, seam), (led, rule, of) = wide, place, by
    overlap_labels, inputs = rule[2], rule[3]
    if flags & MARKER:
        front = np.uint64(first + start * marker.itemsize)
        stored = _carray(_pointer(front), (max(1, stop - start),), marker.dtype)
        after = _lead(stored, ids, labels, (col, flags, seam, inputs))
        leads = after > col and stop == 0 and (overlap_labels or flags & OLD_BOS == 0)
        if leads and not inputs:
            labels[after - 1] = _carray(_pointer(np.uint64(first)), (1,), marker.dtype)[0]
        return after, False, leads
    tokens = _carray(_pointer(np.uint64(first)), (place[5],), marker.dtype)
    if flags & INFILLED:
        after = _infilled(tokens, (ids, labels), (col, start, stop, flags), of)
        if led:
            labels[col if inputs else col - 1] = ids[col]
        return after, False, False
    after, ended = _piece(tokens, ids, labels, place, rule)
    return after, ended, False


@inlined
def _ahead(given: Any, rows: NDArray[np.int64], place: tuple[int, int], itemsize: int) -> None:
    """Ask for the tokens of the piece after ``place`` = (r, i), while those before it are copied."""
    ends, _pools, pieces, addresses, _rules = given
    r, i = place
    after = i + 1
    if after == ends[rows[r] + 1]:
        after = ends[rows[r + 1]] if r + 1 < len(rows) else after
    if after == len(pieces):
        return
    address = addresses[pieces[after, SLOT]]
    if address == 0:
        return
    first = np.int64(address) + (pieces[after, BASE] + pieces[after, START]) * itemsize
    size = (pieces[after, STOP] - pieces[after, START]) * itemsize
    for line in range(first, first + min(size, AHEAD_BYTES), 64):
        _fetch(np.uint64(line))


@inlined
def _closes(pieces: Any, after: int, end: int) -> bool:
    """Whether a segment ends before piece ``after``; ``end``: where the row's pieces end."""
    return after == end or pieces[after, FLAGS] & JOINED == 0


@inlined
def _pad(col: int, row: Any) -> None:
    """Padding from a column on, and the mask of the whole row."""
    ids, labels, positions, segments, mask = row
    mask[:col] = 1
    mask[col:] = 0
    ids[col:] = PADDING_ID
    labels[col:] = IGNORED
    positions[col:] = 0
    segments[col:] = -1


@kernel
def _assemble(marker: Any, width: int, given: Any, rows: NDArray[np.int64], page: Any) -> Any:
    """Fill the rows whose pools have tokens as wide as the marker's."""
    ends, pools, pieces, addresses, rules = given
    wide, narrow, mask = page
    for r in range(len(rows)):
        row = rows[r]
        of = rules[pools[row]]
        if of[WIDTH] != width:
            continue
        rule = (of[BOS], of[EOS], of[OVERLAP_LABELS] > 0, of[INPUTS] > 0)
        ids, labels, positions, segments = wide[0, r], wide[1, r], narrow[0, r], narrow[1, r]
        col, begin, segment = 0, 0, 0
        ended = led = False
        for i in range(ends[row], ends[row + 1]):
            piece = pieces[i]
            address = addresses[piece[SLOT]]
            if address == 0:
                return piece[SLOT]
            _ahead(given, rows, (r, i), marker.itemsize)
            start, stop, flags = piece[START], piece[STOP], piece[FLAGS]
            if flags & JOINED == 0 and i > ends[row]:
                begin = col
                segment += 1 - of[WHOLE_ROW]
            seam = led or (ended and of[CROSS_LABELS] > 0 and flags & CONTEXT == 0)
            place: Any = (col, start, stop, piece[FRESH], flags, piece[TOKENS], seam)
            first = np.int64(address) + piece[BASE] * marker.itemsize
            after, ended, led = _written(marker, first, (ids, labels), place, (led, rule, of))
            _number(positions[col:after], segments[col:after], col if of[GO_ON] else col - begin, segment)
            col = after
            if of[MULTIPLE] > 1 and after % of[MULTIPLE] > 0 and _closes(pieces, i + 1, ends[row + 1]):
                col = after + of[MULTIPLE] - after % of[MULTIPLE]
                _number(positions[after:col], segments[after:col], positions[after - 1] + 1, -1)
                ids[after:col] = PADDING_ID
                labels[after:col] = IGNORED
        _pad(col, (ids, labels, positions, segments, mask[r]))
        if of[MULTIPLE] > 1:
            for i in range(col):
                mask[r, i] = segments[i] >= 0
    return -1
