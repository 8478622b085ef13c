"""Windows that repeat what stands earlier in their document or group, left out when a block is opened.

What repeats, the pool knows (``Pool.repeats``). A window is left out if at least a certain part of its fresh
tokens does, unless it is the document's first one (its head, its title) or its last (its tail), or a section
begins in its fresh tokens. The fresh tokens of those left out are dropped as ``duplicate``; windows behind
them are what they would be. Like a density this is decided at a block's first opening, and never again.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.maths.kernels import kernel
from recipe.pools import Pool
from recipe.sequences.pieces import REASONS, Documents, Pieces, body_starts
from recipe.sequences.slicing import Sliced


def known_repeats(pool: Pool) -> NDArray[np.int64]:
    """int64[n, 2]: what repeats in a pool; see ``Pool.repeats``.

    Raises:
        RecipeError: nobody looked for it.
    """
    if pool.repeats is None:
        raise RecipeError.single(
            f"pool {pool.name}",
            f"pools.{pool.name}",
            given="a pool in which nobody looked for what repeats",
            expected="a pool with repeats.npy: windows that repeat others are left out (slicing.duplicates)",
            fix="prepare it with `recipe prepare --repeats 64`, or use duplicates: keep",
        )
    return pool.repeats


def without_duplicates(
    sliced: Sliced, pool: Pool, of: tuple[NDArray[np.int64], Documents], part: Fraction
) -> tuple[Sliced, int]:
    """Whole documents without the windows that repeat, and how many these were.

    Args:
        sliced: of the documents.
        pool: theirs.
        of: int64[n] their numbers in it, and their lengths and marks.
        part: of a window's fresh tokens that repeats at least; above 0.
    """
    numbers, measured = of
    starts = body_starts(pool, numbers, measured)
    gone = repeating(sliced.pieces, starts, (known_repeats(pool), pool.sections), part)
    lost = int((sliced.pieces.stop - sliced.pieces.fresh)[gone].sum())
    sliced.dropped[REASONS.index("duplicate")] = lost
    return sliced._replace(pieces=sliced.pieces.take(~gone)), int(gone.sum())


def repeating(
    pieces: Pieces,
    starts: NDArray[np.int64],
    known: tuple[NDArray[np.int64], NDArray[np.int64] | None],
    part: Fraction,
) -> NDArray[np.bool_]:
    """bool[num_pieces]: the windows that are left out.

    Args:
        pieces: of whole documents, in their order, rising in each.
        starts: int64[num_documents]: where their bodies begin.
        known: int64[n, 2] spans that repeat, and int64[m] where sections begin, both rising.
        part: of the fresh tokens of a window.

    >>> columns = [[0, 0, 0, 0], [0, 4, 8, 12], [4, 8, 12, 14], [0, 4, 8, 12], [0] * 4]
    >>> four = Pieces(*map(np.array, columns))
    >>> repeating(four, np.array([100]), (np.array([[103, 111]]), None), Fraction(3, 4)).tolist()
    [False, True, True, False]
    """
    (spans, sections), document = known, pieces.document
    gone = np.zeros(len(document), np.bool_)
    if not len(spans) or not len(document):
        return gone
    same = document[1:] == document[:-1]
    gone[1:-1] = same[:-1] & same[1:]
    inner = np.flatnonzero(gone)
    low, high = (starts[document[inner]] + edge[inner] for edge in (pieces.fresh, pieces.stop))
    sizes, which = np.unique(high - low, return_inverse=True)
    least = np.array([ceil(part * size) for size in sizes.tolist()], np.int64)[which]
    gone[inner] = _covered(low, high, spans) >= least
    if sections is not None and len(sections):
        gone[inner] &= np.searchsorted(sections, low) == np.searchsorted(sections, high)
    return gone


@kernel
def _covered(low: NDArray[np.int64], high: NDArray[np.int64], spans: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n]: tokens of each stretch ``[low, high)`` that lie in spans."""
    out = np.zeros(len(low), np.int64)
    for i in range(len(low)):
        at = np.searchsorted(spans[:, 1], low[i], side="right")
        while at < len(spans) and spans[at, 0] < high[i]:
            out[i] += min(high[i], spans[at, 1]) - max(low[i], spans[at, 0])
            at += 1
    return out
