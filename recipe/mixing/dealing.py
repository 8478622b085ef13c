"""Which rows of a global batch are a rank's: dealt as Megatron deals them."""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError


def dealt_rows(batch: int, rank: int, size: int, micro_batch: int | None = None) -> NDArray[np.int64]:
    """Rows of the global batch, in schedule order, that one data-parallel rank gets.

    With micro-batches, micro-batch j of rank r of W holds rows ``j·mb·W + r·mb ...``; without, a rank
    gets its contiguous part.

    Returns:
        int64[batch / size].

    Raises:
        ValueError: the rank is outside ``0..size-1``.
        RecipeError: the batch cannot be dealt evenly; names the sizes that can.

    >>> dealt_rows(8, 1, 2).tolist(), dealt_rows(8, 1, 2, micro_batch=2).tolist()
    ([4, 5, 6, 7], [2, 3, 6, 7])
    """
    if not 0 <= operator.index(rank) < operator.index(size):
        raise ValueError(f"dp_rank {rank} is outside 0..{size - 1}")
    check_dealing((batch,), size, micro_batch)
    if micro_batch is None:
        share = batch // size
        return np.arange(rank * share, (rank + 1) * share)
    firsts = np.arange(0, batch, micro_batch * size) + rank * micro_batch
    return (firsts[:, None] + np.arange(micro_batch)).reshape(-1)


def check_dealing(batches: tuple[int, ...], size: int, micro_batch: int | None = None) -> None:
    """Refuse a data-parallel size that does not divide every batch of the run.

    Raises:
        RecipeError: naming the sizes that do.
    """
    size = operator.index(size)
    each = 1 if micro_batch is None else operator.index(micro_batch)
    if size < 1 or each < 1:
        raise ValueError(f"dp_size {size} and micro_batch {micro_batch} must be at least 1")
    if all(batch % (size * each) == 0 for batch in batches):
        return
    smallest = min(batches)
    able = [w for w in range(1, smallest + 1) if all(batch % (w * each) == 0 for batch in batches)]
    given = f"{size} ranks" if micro_batch is None else f"{size} ranks x micro-batches of {micro_batch}"
    raise RecipeError.single(
        "stream",
        "dp_size",
        given=f"{given}, batches of {', '.join(map(str, sorted(set(batches))))} sequences",
        expected=f"a number of ranks in {able}" if able else "a micro-batch that divides every batch",
        fix="change the number of ranks, the micro-batch, or the recipe's batch",
    )
