"""Lengths of the segments of rows, cumulative: what variable-length attention goes by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def segment_lengths(segment_ids: NDArray[np.int32]) -> tuple[NDArray[np.int32], int]:
    """Cumulative segment lengths of the flattened rows, for variable-length attention.

    The padding at the end of a row is a segment of its own, so that the last entry is rows x context.

    Returns:
        ``cu_seqlens`` int32[num_segments + 1], and ``max_seqlen``.

    >>> segment_lengths(np.array([[0, 0, 1, -1], [0, 0, 0, 0]], np.int32))
    (array([0, 2, 3, 4, 8], dtype=int32), 4)
    """
    edges = np.ones(segment_ids.shape, bool)
    edges[:, 1:] = segment_ids[:, 1:] != segment_ids[:, :-1]
    starts = np.append(np.flatnonzero(edges.reshape(-1)), segment_ids.size).astype(np.int32)
    return starts, int(np.diff(starts).max(initial=0))


def padded_segment_lengths(
    segment_ids: NDArray[np.int32], multiple: int
) -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """Cumulative segment lengths, true and padded, of rows whose pieces take multiples of positions.

    As variable-length kernels of context parallelism take them: segment k begins at ``padded[k]`` of the
    flattened rows and has ``true[k + 1] - true[k]`` positions, then padding. What is left of a row is a
    segment of its own without any true position.

    Returns:
        ``cu_seqlens`` int32[num_segments + 1], which ends with the positions that are no padding;
        ``cu_seqlens_padded`` int32[num_segments + 1], which ends with rows x context; and ``max_seqlen``,
        the longest of these, what is left of a row included.

    Source:
        ``cu_seqlens_q`` and ``cu_seqlens_q_padded`` of NVIDIA Transformer Engine's ``thd`` layout, and of
        Megatron-core's ``PackedSeqParams``.

    >>> padded_segment_lengths(np.array([[0, 0, 0, -1, 1, -1, -1, -1]], np.int32), 2)
    (array([0, 3, 4, 4], dtype=int32), array([0, 4, 6, 8], dtype=int32), 4)
    """
    edges = np.ones(segment_ids.shape, bool)
    edges[:, 1:] = segment_ids[:, 1:] != segment_ids[:, :-1]
    flat = segment_ids.reshape(-1)
    bounds = np.append(np.flatnonzero(edges.reshape(-1)), flat.size)
    is_piece = flat[bounds[:-1]] >= 0
    starts, lengths = bounds[:-1][is_piece], np.diff(bounds)[is_piece]
    taken = lengths + -lengths % multiple
    begins = np.unique(np.concatenate([starts, starts + taken, [0, flat.size]]))
    true = np.zeros(len(begins), np.int32)
    true[np.searchsorted(begins, starts) + 1] = lengths
    longest = int(np.diff(begins).max(initial=0))
    return np.cumsum(true, dtype=np.int32), begins.astype(np.int32), longest
