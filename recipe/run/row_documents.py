"""Which documents the segments of some rows are: a lookup from metadata, for accounting by document."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recipe.run.stream import RunStream
from recipe.sequences.assembly import DOCUMENT, WHOLE_ROW


def segment_documents(
    stream: RunStream, step: int, rows: Sequence[int] | NDArray[np.int64]
) -> NDArray[np.int64]:
    """The document of every segment of some rows of a global batch.

    Args:
        stream: of the run.
        step: of the batch.
        rows: int[rows], places in the global batch.

    Returns:
        int64[rows, segments]: the number in its pool of the document that ``segment_ids`` k stands for, at
        column k; -1 where a row has no such segment.

    Raises:
        ValueError: the run has no such step or row, or rows of it are one segment (``attention: sequence``).
    """
    wanted = np.asarray(rows, np.int64)
    sheet, first, rules = stream.at(step).sheet(step)
    places = first + wanted
    if rules[sheet.pool[places], WHOLE_ROW].any():
        raise ValueError(f"rows of step {step} are one segment each (attention: sequence): not by document")
    starts, counts = sheet.ends[places], sheet.ends[places + 1] - sheet.ends[places]
    columns = np.arange(int(counts.max(initial=0)))
    held = columns < counts[:, None]
    found = np.full(held.shape, -1, np.int64)
    found[held] = sheet.pieces[(starts[:, None] + columns)[held], DOCUMENT]
    return found
