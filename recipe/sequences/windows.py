"""The compiled loop that cuts runs into windows: one source for every rule.

Where nothing is aligned, ``reading`` is None and the loop sees lengths alone; the compiler leaves all of
alignment out, also the arrays that only alignment takes: to hand one on costs as much as to cut a piece.
Otherwise it looks at the tokens near cuts: in mapped parts, or in stretches that were fetched.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.maths.kernels import imported, inlined, kernel
from recipe.sequences.boundaries import first_edge, last_edge
from recipe.sequences.glimpses import UNSEEN, Glimpses, begin_run, first_glimpsed, last_glimpsed, no_glimpses
from recipe.sequences.pieces import ALONE, ENDS, HAS_BOS, HAS_EOS, REASONS, WRAPPED, Documents, Pieces
from recipe.sequences.spelling import Edges

_carray = imported("numba", "carray")
_pointer = imported("recipe.sequences.intrinsics", "pointer")

_NUM_REASONS = len(REASONS)
REGION_WINDOWS = 2
"""The head of a document is its first so many windows of tokens, its tail the last, each at most a half."""
HEAD, MIDDLE, TAIL = range(3)
"""Regions of a document that is longer than a window."""


class Cutting(NamedTuple):
    """The numbers of a slicing rule, as the compiled loop takes them."""

    window: int
    stride: int
    context: int
    tail: int
    min_tail: int
    oversize: int
    head_stride: int = 0
    """With ``tail_stride``: strides in a document's head and tail; 0: the stride is one everywhere."""
    tail_stride: int = 0
    wrapped: bool = False
    """Marks stand round every window, not round the document."""
    align_within: int = 0


class Reading(NamedTuple):
    """Where the tokens of a block's documents are, and where they may be cut.

    ``marker``: an empty array of the tokens' type; ``addresses`` uint64[num_documents]: of the first body
    token, 0 where it is not looked at; ``places`` int64[num_documents]: the same, counted over the pool.
    ``glimpses``: of texts that are not at hand as a whole.
    """

    marker: NDArray[Any]
    addresses: NDArray[np.uint64]
    places: NDArray[np.int64]
    edges: Edges
    glimpses: Glimpses = no_glimpses()


MOVED, UNALIGNED, STARTS = range(3)
"""What alignment did, counted: cuts moved back; cuts that stayed where none is permitted; starts moved."""


@inlined
def _cut_back(span: tuple[int, int, int], at: tuple[int, int], within: int, looking: tuple[Any, Any]) -> int:
    """Where a document is cut: at a permitted place up to ``within`` tokens before the window's end.

    ``span``: the previous cut, the window's end, the run's end; ``at``: the document's index and its tokens;
    ``looking``: the reading, and what alignment did so far.
    """
    (last, stop, end), (reading, aligned) = span, looking
    if stop >= end:
        return end
    low = max(last + 1, stop - within)
    if len(reading.glimpses.cursor):
        found = last_glimpsed(reading, at, (low, stop))
        if found == UNSEEN:  # the run goes on when it is looked at again
            return last
    else:
        tokens = _carray(_pointer(reading.addresses[at[0]]), (at[1],), reading.marker.dtype)
        found = last_edge(tokens, low, stop, reading.edges, reading.places[at[0]])
    if found < 0:
        aligned[UNALIGNED] += 1
        return stop
    aligned[MOVED] += int(found < stop)
    return int(found)


@inlined
def _start_forward(span: tuple[int, int], at: tuple[int, int], looking: tuple[Any, Any]) -> int:
    """Where a window starts: at the first permitted place inside the overlap, if it holds one."""
    (start, fresh), (reading, aligned) = span, looking
    if start == 0 or start >= fresh:
        return start
    if len(reading.glimpses.cursor):
        found = first_glimpsed(reading, at, (start, fresh - 1))
    else:
        tokens = _carray(_pointer(reading.addresses[at[0]]), (at[1],), reading.marker.dtype)
        found = first_edge(tokens, start, fresh - 1, reading.edges, reading.places[at[0]])
    if found <= start:
        return start
    aligned[STARTS] += 1
    return int(found)


@inlined
def region_at(fresh: int, n: int, window: int) -> int:
    """The region of a document of ``n`` tokens, longer than a window, that a token lies in."""
    if 2 * fresh < n and fresh < REGION_WINDOWS * window:
        return HEAD
    return TAIL if fresh >= n - REGION_WINDOWS * window else MIDDLE


@kernel
def regions(pieces: Pieces, tokens: NDArray[np.int64], window: int) -> NDArray[np.int8]:
    """int8[num_pieces]: the region that the first fresh token of each piece lies in.

    Args:
        pieces: of documents longer than a window.
        tokens: int64[num_documents]: body tokens.
        window: of the rule.
    """
    out = np.empty(len(pieces.fresh), np.int8)
    for i in range(len(out)):
        out[i] = region_at(pieces.fresh[i], tokens[pieces.document[i]], window)
    return out


@inlined
def _stride_at(cut: int, n: int, cutting: Cutting) -> int:
    """Fresh tokens of the window after a cut."""
    if cutting.head_stride == 0:
        return cutting.stride
    region = region_at(cut, n, cutting.window)
    if region == MIDDLE:
        return cutting.stride
    return cutting.head_stride if region == HEAD else cutting.tail_stride


@inlined
def front_of(documents: Any, document: int) -> int:
    """Special tokens in front of a document's body."""
    lead = documents.leads[document] if len(documents.leads) else 0
    return max(lead, int(documents.bos[document]))


