"""Marks among stored tokens: which documents begin with BOS and which end with EOS."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recipe.pools.stored_tokens import StoredTokens


def marks_at_ends(
    tokens: StoredTokens, starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which of the stored documents ``[start, stop)`` begin with BOS and which end with EOS.

    Each is looked at. A document of a single token that is both marks is an EOS.
    """
    has_eos = _is_mark(tokens, tokens.layout.eos, stops - 1, stops > starts)
    has_bos = _is_mark(tokens, tokens.layout.bos, starts, stops - has_eos > starts)
    return has_bos, has_eos


def _is_mark(
    tokens: StoredTokens, mark: int | None, positions: NDArray[np.int64], valid: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    found = np.zeros(len(positions), dtype=np.bool_)
    if mark is not None:
        found[valid] = tokens.gather(positions[valid]) == mark
    return found
