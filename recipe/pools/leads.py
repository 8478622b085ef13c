"""What stands in front of the documents of a pool: special tokens between BOS and the body.

``leads.npy`` uint32[num_documents]: special tokens in front of each document's body, BOS among them; only in
pools in which some document has more than BOS there. A part keeps its own numbers beside it until the pool
is whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipe.pools.part import FinishedPart, leads_path

LEADS_DTYPE = np.dtype("<u4")


def part_leads(folder: Path, part: FinishedPart, has_bos: bool) -> NDArray[np.uint32]:
    """uint32[documents]: of one part of a pool that is being written."""
    if not part.has_leads:
        return np.full(part.record.documents, int(has_bos), LEADS_DTYPE)
    return np.fromfile(leads_path(folder, part.record.name), LEADS_DTYPE)


def leads_of(
    folder: Path, parts: Sequence[FinishedPart], has_bos: bool
) -> Iterator[NDArray[np.uint32]] | None:
    """The numbers of all documents, part by part; None where none has more than BOS."""
    if not any(part.has_leads for part in parts):
        return None
    return (part_leads(folder, part, has_bos) for part in parts)
