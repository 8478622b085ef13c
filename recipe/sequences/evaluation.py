"""Windows for measuring and for generating: every token scored once, with the longest left context.

Training cuts documents so that tokens are *learned* once; here they are *scored* once. Window k stops
``stride`` tokens behind window k - 1 (the last one at the document's end) and reaches back as far as it may,
so that a token is scored in the first window that holds it, behind as many tokens as any window puts before
it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


def scored_windows(num_tokens: int, *, window: int, stride: int, offset: int = 0) -> NDArray[np.int64]:
    """Windows that score one document.

    The first one stops at ``offset``, or at ``window`` where that is 0; each further one ``stride`` tokens
    later, the last one at the document's end. All begin ``window`` tokens before they stop, or with
    the document. Tokens ``fresh..stop`` of a window are scored in it.

    Args:
        num_tokens: of the document.
        window: tokens in a window at most; at least 1.
        stride: tokens scored in a window, but the first and the last; in ``1..window``.
        offset: where the first window stops; in ``0..window - 1``.

    Returns:
        int64[num_windows, 3]: half-open ``start, stop`` and ``fresh``, in document tokens.

    Raises:
        ValueError: an argument is out of its range.

    Source:
        Strided evaluation as in the Transformers documentation, *Perplexity of fixed-length models*; the
        last window reaches back as far as the others.

    >>> scored_windows(10, window=4, stride=2).tolist()
    [[0, 4, 0], [2, 6, 4], [4, 8, 6], [6, 10, 8]]
    >>> scored_windows(9, window=4, stride=2, offset=3).tolist()
    [[0, 3, 0], [1, 5, 3], [3, 7, 5], [5, 9, 7]]
    """
    if num_tokens < 0 or window < 1 or not 1 <= stride <= window or not 0 <= offset < window:
        raise ValueError(
            f"num_tokens {num_tokens} >= 0, window {window} >= 1, stride {stride} in 1..window and "
            f"offset {offset} in 0..window - 1 do not all hold"
        )
    first = offset or window
    stops = np.minimum(first + stride * np.arange(count_windows(num_tokens, first, stride)), num_tokens)
    fresh = np.zeros_like(stops)
    fresh[1:] = stops[:-1]
    return np.stack([np.maximum(0, stops - window), stops, fresh], axis=1)


def count_windows(num_tokens: int, first: int, stride: int) -> int:
    """Windows of one document whose first window stops at ``first``, without iterating.

    >>> [count_windows(n, 4, 2) for n in (0, 1, 4, 5, 6, 7)]
    [0, 1, 1, 2, 2, 3]
    """
    return 0 if num_tokens == 0 else 1 + max(0, -(-(num_tokens - first) // stride))


class CachePlan(NamedTuple):
    """How a decoder with a key-value cache goes through a document; one entry a window.

    ``start``, ``stop``, ``fresh`` int64[n]: as :func:`scored_windows`. ``cached`` int64[n]: tokens
    ``start..fresh`` whose keys and values are still there: only ``fresh..stop`` are computed. ``offset``
    int64[n]: position of token ``fresh`` in the document: where positions go on while older tokens
    leave the cache. A model whose positions restart in each window gives that token position ``cached``, and
    must rotate cached keys by ``offset - cached`` positions, or compute them again.
    """

    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    fresh: NDArray[np.int64]
    cached: NDArray[np.int64]
    offset: NDArray[np.int64]


def cache_plan(num_tokens: int, *, window: int, stride: int, offset: int = 0) -> CachePlan:
    """Cached tokens and position offset of every window of one document.

    Exact for a model whose attention reaches back at most ``window - stride`` tokens. One that looks further
    back meets keys that were computed from tokens which have left the cache since: close to computing each
    window alone, not equal to it.

    Args:
        num_tokens: of the document.
        window: tokens that the cache holds at most, those being computed included.
        stride: tokens computed in a window.
        offset: tokens of the first window, if not ``window``; 1..window - 1, such as the length of a prompt.

    >>> plan = cache_plan(10, window=4, stride=2)
    >>> plan.cached.tolist(), plan.offset.tolist()
    ([0, 2, 2, 2], [0, 4, 6, 8])
    """
    start, stop, fresh = scored_windows(num_tokens, window=window, stride=stride, offset=offset).T
    return CachePlan(start, stop, fresh, fresh - start, fresh.copy())
