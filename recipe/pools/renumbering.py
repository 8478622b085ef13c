"""A pool in which nothing is left of documents that were withdrawn: another pool, for new runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipe.pools.copied import write_copy
from recipe.pools.erasing import withdrawn_since
from recipe.pools.pool import Pool
from recipe.pools.reasons import WITHDRAWN


def copy_without(pool: Pool, numbers: NDArray[np.int64], out: Path, *, reason: str) -> Pool:
    """Write a pool without some documents, nor those that were erased before, and open it.

    The others move up: their numbers, their places in the order and the fingerprint are new ones.

    Args:
        pool: an own one.
        numbers: int64[n], rising.
        out: folder of the new one; nothing may be there.
        reason: why, for the card.

    Raises:
        RecipeError: as `recipe.pools.copying.copy_documents`.
    """
    gone = np.union1d(numbers, pool.erased)
    kept = np.ones(pool.num_numbers, np.bool_)
    kept[gone] = False
    said = withdrawn_since(pool, np.setdiff1d(numbers, pool.erased), reason)
    return write_copy(pool, kept, out, source={WITHDRAWN: said}, left_out={WITHDRAWN: len(gone)})
