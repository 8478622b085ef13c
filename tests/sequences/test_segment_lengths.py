"""What variable-length attention goes by: where the segments of flattened rows begin."""

from __future__ import annotations

import numpy as np

from recipe.sequences.segment_lengths import padded_segment_lengths, segment_lengths


def test_segment_lengths_cover_every_position():
    lengths, longest = segment_lengths(np.array([[0, 0, 1, -1], [0, 0, 0, 0], [0, 1, 2, 2]], np.int32))
    assert lengths.tolist() == [0, 2, 3, 4, 8, 9, 10, 12]
    assert (lengths.dtype, longest) == (np.int32, 4)


def test_positions_run_on_through_the_padding_behind_a_document():
    segments = np.array([[0, 0, 0, -1, 1, -1, -1, -1]], np.int32)
    true, ends, longest = padded_segment_lengths(segments, 4)
    assert (true.tolist(), ends.tolist(), longest) == ([0, 3, 4], [0, 4, 8], 4)
