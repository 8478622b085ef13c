"""A context-parallel rank's share of packed rows: two chunks of every document, balanced zigzag."""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import NDArray


def cp_slices(cu_seqlens_padded: NDArray[np.integer], cp_rank: int, cp_size: int) -> NDArray[np.int64]:
    """Positions of the flattened rows that one context-parallel rank holds.

    Every segment is cut into ``2 * cp_size`` equal chunks, of which rank r has the r-th and the r-th from
    the end: under a causal mask each rank then has as much to do, and no chunk holds two documents.

    Args:
        cu_seqlens_padded: int[num_segments + 1], as a batch has it; for whole rows as one, ``[0, context,
            2 * context, ...]``.
        cp_rank: in ``0..cp_size - 1``.
        cp_size: 1 gives every position.

    Returns:
        int64[positions / cp_size], rising: ``array.reshape(-1)[slices]`` of every array of the batch.

    Raises:
        ValueError: no such rank; a segment that ``2 * cp_size`` does not divide.

    Source:
        Megatron-core ``get_batch_on_this_cp_rank``, and Transformer Engine
        ``thd_get_partitioned_indices`` for packed rows.

    >>> [cp_slices(np.array([0, 4, 12]), rank, 2).tolist() for rank in (0, 1)]
    [[0, 3, 4, 5, 10, 11], [1, 2, 6, 7, 8, 9]]
    """
    if not 0 <= operator.index(cp_rank) < operator.index(cp_size):
        raise ValueError(f"cp_rank {cp_rank} is outside 0..{cp_size - 1}")
    begins = np.asarray(cu_seqlens_padded, np.int64)
    sizes, chunks = np.diff(begins), 2 * cp_size
    if cp_size == 1:
        return np.arange(begins[0], begins[-1])
    uneven = np.flatnonzero(sizes % chunks)
    if len(uneven):
        segment = int(uneven[0])
        raise ValueError(
            f"segment {segment} has {int(sizes[segment])} positions, no multiple of {chunks}: "
            "use packing.document_multiple: 2*cp"
        )
    each = sizes // chunks
    firsts = np.stack([begins[:-1] + cp_rank * each, begins[1:] - (cp_rank + 1) * each], axis=1).reshape(-1)
    lengths = np.repeat(each, 2)
    before = np.cumsum(lengths) - lengths
    return np.repeat(firsts - before, lengths) + np.arange(int(lengths.sum()))
