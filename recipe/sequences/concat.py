"""Documents joined and cut: the flat stream of a block, one example every stride."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.maths.kernels import inlined, kernel
from recipe.sequences.pieces import AHEAD, ENDS, HAS_BOS, HAS_EOS, OLD_BOS, OLD_EOS, Documents, Pieces


def count_examples(num_ids: int, context: int, stride: int) -> int:
    """Whole examples of a flat stream; each reads ``context + 1`` ids.

    >>> [count_examples(n, 4, 4) for n in (4, 5, 8, 9)]
    [0, 1, 1, 2]
    """
    return max(0, 1 + (num_ids - (context + 1)) // stride)


class Joining(NamedTuple):
    """The numbers of a concatenating rule, as the compiled loop takes them."""

    context: int
    stride: int
    keep: bool
    """Add one last short row for what no whole example holds."""
    ahead: bool
    """Also name the id after a row that ends with a document (labels across documents)."""


def join_runs(
    documents: Documents,
    runs: NDArray[np.int64],
    joining: Joining,
    kept: NDArray[np.bool_] | None = None,
) -> tuple[Pieces, NDArray[np.int64], int]:
    """Join runs with their stored marks and cut the stream every stride.

    Args:
        documents: the documents of the block, in reading order.
        runs: int64[n, 3]: (document, a, b), in the order in which they are joined.
        joining: context, stride, and what becomes of the last short row.
        kept: bool[num_documents]: whose stored end marks are in the stream; default: all.

    Returns:
        pieces in stream order, special tokens in front of a document at places below 0; int64[num_pieces]
        row of each; body tokens that no row holds.
    """
    kept = documents.eos if kept is None else documents.eos & kept
    begins, front = runs[:, 1] == 0, documents.bos[runs[:, 0]].astype(np.int64)
    bos = np.where(begins, front, 0)
    eos = (runs[:, 2] == documents.tokens[runs[:, 0]]) & kept[runs[:, 0]]
    if len(documents.leads):
        runs = runs.copy()
        runs[begins, 1] = -documents.leads[runs[begins, 0]]
    body = runs[:, 2] - runs[:, 1]
    text = bos + np.where(begins, -runs[:, 1], 0)
    at = np.concatenate([[0], np.cumsum(body + bos + eos)]).astype(np.int64)
    num_ids = int(at[-1])
    num_rows = count_examples(num_ids, joining.context, joining.stride)
    end = (num_rows - 1) * joining.stride + joining.context if num_rows else 0
    left = int(np.clip(at[:-1] + bos + body - np.maximum(end, at[:-1] + text), 0, None).sum())
    if left and joining.keep:
        num_rows, left = num_rows + 1, 0
    pieces, rows = _join(documents, runs, (at, kept), num_rows, joining)
    return pieces, rows, left


@inlined
def _end_flags(holds_last: bool, kept: bool, is_there: bool, is_new: bool) -> int:
    """Flags of the end mark of a piece's document: its label, its position, or that it is left out."""
    flags = ENDS if holds_last else 0
    if not kept:
        return flags | (OLD_EOS if holds_last else 0)
    if is_there:
        flags |= HAS_EOS if is_new else HAS_EOS | OLD_EOS
    return flags


@kernel
def _join(
    documents: Documents,
    runs: NDArray[np.int64],
    stream: tuple[NDArray[np.int64], NDArray[np.bool_]],
    num_rows: int,
    joining: Joining,
) -> tuple[Pieces, NDArray[np.int64]]:
    (at, kept), context, stride = stream, joining.context, joining.stride
    overlapped = (context + stride - 1) // stride
    most = num_rows * 3 + (len(runs) + num_rows) * overlapped
    out = Pieces(
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
        np.empty(most, np.int64),
    )
    rows = np.empty(most, np.int64)
    k = 0
    first = 0
    for row in range(num_rows):
        low = row * stride
        high = min(low + context, at[-1])
        new = low if row == 0 else low - stride + context
        while at[first + 1] <= low:
            first += 1
        r = first
        while r < len(runs) and at[r] < high:
            document, a, b = runs[r, 0], runs[r, 1], runs[r, 2]
            n = documents.tokens[document]
            flags = 0
            begin = at[r]
            if a == 0 and documents.bos[document]:
                if low <= begin:
                    flags |= HAS_BOS if begin >= new else HAS_BOS | OLD_BOS
                begin += 1
            start = a + min(max(low - begin, 0), b - a)
            stop = a + min(max(high - begin, 0), b - a)
            if b == n and documents.eos[document]:
                flags |= _end_flags(stop == n, kept[document], at[r + 1] <= high, at[r + 1] > new)
            out.document[k], out.start[k], out.stop[k] = document, start, stop
            out.fresh[k] = min(max(a + new - begin, start), stop)
            out.flags[k] = flags
            rows[k] = row
            k += 1
            r += 1
        if joining.ahead and r < len(runs) and at[r] == high:
            out.document[k] = runs[r, 0]
            out.start[k] = runs[r, 1]
            out.stop[k] = runs[r, 1]
            out.fresh[k] = runs[r, 1]
            begins = runs[r, 1] == 0 and documents.bos[runs[r, 0]]
            out.flags[k] = AHEAD | HAS_BOS if begins else AHEAD
            rows[k] = row
            k += 1
    held = Pieces(out.document[:k], out.start[:k], out.stop[:k], out.fresh[:k], out.flags[:k])
    return held, rows[:k]
