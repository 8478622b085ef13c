"""Documents as lengths, and the pieces that windows cut from them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools import Pool

TAILS = ("keep", "backfill", "drop", "pad")
OVERSIZE = ("split", "truncate", "drop")
REASONS = ("tail", "short", "oversize", "thinned", "duplicate")
"""Why tokens of a document are not served: position in a ``dropped`` vector."""

HAS_BOS, HAS_EOS, ENDS, ALONE = 1, 2, 4, 8
"""Flags of a piece: BOS has a position; EOS has a position; its last token's label is EOS; own row."""
AHEAD, OLD_BOS, OLD_EOS = 16, 32, 64
"""Flags of joined pieces: only read ahead, no position; BOS, EOS lies in the overlap."""
INFILLED = 128
"""Flag of a piece that is filled in the middle; its cut points take the bits from 8 to 58, see
:mod:`recipe.sequences.transform`."""
JOINED, CONTEXT, WRAPPED, MARKER = 1 << 59, 1 << 60, 1 << 61, 1 << 62
"""Flags of a piece: goes on in the segment of the piece before it in its row; brought in front as context,
all of it overlap and never labelled; marks stand round the window, not round the document; special tokens
stored in front of the body, whose places are below 0."""


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

    def take(self, order: NDArray[np.int64] | NDArray[np.bool_]) -> Pieces:
        """The same pieces in another order, or some of them."""
        document, start, stop, fresh, flags = self
        return Pieces(document[order], start[order], stop[order], fresh[order], flags[order])


_NO_LEADS = np.empty(0, np.int64)


class Documents(NamedTuple):
    """The documents of a block in reading order: body tokens, and whether marks are stored.

    ``leads`` int64[n]: special tokens in front of the body, BOS among them, of those that have more than a
    BOS there, 0 of others, and ``bos`` is then False; empty where no document has any.
    """

    tokens: NDArray[np.int64]
    bos: NDArray[np.bool_]
    eos: NDArray[np.bool_]
    leads: NDArray[np.int64] = _NO_LEADS

    @property
    def fronts(self) -> NDArray[np.int64]:
        """int64[n]: stored tokens in front of the body."""
        bos = self.bos.astype(np.int64)
        return np.maximum(self.leads, bos) if len(self.leads) else bos


def measure(pool: Pool, documents: NDArray[np.int64]) -> Documents:
    """Body tokens of documents, and which marks are stored with them.

    Raises:
        RecipeError: a length below zero or above the pool's tokens: its boundaries are damaged.
    """
    bos, eos = pool.stored_marks(documents)
    stored = np.asarray(pool.offsets[documents + 1]) - np.asarray(pool.offsets[documents])
    if pool.leads is None:
        measured = Documents(stored - bos - eos, bos, eos)
    else:
        fronts = pool.fronts(documents)
        is_mark = bos & (fronts == 1)
        measured = Documents(stored - fronts - eos, is_mark, eos, np.where(is_mark, 0, fronts))
    tokens = measured.tokens
    if len(tokens) and (tokens.min() < 0 or stored.max() > pool.num_tokens):
        worst = int(np.argmax(np.where(tokens < 0, pool.num_tokens + 1, stored)))
        raise RecipeError.single(
            f"pool {pool.name}",
            str(pool.path),
            given=f"document {int(documents[worst])} of {int(stored[worst])} stored tokens",
            expected=f"lengths in 0..{pool.num_tokens}: the pool's boundaries are damaged",
            fix="copy the pool again from where it is whole; `recipe audit --full` compares its files",
        )
    return measured


def body_starts(pool: Pool, numbers: NDArray[np.int64], measured: Documents) -> NDArray[np.int64]:
    """int64[n]: where bodies begin, behind what stands in front of them, in stored tokens of the whole pool.

    Args:
        pool: that stores the documents.
        numbers: int64[n], theirs.
        measured: their lengths and marks.
    """
    return np.asarray(pool.offsets[numbers]) + measured.fronts


def whole(documents: Documents) -> NDArray[np.int64]:
    """int64[n, 3]: every document that has tokens, as one run (document, 0, tokens)."""
    index = np.flatnonzero(documents.tokens)
    return np.stack([index, np.zeros_like(index), documents.tokens[index]], axis=1)


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
