"""A sheet: pieces of sequences ready to be copied, and the token files that they are copied from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

TOKEN_TYPES = ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32")
"""Token widths that can be read."""

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
