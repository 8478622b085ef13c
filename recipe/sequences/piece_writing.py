"""One piece of a document written into a row: its ids and labels, from the stored tokens on.

A piece is plain, or filled in the middle, or what stands in front of a document; all of it is compiled into
the loop over rows (`recipe.sequences.assembly`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.maths.kernels import imported, inlined, kernel
from recipe.sequences.page import IGNORED
from recipe.sequences.pieces import (
    AHEAD,
    CONTEXT,
    ENDS,
    HAS_BOS,
    HAS_EOS,
    INFILLED,
    MARKER,
    OLD_BOS,
    OLD_EOS,
    WRAPPED,
)
from recipe.sequences.sheet import BOS, EOS, INPUTS, PREFIX
from recipe.sequences.transform import CUT_MASK, FIRST_CUT, SECOND_CUT, SPM

_carray = imported("numba", "carray")
_pointer = imported("recipe.sequences.intrinsics", "pointer")


@inlined
def write_piece(marker: Any, first: int, wide: Any, place: Any, by: Any) -> tuple[int, bool, bool]:
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


@inlined
def _first_id(tokens: Any, start: int, stop: int, flags: int, marks: tuple[int, int]) -> int:
    if flags & HAS_BOS:
        return marks[0]
    if start == stop and not flags & AHEAD:
        return marks[1]
    return np.int64(tokens[start])  # type: ignore[return-value]


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
def write_places(positions: NDArray[np.int32], segments: NDArray[np.int32], first: int, segment: int) -> None:
    """Positions from ``first`` on and the segment's number, over one piece."""
    for i in range(len(positions)):
        positions[i] = first + i
    for i in range(len(segments)):
        segments[i] = segment


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
def _copy(source: Any, out: NDArray[np.int64]) -> None:
    """Widen tokens; both run from index 0, so that the loop becomes vector instructions."""
    for i in range(len(out)):
        out[i] = source[i]
