"""Fill in the middle: pieces cut in three by keyed draws, their middle put last.

A piece ``[start, stop)`` without overlap (``fresh == start``) is transformed iff draw 0 of (document, start)
falls below the rate; draw 1 below ``spm`` makes it SPM; draws 2 and 3, each modulo ``stop - start + 1``, are
the two cut points ``a <= b``, relative to ``start``. The key is that of domain ``transform``, pool and epoch.
In a row it stands as::

    [BOS] prefix-marker [start, a) suffix-marker [b, stop) middle-marker [a, b) [EOS]         PSM
    [BOS] prefix-marker suffix-marker [b, stop) middle-marker [start, b) [EOS]                SPM

**Labels.** Inside, every position carries the next id of this order as its label: markers are predicted too.
Two positions differ. The one before token ``start`` carries none if ``start > 0``: no piece predicts its own
first token, the piece before it reads it ahead. The last position carries EOS where the document ends, else
none: after a middle nothing is read ahead. So **token j >= 1 of a document is a label exactly once iff token
j - 1 was served fresh and no transformed piece ends at j**; token 0 is one iff BOS or a marker precedes it.

Which pieces there are, and where EOS has a position, is decided before: as if the context were three
positions shorter. Pieces with overlap are left alone.

Source:
    M. Bavarian et al., *Efficient training of language models to fill in the middle*, 2022; uniform cut
    points as there, on tokens. SPM is their variant 2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.config.transform import MARKERS, FimConfig
from recipe.maths.draws import below, draws
from recipe.sequences.pieces import HAS_BOS, HAS_EOS, INFILLED, Pieces

SPM = 1 << 8
"""Flag of a transformed piece: its suffix comes before its prefix."""
FIRST_CUT, SECOND_CUT, CUT_MASK = 9, 34, (1 << 25) - 1
"""Where in the flags of a transformed piece its cut points are, relative to its start; bits of each."""


class Segment(NamedTuple):
    """Document tokens ``start..stop`` that lie together, ``offset`` positions behind a piece's first one
    (BOS apart)."""

    start: int
    stop: int
    offset: int


def infilled(pieces: Pieces, fim: FimConfig, documents: NDArray[np.int64], order_key: int) -> Pieces:
    """The same pieces, those transformed marked with their cut points.

    Args:
        pieces: as they were cut.
        fim: the transform.
        documents: the pool's numbers of the documents that pieces index.
        order_key: of domain ``transform``, the pool and the epoch.

    Returns:
        the pieces, with the flags ``INFILLED``, ``SPM`` and their cut points where they are transformed.
    """
    size = pieces.stop - pieces.start
    drawn = draws(order_key, (documents[pieces.document], pieces.start), 4)
    chosen = (pieces.fresh == pieces.start) & (size > 0) & below(drawn[0], fim.rate)
    cuts = (drawn[2:] % (size + 1).astype(np.uint64)).astype(np.int64)
    layout = INFILLED | np.where(below(drawn[1], fim.spm), SPM, 0)
    layout |= cuts.min(axis=0) << FIRST_CUT | cuts.max(axis=0) << SECOND_CUT
    return pieces._replace(flags=pieces.flags | np.where(chosen, layout, 0))


def positions_of(pieces: Pieces) -> NDArray[np.int64]:
    """int64[n]: positions that each piece takes with its marks and markers; read ahead ones apart."""
    marks = ((pieces.flags & HAS_BOS) > 0).astype(np.int64) + ((pieces.flags & HAS_EOS) > 0)
    return pieces.stop - pieces.start + marks + MARKERS * ((pieces.flags & INFILLED) > 0)


def cuts_of(start: int, flags: int) -> tuple[int, int]:
    """Document tokens at which a transformed piece is cut.

    >>> cuts_of(10, INFILLED | 2 << FIRST_CUT | 5 << SECOND_CUT)
    (12, 15)
    """
    return start + (flags >> FIRST_CUT & CUT_MASK), start + (flags >> SECOND_CUT & CUT_MASK)


def segments_of(start: int, stop: int, flags: int) -> list[Segment]:
    """Where the tokens of a piece stand, from left to right; segments without tokens are left out.

    >>> segments_of(10, 20, INFILLED | 2 << FIRST_CUT | 5 << SECOND_CUT)
    [Segment(start=10, stop=12, offset=1), Segment(start=15, stop=20, offset=4), \
Segment(start=12, stop=15, offset=10)]
    >>> segments_of(3, 9, 0)
    [Segment(start=3, stop=9, offset=0)]
    """
    if not flags & INFILLED:
        return [Segment(start, stop, 0)] if stop > start else []
    a, b = cuts_of(start, flags)
    if flags & SPM:
        last = 3 + stop - b
        found = [Segment(b, stop, 2), Segment(start, a, last), Segment(a, b, last + a - start)]
    else:
        found = [
            Segment(start, a, 1),
            Segment(b, stop, 2 + a - start),
            Segment(a, b, 3 + a - start + stop - b),
        ]
    return [segment for segment in found if segment.stop > segment.start]
