"""Rows of a batch: tokens copied once, from mapped files straight into the arrays a trainer takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.maths.kernels import imported, inlined, kernel
from recipe.sequences.page import IGNORED, PADDING_ID, Page
from recipe.sequences.piece_writing import write_piece, write_places
from recipe.sequences.pieces import CONTEXT, JOINED
from recipe.sequences.sheet import (
    BASE,
    BOS,
    CROSS_LABELS,
    EOS,
    FLAGS,
    FRESH,
    GO_ON,
    INPUTS,
    MULTIPLE,
    OVERLAP_LABELS,
    SLOT,
    START,
    STOP,
    TOKEN_TYPES,
    TOKENS,
    WHOLE_ROW,
    WIDTH,
    Sheet,
    Sources,
)

AHEAD_BYTES = 1 << 14
"""How much of the next piece is fetched while one is copied."""

_fetch = imported("recipe.sequences.intrinsics", "fetch")

_MARKERS = tuple(np.empty(0, name) for name in TOKEN_TYPES)
"""One empty array a width: the copying loop is compiled for those in use."""


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
            after, ended, led = write_piece(marker, first, (ids, labels), place, (led, rule, of))
            write_places(
                positions[col:after], segments[col:after], col if of[GO_ON] else col - begin, segment
            )
            col = after
            if of[MULTIPLE] > 1 and after % of[MULTIPLE] > 0 and _closes(pieces, i + 1, ends[row + 1]):
                col = after + of[MULTIPLE] - after % of[MULTIPLE]
                write_places(positions[after:col], segments[after:col], positions[after - 1] + 1, -1)
                ids[after:col] = PADDING_ID
                labels[after:col] = IGNORED
        _pad(col, (ids, labels, positions, segments, mask[r]))
        if of[MULTIPLE] > 1:
            for i in range(col):
                mask[r, i] = segments[i] >= 0
    return -1


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
