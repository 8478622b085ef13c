"""Rows of a batch: tokens copied once, from mapped files straight into the arrays a trainer takes."""

from __future__ import annotations

import sys
import threading
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import carray, types  # type: ignore[attr-defined]
from numba.extending import intrinsic
from numpy.typing import NDArray

from recipe.maths.kernels import kernel
from recipe.sequences.slicing import AHEAD, ENDS, HAS_BOS, HAS_EOS, OLD_BOS, OLD_EOS

IGNORED = -100
"""What ``labels`` holds where a position carries no label."""

PADDING_ID = 0
"""What ``input_ids`` holds in padding; masked from attention and loss."""

TOKEN_TYPES = ("uint8", "int8", "int16", "int32", "int64", "uint16")
"""Token widths that can be read."""

_MARKERS = tuple(np.empty(0, name) for name in TOKEN_TYPES)
"""One empty array a width: the copying loop is compiled for those in use."""


class Sheet(NamedTuple):
    """Sequences ready to be copied: row r holds entries ``ends[r]..ends[r + 1]`` of the columns.

    ``pool`` per row; per piece: document number, span, flags, the document's body tokens, the slot of
    its part and the place of its first body token in that part.
    """

    ends: NDArray[np.int64]
    pool: NDArray[np.int64]
    document: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    fresh: NDArray[np.int64]
    flags: NDArray[np.uint8]
    tokens: NDArray[np.int64]
    slot: NDArray[np.int64]
    base: NDArray[np.int64]


class Sources(NamedTuple):
    """Where tokens come from.

    ``address`` uint64[num_slots]: of every part, 0 while it is not opened; ``width`` uint8[num_pools]:
    index into ``TOKEN_TYPES``; ``marks`` int64[num_pools, 2]: BOS and EOS ids, -1 where there is none;
    ``rules`` bool[num_pools, 5]: overlap labels, labels are inputs, labels across documents, attention
    over the row, positions go on.
    """

    address: NDArray[np.uint64]
    width: NDArray[np.uint8]
    marks: NDArray[np.int64]
    rules: NDArray[np.bool_]


class Arrays(NamedTuple):
    """A batch, each [rows, context]: int64 ids and labels, int32 positions and segments, int8 mask."""

    input_ids: NDArray[np.int64]
    labels: NDArray[np.int64]
    position_ids: NDArray[np.int32]
    segment_ids: NDArray[np.int32]
    attention_mask: NDArray[np.int8]


class Buffers:
    """Arrays of earlier batches, filled anew once nobody holds any of them.

    Writing to pages that the system has to fetch and clear first costs more than filling them.
    Whether anybody holds an array, or a view of one, its reference count tells.
    """

    def __init__(self, most: int = 8) -> None:
        """Keep the arrays of at most ``most`` batches."""
        self._most = most
        self._lock = threading.Lock()
        self._kept = [_allocate((1, 1))]
        self._unheld = self._references()[0]

    def take(self, num_rows: int, context: int) -> Arrays:
        """Arrays that nobody else holds, with whatever they held before."""
        shape = (num_rows, context)
        with self._lock:
            for at, references in enumerate(self._references()):
                if references == self._unheld and self._kept[at][1].input_ids.shape == shape:
                    return self._kept[at][1]
            self._kept = [*self._kept[-self._most + 1 :], _allocate(shape)]
            return self._kept[-1][1]

    def _references(self) -> list[list[int]]:
        """Of every batch kept: references to its memory (views hold it) and to each of its arrays."""
        return [[sys.getrefcount(memory), *map(sys.getrefcount, arrays)] for memory, arrays in self._kept]


def _allocate(shape: tuple[int, int]) -> tuple[NDArray[np.uint8], Arrays]:
    """One piece of memory, and the arrays of a batch laid out in it."""
    types: list[type[np.generic]] = [np.int64, np.int64, np.int32, np.int32, np.int8]
    size = shape[0] * shape[1]
    memory = np.empty(sum(np.dtype(t).itemsize for t in types) * size, np.uint8)
    arrays, at = [], 0
    for t in types:
        end = at + np.dtype(t).itemsize * size
        arrays.append(memory[at:end].view(t).reshape(shape))
        at = end
    return memory, Arrays._make(arrays)


def assemble(what: tuple[Sheet, NDArray[np.int64], Sources], widths: tuple[int, ...], out: Arrays) -> int:
    """Fill a batch with some rows of a sheet.

    Args:
        what: the sheet, int64[rows] the rows wanted, and where their tokens come from.
        widths: the token widths that the pools have, as indices into ``TOKEN_TYPES``.
        out: arrays of ``len(rows)`` rows.

    Returns:
        -1, or the slot of a part that has to be opened first; the arrays are then unfinished.
    """
    for width in widths:
        slot = int(_assemble(_MARKERS[width], width, what, out))
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


