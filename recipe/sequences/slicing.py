"""Windows over documents: which tokens are cut at once, and which of them are new.

One rule for everything: a *run* is a stretch ``[a, b)`` of a document that is to be served. A
document read whole is the run ``[0, n)``; what a stage left unserved of a block is a list of runs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.maths.kernels import kernel

TAILS = ("keep", "backfill", "drop", "pad")
OVERSIZE = ("split", "truncate", "drop")
REASONS = ("tail", "short", "oversize")
"""Why tokens of a document are not served: position in a ``dropped`` vector."""

HAS_BOS, HAS_EOS, ENDS, ALONE = 1, 2, 4, 8
"""Flags of a piece: BOS has a position; EOS has a position; its last token's label is EOS; own row."""
AHEAD, OLD_BOS, OLD_EOS = 16, 32, 64
"""Flags of joined pieces: only read ahead, no position; BOS, EOS lies in the overlap."""
INFILLED = 128
"""Flag of a piece that is filled in the middle; its cut points take the bits from 8 to 58, see
:mod:`recipe.sequences.transform`."""
JOINED, CONTEXT, WRAPPED = 1 << 59, 1 << 60, 1 << 61
"""Flags of a piece: goes on in the segment of the piece before it in its row; brought in front as context,
all of it overlap and never labelled; marks stand round the window, not round the document."""


class Cutting(NamedTuple):
    """The numbers of a slicing rule, as the compiled loop takes them."""

    window: int
    stride: int
    context: int
    tail: int
    min_tail: int
    oversize: int


class Pieces(NamedTuple):
    """What windows cut, in reading order then start; one entry a piece.

    ``document`` is the index in the list of documents given; ``start``, ``stop`` and ``fresh`` are
    document tokens, half-open; ``flags`` is a union of the flags above, with the cut points of pieces
    that are filled in the middle.
    """

    document: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    fresh: NDArray[np.int64]
    flags: NDArray[np.int64]

    def take(self, order: NDArray[np.int64]) -> Pieces:
        """The same pieces in another order, or some of them."""
        document, start, stop, fresh, flags = self
        return Pieces(document[order], start[order], stop[order], fresh[order], flags[order])


class Documents(NamedTuple):
    """The documents of a block in reading order: body tokens, and whether marks are stored."""

    tokens: NDArray[np.int64]
    bos: NDArray[np.bool_]
    eos: NDArray[np.bool_]


def whole(documents: Documents) -> NDArray[np.int64]:
    """int64[n, 3]: every document that has tokens, as one run (document, 0, tokens)."""
    index = np.flatnonzero(documents.tokens)
    return np.stack([index, np.zeros_like(index), documents.tokens[index]], axis=1)


def slice_documents(documents: Documents, cutting: Cutting) -> tuple[Pieces, NDArray[np.int64]]:
    """Cut whole documents by a rule.

    Returns:
        the pieces, and int64[3]: tokens dropped by reason, in the order of ``REASONS``.

    >>> one = Documents(np.array([10]), np.array([False]), np.array([False]))
    >>> pieces, dropped = slice_documents(one, Cutting(4, 3, 4, tail=0, min_tail=1, oversize=0))
    >>> [(int(p.start), int(p.stop), int(p.fresh)) for p in map(Pieces._make, zip(*pieces))]
    [(0, 4, 0), (3, 7, 4), (6, 10, 7)]
    """
    return _slice(documents, whole(documents), cutting, False)


def slice_runs(documents: Documents, runs: NDArray[np.int64], cutting: Cutting) -> Pieces:
    """Cut what is left of documents by a new rule; their ends are kept, nothing is dropped.

    Args:
        documents: the documents of the block.
        runs: int64[n, 3]: (document, a, b), tokens ``[a, b)`` are still to be served.
        cutting: the new rule; its tail and oversize rules are not applied again.
    """
    kept = cutting._replace(tail=TAILS.index("keep"), oversize=OVERSIZE.index("split"))
    return _slice(documents, runs, kept, True)[0]


@kernel
def _first_cut(a: int, bos: bool, cutting: Cutting) -> int:
    if a > 0:
        return a + cutting.stride
    if bos and cutting.window == cutting.context:
        return cutting.window - 1
    return cutting.window


@kernel
def _count_upper(documents: Documents, runs: NDArray[np.int64], cutting: Cutting) -> int:
    total = 0
    for r in range(len(runs)):
        left = runs[r, 2] - _first_cut(runs[r, 1], documents.bos[runs[r, 0]], cutting)
        total += 1
        if left > 0:
            total += (left + cutting.stride - 1) // cutting.stride
    return total


