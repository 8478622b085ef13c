"""Rows of pieces: in the order in which they are served, and what each of them holds, counted."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.maths.kernels import inlined, kernel
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
    Documents,
    Pieces,
)

KINDS = ("body", "overlap", "special", "labels", "documents", "separators")
"""What is counted of a sequence: columns of ``Block.counts``; documents are those begun, separators the
stored end marks that were left out of it."""


class Rows(NamedTuple):
    """Pieces arranged in rows: row r holds entries ``ends[r]..ends[r + 1]`` of ``pieces``."""

    pieces: Pieces
    ends: NDArray[np.int64]


@kernel
def in_rows(
    row_of_piece: NDArray[np.int64], served: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Order of the pieces by served row, then as given; and where each row ends."""
    place = np.empty(len(served), np.int64)
    for q in range(len(served)):
        place[served[q]] = q
    ends = np.zeros(len(served) + 1, np.int64)
    for row in row_of_piece:
        ends[place[row] + 1] += 1
    for q in range(len(served)):
        ends[q + 1] += ends[q]
    fill = ends[:-1].copy()
    order = np.empty(len(row_of_piece), np.int64)
    for i in range(len(row_of_piece)):
        q = place[row_of_piece[i]]
        order[fill[q]] = i
        fill[q] += 1
    return order, ends


def count_rows(rows: Rows, measured: Documents, rule: Rule) -> NDArray[np.int64]:
    """int64[num_rows + 1, len(KINDS)]: running totals before each row."""
    return _totals(rows, measured.tokens, (rule.overlap_labels, rule.labels == "inputs", rule.cross_labels))


@kernel
def _totals(rows: Rows, tokens: NDArray[np.int64], rule: tuple[bool, bool, bool]) -> NDArray[np.int64]:
    """Running totals of KINDS before each row; ``rule``: overlap labels, labels are inputs, cross labels."""
    overlap_labels, inputs, cross = rule
    pieces = rows.pieces
    num_rows = len(rows.ends) - 1
    out = np.zeros((num_rows + 1, 6), np.int64)
    for q in range(num_rows):
        for kind in range(6):
            out[q + 1, kind] = out[q, kind]
        seam = led = False
        for i in range(rows.ends[q], rows.ends[q + 1]):
            start, stop, fresh, flags = pieces.start[i], pieces.stop[i], pieces.fresh[i], pieces.flags[i]
            last = stop == tokens[pieces.document[i]] and stop > start
            if led:
                out[q + 1, 3] += int(inputs)
            elif seam and cross and not (flags & CONTEXT or (inputs and flags & AHEAD)):
                out[q + 1, 3] += 1
            led = False
            if flags & AHEAD:
                continue
            if flags & MARKER:
                led = stop == 0 and (overlap_labels or flags & OLD_BOS == 0)
                out[q + 1, 2] += stop - start
                out[q + 1, 3] += int(led and not inputs)
                seam = False
                continue
            out[q + 1, 5] += int(flags & OLD_EOS > 0 and flags & HAS_EOS == 0)
            if flags & INFILLED:
                _count_infilled(out[q + 1], (start, stop, flags), inputs)
                seam = False
                continue
            if overlap_labels:
                flags = flags & ~(OLD_BOS | OLD_EOS)
            out[q + 1, 0] += stop - start
            out[q + 1, 1] += fresh - start
            out[q + 1, 2] += int(flags & HAS_BOS > 0) + int(flags & HAS_EOS > 0)
            labelled = start if overlap_labels and not flags & CONTEXT else fresh
            out[q + 1, 3] += _labels(start, stop, labelled, (flags, last, inputs))
            out[q + 1, 4] += int(fresh == 0 and stop > 0)
            seam = _ends(flags, last, labelled < stop)
    return out


@inlined
def _ends(flags: int, last: bool, is_labelled: bool) -> bool:
    """Whether a document ends with a piece for the first time."""
    if flags & HAS_EOS:
        return flags & OLD_EOS == 0 and (last or not flags & WRAPPED)
    return last and flags & ENDS == 0 and is_labelled


@inlined
def _count_infilled(out: NDArray[np.int64], piece: tuple[int, int, int], inputs: bool) -> None:
    """Add a piece that is filled in the middle."""
    start, stop, flags = piece
    marks = int(flags & HAS_BOS > 0) + int(flags & HAS_EOS > 0)
    out[0] += stop - start
    out[2] += marks + 3
    out[3] += stop - start + marks + 2 - int(start > 0 and not flags & WRAPPED)
    if flags & ENDS and not flags & HAS_EOS and not inputs:
        out[3] += 1
    out[4] += int(start == 0)


@kernel
def _labels(start: int, stop: int, labelled: int, state: tuple[int, bool, bool]) -> int:
    """Labels of one piece; ``state``: flags, holds the document's last token, labels are inputs."""
    flags, last, inputs = state
    if flags & WRAPPED:
        return stop - labelled + 1
    bos = flags & HAS_BOS > 0 and flags & OLD_BOS == 0
    if inputs:
        labels = max(0, stop - labelled - 1)
        if bos and stop > start:
            labels += 1
        if flags & HAS_EOS and stop > labelled:
            labels += 1
        return labels
    labels = stop - labelled
    if labels > 0 and last and flags & ENDS == 0:
        labels -= 1
    return labels + int(bos)
