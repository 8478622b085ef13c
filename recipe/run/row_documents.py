"""Which documents the segments of some rows are: a lookup from metadata, for accounting by document."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from recipe.run.stream import RunStream
from recipe.sequences.pieces import AHEAD, CONTEXT, JOINED
from recipe.sequences.sheet import DOCUMENT, FLAGS, WHOLE_ROW


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
    pieces = sheet.pieces[(starts[:, None] + columns)[held]]
    found = np.full(held.shape, -1, np.int64)
    found[held] = pieces[:, DOCUMENT]
    if not (pieces[:, FLAGS] & JOINED).any():
        return found
    of_rows = [_documents(of) for of in np.split(pieces, np.cumsum(counts)[:-1])]
    found = np.full((len(of_rows), max(map(len, of_rows))), -1, np.int64)
    for row, documents in zip(found, of_rows, strict=True):
        row[: len(documents)] = documents
    return found


def _documents(pieces: NDArray[np.int64]) -> NDArray[np.int64]:
    """The document of every segment of a row: what is brought in front as context does not count."""
    segment = np.cumsum(pieces[:, FLAGS] & JOINED == 0) - 1
    own = pieces[:, FLAGS] & (CONTEXT | AHEAD) == 0
    segments, documents = segment[own], pieces[own, DOCUMENT]
    last = np.append(segments[1:] != segments[:-1], True)[: len(segments)]
    if (documents != documents[last][segments]).any():
        raise ValueError("a segment holds several documents (attention: group): not by document")
    found: NDArray[np.int64] = documents[last]
    return found