@kernel
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


@kernel
def _marks(size: int, bos: bool, eos: bool, context: int) -> int:
    """Flags of the marks of a piece: ``bos`` and ``eos`` say that the document's are at its edges."""
    flags = 0
    if bos:
        flags |= HAS_BOS
        size += 1
    if eos:
        flags |= ENDS
        if size < context:
            flags |= HAS_EOS
    return flags


@kernel
def _slice(
    documents: Documents, runs: NDArray[np.int64], cutting: Cutting, again: bool
) -> tuple[Pieces, NDArray[np.int64]]:
    most = _count_upper(documents, runs, cutting)
    spans = np.empty((4, most), np.int64)
    flags = np.empty(most, np.int64)
    dropped = np.zeros(3, np.int64)
    k = 0
    for r in range(len(runs)):
        document, a, b = runs[r, 0], runs[r, 1], runs[r, 2]
        n = documents.tokens[document]
        first = _first_cut(a, documents.bos[document], cutting)
        if not again and n > first and cutting.oversize != 0:
            kept = first if cutting.oversize == 1 else 0
            dropped[2] += n - kept
            b = kept
        start = max(0, a - (cutting.window - cutting.stride)) if a > 0 else 0
        fresh, stop = a, min(first, b)
        while stop > fresh:
            full = first if fresh == 0 else cutting.window
            start, alone, gone = _end((start, stop, fresh), n, full, cutting)
            if gone:
                dropped[gone - 1] += stop - fresh
                break
            bos = fresh == 0 and documents.bos[document]
            eos = stop == n and documents.eos[document]
            spans[0, k], spans[1, k], spans[2, k], spans[3, k] = document, start, stop, fresh
            flags[k] = alone | _marks(stop - start, bos, eos, cutting.context)
            k += 1
            fresh = stop
            start = max(0, stop - (cutting.window - cutting.stride))
            stop = min(stop + cutting.stride, b)
    return Pieces(spans[0, :k], spans[1, :k], spans[2, :k], spans[3, :k], flags[:k]), dropped


def count_pieces(num_tokens: int, cutting: Cutting, *, bos: bool = False) -> int:
    """Pieces that one document gives, without iterating.

    >>> count_pieces(2048, Cutting(1024, 600, 1024, tail=0, min_tail=256, oversize=0))
    3
    >>> count_pieces(2048, Cutting(1024, 600, 1024, tail=TAILS.index("drop"), min_tail=256, oversize=0))
    2
    """
    first = cutting.window - (1 if bos and cutting.window == cutting.context else 0)
    tail = TAILS[cutting.tail]
    if num_tokens == 0:
        return 0
    if num_tokens <= first:
        return 0 if tail == "drop" and num_tokens < first else 1
    if cutting.oversize:
        return 1 if OVERSIZE[cutting.oversize] == "truncate" else 0
    more, left = divmod(num_tokens - first, cutting.stride)
    if left == 0:
        return 1 + more
    gone = tail == "drop" or (tail == "backfill" and left < cutting.min_tail)
    return 1 + more + (0 if gone else 1)


def unserved_runs(pieces: Pieces) -> NDArray[np.int64]:
    """Fresh spans of unserved pieces, merged per document into maximal runs.

    Args:
        pieces: unserved pieces in reading order, then start.

    Returns:
        int64[n, 3]: (document, a, b); spans without fresh tokens vanish.

    >>> p = Pieces(np.array([0, 0, 2]), np.array([0, 3, 4]), np.array([4, 7, 9]), np.array([0, 4, 5]),
    ...            np.zeros(3, np.int64))
    >>> unserved_runs(p).tolist()
    [[0, 0, 7], [2, 5, 9]]
    """
    new = np.flatnonzero(pieces.stop > pieces.fresh)
    if not len(new):
        return np.empty((0, 3), np.int64)
    document, a, b = pieces.document[new], pieces.fresh[new], pieces.stop[new]
    opens = np.ones(len(new), bool)
    opens[1:] = (document[1:] != document[:-1]) | (a[1:] != b[:-1])
    firsts = np.flatnonzero(opens)
    lasts = np.append(firsts[1:], len(new)) - 1
    return np.stack([document[firsts], a[firsts], b[lasts]], axis=1)
