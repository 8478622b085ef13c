"""Sets of tokens of documents as spans: union, difference, size."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Spans = NDArray[np.int64]
"""int64[n, 3]: (document, start, stop), half-open, in body tokens of the document."""
NOTHING: Spans = np.empty((0, 3), np.int64)


def union(*parts: Spans) -> Spans:
    """The tokens that lie in any of the spans, as maximal spans by document and start.

    >>> union(np.array([[5, 0, 4], [2, 9, 9]]), np.array([[5, 3, 6], [5, 6, 7]])).tolist()
    [[5, 0, 7]]
    """
    return _where(np.concatenate([NOTHING, *parts]), NOTHING)


def without(spans: Spans, others: Spans) -> Spans:
    """The tokens of some spans that lie in no others.

    >>> without(np.array([[1, 0, 10]]), np.array([[1, 2, 3], [1, 8, 12], [0, 0, 9]])).tolist()
    [[1, 0, 2], [1, 3, 8]]
    """
    return _where(spans, others)


def sizes(spans: Spans) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The documents of spans that do not overlap, and their tokens in them.

    >>> [part.tolist() for part in sizes(np.array([[3, 0, 4], [3, 6, 8], [9, 0, 1]]))]
    [[3, 9], [6, 1]]
    """
    documents, place = np.unique(spans[:, 0], return_inverse=True)
    tokens = np.bincount(place, spans[:, 2] - spans[:, 1], len(documents))
    return documents, tokens.astype(np.int64)


def _where(spans: Spans, others: Spans) -> Spans:
    """Where at least one of ``spans`` is open and none of ``others``."""
    both = np.concatenate([spans, others])
    if not len(both):
        return NOTHING
    # one line for all documents, with room between them
    documents, place = np.unique(both[:, 0], return_inverse=True)
    width = int(both[:, 2].max()) + 1
    begins, ends = place * width + both[:, 1], place * width + both[:, 2]
    edges = np.concatenate([begins, ends])
    is_other = np.tile(np.arange(len(both)) >= len(spans), 2)
    step = np.repeat([1, -1], len(both))
    order = np.argsort(edges, kind="stable")
    at, first = np.unique(edges[order], return_index=True)
    upto = np.append(first[1:], len(order)) - 1
    is_open = np.cumsum(np.where(is_other, 0, step)[order])[upto] > 0
    is_shut = np.cumsum(np.where(is_other, step, 0)[order])[upto] > 0
    bounds = at[np.flatnonzero(np.diff((is_open & ~is_shut).astype(np.int8), prepend=0))].reshape(-1, 2)
    which = bounds[:, 0] // width
    return np.column_stack([documents[which], bounds - (which * width)[:, None]])