@inlined
def first_window(front: int, cutting: Cutting) -> int:
    """Tokens of a document's first window: fewer where what is in front of them has to fit in the context."""
    return min(cutting.window, cutting.context - front)


@inlined
def _end(span: tuple[int, int, int], n: int, full: int, cutting: Cutting) -> tuple[int, int, int]:
    """What becomes of a piece (start, stop, fresh): its start, flags, and dropped reason + 1."""
    start, stop, fresh = span
    if stop < n or stop - start >= full:
        return start, 0, 0
    if cutting.tail == 2:
        return start, 0, 2 if fresh == 0 else 1
    if cutting.tail == 1 and fresh > 0:
        if stop - fresh < cutting.min_tail:
            return start, 0, 1
        start = n - cutting.window
    return start, ALONE if cutting.tail == 3 else 0, 0


@inlined
def _marks(size: int, bos: bool, eos: bool, cutting: Cutting) -> int:
    """Flags of the marks of a piece: ``bos`` and ``eos`` say that the document's are at its edges.

    ``size``: its positions with what stands in front of the document.
    """
    flags = 0
    if bos:
        flags |= HAS_BOS
    if eos:
        flags |= ENDS
        if size < cutting.context:
            flags |= HAS_EOS
    return flags


@kernel
def _with_room(out: NDArray[np.int64], filled: int) -> NDArray[np.int64]:
    """The columns, with room for one more entry at least."""
    if filled < out.shape[1]:
        return out
    more = np.empty((5, 2 * out.shape[1] + 16), np.int64)
    more[:, : out.shape[1]] = out
    return more


@kernel
def _num_expected(
    documents: Documents, runs: NDArray[np.int64], heads: NDArray[np.int64], cutting: Cutting
) -> int:
    """Pieces of the runs, or a few more, where nothing is aligned; about so many else."""
    total, stride = 0, cutting.stride
    if cutting.head_stride:
        stride = min(stride, cutting.head_stride, cutting.tail_stride)
    for r in range(len(runs)):
        document, a, b = runs[r, 0], runs[r, 1], runs[r, 2]
        first = first_window(front_of(documents, document), cutting) if a == 0 else stride
        left = b - a - first
        total += 1
        if left > 0:
            total += (left + stride - 1) // stride
            total += int(heads[document] > 0)
    return total


@kernel
def cut_runs(
    documents: Documents, runs: NDArray[np.int64], heads: NDArray[np.int64], cutting: Cutting, reading: Any
) -> tuple[Pieces, NDArray[np.int64], NDArray[np.int64]]:
    """Cut runs by a rule.

    Args:
        documents: of the block.
        runs: int64[n, 3]: (document, a, b), tokens ``[a, b)`` are to be served.
        heads: int64[num_documents]: tokens before the first window, which are a piece of their own; 0: none.
        cutting: the rule.
        reading: None, or the tokens near cuts.

    Returns:
        the pieces; int64[5]: tokens dropped, as ``REASONS``; int64[3]: what alignment did.
    """
    out = np.empty((5, _num_expected(documents, runs, heads, cutting)), np.int64)
    dropped, aligned = np.zeros(_NUM_REASONS, np.int64), np.zeros(3, np.int64)
    k = 0
    for r in range(len(runs)):
        document, a, b = runs[r, 0], runs[r, 1], runs[r, 2]
        if reading is not None:
            begin_run(reading.glimpses, r)
        n, bos = documents.tokens[document], documents.bos[document]
        front = front_of(documents, document)
        first = first_window(front, cutting)
        head = heads[document] if a == 0 else 0
        at, fresh = (document, n), a
        stop = a + _stride_at(a, n, cutting) if a > 0 else (first if head == 0 else head)
        start = max(0, stop - cutting.window) if a > 0 else 0
        b = 0 if n > first and cutting.oversize == 2 else b
        if reading is None:  # also written out below: nothing is called where nothing is aligned
            stop = min(stop, b)
        else:
            stop = _cut_back((fresh, stop, b), at, cutting.align_within, (reading, aligned))
        if n > first and cutting.oversize > 0:
            dropped[2] += n - stop
            b = stop
        while stop > fresh:
            full = first if fresh == 0 else cutting.window
            start, alone, gone = _end((start, stop, fresh), n, full, cutting)
            if gone:
                dropped[gone - 1] += stop - fresh
                break
            if reading is not None:
                start, out = _start_forward((start, fresh), at, (reading, aligned)), _with_room(out, k)
            out[0, k], out[1, k], out[2, k], out[3, k] = document, start, stop, fresh
            size = stop - start + (front if fresh == 0 else 0)
            out[4, k] = alone | _marks(
                size, fresh == 0 and bos, stop == n and documents.eos[document], cutting
            )
            k += 1
            step = cutting.window if fresh == 0 and head > 0 else _stride_at(stop, n, cutting)
            fresh, stop = stop, stop + step
            start = max(0, stop - cutting.window)
            if reading is None:
                stop = min(stop, b)
            else:
                stop = _cut_back((fresh, stop, b), at, cutting.align_within, (reading, aligned))
    assert k <= out.shape[1], "more pieces than there was room for"
    if cutting.wrapped:
        out[4] |= HAS_BOS | HAS_EOS | ENDS | WRAPPED
    return Pieces(out[0, :k], out[1, :k], out[2, :k], out[3, :k], out[4, :k]), dropped, aligned
