"""Windows over documents: which tokens are cut at once, and which of them are new.

One rule for everything: a *run* is a stretch ``[a, b)`` of a document that is to be served. A
document read whole is the run ``[0, n)``; what a stage left unserved of a block is a list of runs.

What is decided when a block is opened for the first time, and never again for what is left of it:
**Offset.** A document longer than a window begins, with ``offset: random``, with a piece of its first o
tokens, o = draw 0 of (document, 0) modulo the stride (or what fits beside its
marks), of domain ``offset``; windows start from there, the
first without overlap. **Density.** Of a document longer than a window, a piece is kept iff draw 0 of
(document, fresh), of domain ``density``, falls below the density of the region in which its first fresh
token lies. Fresh tokens of the others are dropped as ``thinned``; windows after them are what they would be.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.maths.draws import below, draws
from recipe.sequences.pieces import (
    OVERSIZE,
    TAILS,
    Documents,
    Pieces,
    whole,
)
from recipe.sequences.windows import HEAD, REGION_WINDOWS, TAIL, Cutting, Reading, cut_runs, regions


def cutting_of(rule: Rule) -> Cutting:
    """The numbers of a rule."""
    strides = rule.strides or (0, rule.stride, 0)
    return Cutting(
        rule.window,
        rule.stride,
        rule.room,
        TAILS.index(rule.tail),
        rule.min_tail,
        OVERSIZE.index(rule.oversize),
        strides[HEAD],
        strides[TAIL],
        rule.specials == "window",
        rule.align_within,
    )


class Sliced(NamedTuple):
    """Pieces, and what became of the rest.

    ``dropped`` int64[5]: tokens by reason, in the order of ``REASONS``; ``aligned`` int64[3]: cuts moved
    back, cuts that stayed although nothing permits them, starts moved; ``looked``: requests and bytes that
    it took to look at texts in a store.
    """

    pieces: Pieces
    dropped: NDArray[np.int64]
    aligned: NDArray[np.int64]
    looked: tuple[int, int] = (0, 0)


def slice_documents(
    documents: Documents,
    cutting: Cutting,
    heads: NDArray[np.int64] | None = None,
    reading: Reading | None = None,
    runs: NDArray[np.int64] | None = None,
) -> Sliced:
    """Cut whole documents by a rule.

    Args:
        documents: in reading order.
        cutting: the rule.
        heads: int64[num_documents]: tokens before the first window; default: none.
        reading: of a rule that aligns cuts: the tokens near them.
        runs: of :func:`whole`, those to cut; default: all.

    >>> one = Documents(np.array([10]), np.array([False]), np.array([False]))
    >>> pieces = slice_documents(one, Cutting(4, 3, 4, tail=0, min_tail=1, oversize=0)).pieces
    >>> [(int(p.start), int(p.stop), int(p.fresh)) for p in map(Pieces._make, zip(*pieces))]
    [(0, 4, 0), (3, 7, 4), (6, 10, 7)]
    """
    given = np.zeros(len(documents.tokens), np.int64) if heads is None else heads
    wanted = whole(documents) if runs is None else runs
    return Sliced(*cut_runs(documents, wanted, given, cutting, reading))


def slice_runs(
    documents: Documents, runs: NDArray[np.int64], cutting: Cutting, reading: Reading | None = None
) -> Sliced:
    """Cut what is left of documents by a new rule; their ends are kept, nothing is dropped.

    Args:
        documents: the documents of the block.
        runs: int64[n, 3]: (document, a, b), tokens ``[a, b)`` are still to be served.
        cutting: the new rule; its tail and oversize rules are not applied again.
        reading: as of :func:`slice_documents`.
    """
    kept = cutting._replace(tail=TAILS.index("keep"), oversize=OVERSIZE.index("split"))
    return Sliced(*cut_runs(documents, runs, np.zeros(len(documents.tokens), np.int64), kept, reading))


def heads_of(
    documents: Documents, numbers: NDArray[np.int64], cutting: Cutting, order_key: int
) -> NDArray[np.int64]:
    """int64[n]: the random offset of every document: 0 where one window holds it, or it is not split.

    Args:
        documents: their lengths and marks.
        numbers: int64[n]: their numbers in the pool.
        cutting: the rule.
        order_key: of domain ``offset``, the pool and the epoch.
    """
    drawn = draws(order_key, (numbers, np.zeros_like(numbers)), 1)[0]
    stride = cutting.head_stride or cutting.stride
    most = np.minimum(stride, cutting.context + 1 - documents.fronts).astype(np.uint64)
    heads = (drawn % most).astype(np.int64)
    return np.where(_is_long(documents, cutting) & (cutting.oversize == 0), heads, 0)


def thinned(
    pieces: Pieces,
    of: tuple[Documents, NDArray[np.int64]],
    rule: tuple[Cutting, tuple[Fraction, Fraction, Fraction]],
    order_key: int,
) -> tuple[Pieces, int]:
    """The pieces that a density per region keeps, and the fresh tokens of the others.

    Args:
        pieces: of whole documents.
        of: the documents, and int64[n] their numbers in the pool.
        rule: how they were cut, and the shares of pieces that are kept in head, middle and tail.
        order_key: of domain ``density``, the pool and the epoch.
    """
    (documents, numbers), (cutting, densities) = of, rule
    drawn = draws(order_key, (numbers[pieces.document], pieces.fresh), 1)[0]
    region = regions(pieces, documents.tokens, cutting.window)
    kept = ~_is_long(documents, cutting)[pieces.document]
    for number, density in enumerate(densities):
        kept |= (region == number) & below(drawn, density)
    return pieces.take(kept), int((pieces.stop - pieces.fresh)[~kept].sum())


def _is_long(documents: Documents, cutting: Cutting) -> NDArray[np.bool_]:
    """bool[n]: whether a document is longer than a window (its first one)."""
    first = np.minimum(cutting.window, cutting.context - documents.fronts)
    longer: NDArray[np.bool_] = documents.tokens > first
    return longer


class _Stretch(NamedTuple):
    """Cuts of one stride: from a cut on, while they lie before ``end``."""

    end: int
    stride: int


def count_pieces(
    num_tokens: int, cutting: Cutting, *, bos: bool = False, head: int = 0, lead: int = 0
) -> int:
    """Pieces that one document gives, without iterating; of a rule that aligns nothing.

    Args:
        num_tokens: of the document.
        cutting: the rule.
        bos: whether the document has a begin mark.
        head: tokens before the first window (random offset).
        lead: special tokens in front of the document, where there are more than a mark.

    >>> count_pieces(2048, Cutting(1024, 600, 1024, tail=0, min_tail=256, oversize=0))
    3
    >>> count_pieces(2048, Cutting(1024, 600, 1024, tail=TAILS.index("drop"), min_tail=256, oversize=0))
    2
    """
    first = min(cutting.window, cutting.context - max(lead, int(bos)))
    tail = TAILS[cutting.tail]
    if num_tokens == 0:
        return 0
    if num_tokens <= first:
        return 0 if tail == "drop" and num_tokens < first else 1
    if cutting.oversize:
        return 1 if OVERSIZE[cutting.oversize] == "truncate" else 0
    pieces, cut, last = 1, first, first
    if head:
        pieces, cut, last = 2, min(head + cutting.window, num_tokens), cutting.window
    fresh = num_tokens - head if head and cut == num_tokens else 0
    for end, stride in _stretches(num_tokens, cutting):
        steps = max(0, -(-(end - cut) // stride))
        if steps:
            pieces, last = pieces + steps, stride
            fresh = min(num_tokens, cut + steps * stride) - cut - (steps - 1) * stride
            cut += steps * stride
    is_whole = not fresh or fresh == last
    gone = not is_whole and (tail == "drop" or (tail == "backfill" and fresh < cutting.min_tail))
    return pieces - gone


def _stretches(num_tokens: int, cutting: Cutting) -> list[_Stretch]:
    """Where in a document which stride holds."""
    if not cutting.head_stride:
        return [_Stretch(num_tokens, cutting.stride)]
    reach = REGION_WINDOWS * cutting.window
    head = min(reach, -(-num_tokens // 2))
    middle = max(head, num_tokens - reach)
    strides = (cutting.head_stride, cutting.stride, cutting.tail_stride)
    return [_Stretch(*both) for both in zip((head, middle, num_tokens), strides, strict=True)]