@intrinsic
def _pointer(_context: Any, _address: Any = None) -> Any:
    """An address as a pointer (an intrinsic: numba has no cast of its own)."""

    def generate(_inner: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.uint64), generate


@kernel
def _copy(source: Any, out: NDArray[np.int64]) -> None:
    """Widen tokens; both run from index 0, so that the loop becomes vector instructions."""
    for i in range(len(out)):
        out[i] = source[i]


@kernel
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


@kernel
def _number(positions: NDArray[np.int32], segments: NDArray[np.int32], first: int, segment: int) -> None:
    """Positions from ``first`` on and the segment's number, over one piece."""
    for i in range(len(positions)):
        positions[i] = first + i
    for i in range(len(segments)):
        segments[i] = segment


@kernel
def _first_id(tokens: Any, start: int, stop: int, flags: int, marks: tuple[int, int]) -> int:
    if flags & HAS_BOS:
        return marks[0]
    if start == stop and not flags & AHEAD:
        return marks[1]
    return np.int64(tokens[start])  # type: ignore[return-value]


@kernel
def _piece(
    tokens: Any,
    ids: NDArray[np.int64],
    labels: NDArray[np.int64],
    place: tuple[int, int, int, int, int, int, bool],
    rule: tuple[int, int, bool, bool, bool],
) -> tuple[int, bool]:
    """Write one piece at column ``col``; returns the next column, and whether a document ended there."""
    col, start, stop, fresh, flags, n, seam = place
    bos_id, eos_id, overlap_labels, inputs, cross = rule
    lead = IGNORED
    if seam and cross:
        first = _first_id(tokens, start, stop, flags, (bos_id, eos_id))
        if inputs:
            lead = first
        else:
            labels[col - 1] = first
    if flags & AHEAD:
        return col, False
    begin = col
    bos = flags & HAS_BOS > 0 and (overlap_labels or flags & OLD_BOS == 0)
    if flags & HAS_BOS:
        ids[col] = bos_id
        labels[col] = tokens[0] if bos and not inputs else IGNORED
        col += 1
    labelled = start if overlap_labels else fresh
    size = stop - start
    _fill(tokens, ids[col : col + size], labels[col : col + size], (start, stop, labelled, n), int(inputs))
    if inputs and bos and size > 0:
        labels[col] = tokens[0]
    last = stop == n and size > 0
    if last and labelled < stop and not inputs:
        labels[col + size - 1] = eos_id if flags & ENDS else IGNORED
    col += size
    if flags & HAS_EOS:
        ids[col] = eos_id
        labels[col] = eos_id if inputs and stop > labelled else IGNORED
        col += 1
        ended = overlap_labels or flags & OLD_EOS == 0
    else:
        ended = last and flags & ENDS == 0 and labelled < stop
    if lead != IGNORED:
        labels[begin] = lead
    return col, ended


@kernel
def _assemble(marker: Any, width: int, what: tuple[Sheet, NDArray[np.int64], Sources], out: Arrays) -> Any:
    """Fill the rows whose pools have tokens as wide as the marker's."""
    sheet, rows, sources = what
    for r in range(len(rows)):
        row = rows[r]
        pool = sheet.pool[row]
        if sources.width[pool] != width:
            continue
        rule = (
            sources.marks[pool, 0],
            sources.marks[pool, 1],
            sources.rules[pool, 0],
            sources.rules[pool, 1],
            sources.rules[pool, 2],
        )
        whole_row, go_on = sources.rules[pool, 3], sources.rules[pool, 4]
        ids, labels = out.input_ids[r], out.labels[r]
        positions, segments = out.position_ids[r], out.segment_ids[r]
        col = 0
        segment = 0
        seam = False
        for i in range(sheet.ends[row], sheet.ends[row + 1]):
            slot = sheet.slot[i]
            if sources.address[slot] == 0:
                return slot
            address = np.int64(sources.address[slot]) + sheet.base[i] * marker.itemsize
            tokens = carray(_pointer(np.uint64(address)), (sheet.tokens[i],), marker.dtype)
            place: Any = (
                col,
                sheet.start[i],
                sheet.stop[i],
                sheet.fresh[i],
                np.int64(sheet.flags[i]),
                sheet.tokens[i],
                seam,
            )
            after, seam = _piece(tokens, ids, labels, place, rule)
            _number(positions[col:after], segments[col:after], col if go_on else 0, segment)
            if not whole_row:
                segment += 1
            col = after
        out.attention_mask[r, :col] = 1
        out.attention_mask[r, col:] = 0
        ids[col:] = PADDING_ID
        labels[col:] = IGNORED
        positions[col:] = 0
        segments[col:] = -1
    return -1
