"""Memory of batches, used again once nobody holds what was in it."""

from __future__ import annotations

import sys
import threading
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

IGNORED = -100
"""What ``labels`` holds where a position carries no label."""

PADDING_ID = 0
"""What ``input_ids`` holds in padding; masked from attention and loss."""


class Arrays(NamedTuple):
    """A batch, each [rows, context]: int64 ids and labels, int32 positions and segments, int8 mask."""

    input_ids: NDArray[np.int64]
    labels: NDArray[np.int64]
    position_ids: NDArray[np.int32]
    segment_ids: NDArray[np.int32]
    attention_mask: NDArray[np.int8]


class Page(NamedTuple):
    """Memory of a batch: int64[2, rows, context], int32[2, rows, context], int8[rows, context].

    Arrays of one dtype lie together: handing an array to compiled code costs as much as a thousand tokens.
    """

    wide: NDArray[np.int64]
    narrow: NDArray[np.int32]
    mask: NDArray[np.int8]

    @classmethod
    def blank(cls, num_rows: int, context: int) -> Page:
        """New memory, with whatever it held before."""
        shape = (num_rows, context)
        return cls(np.empty((2, *shape), np.int64), np.empty((2, *shape), np.int32), np.empty(shape, np.int8))

    def arrays(self) -> Arrays:
        """The batch that lies in it."""
        return Arrays(self.wide[0], self.wide[1], self.narrow[0], self.narrow[1], self.mask)


class Buffers:
    """Memory of earlier batches, filled anew once nobody holds any of their arrays.

    Writing to pages that the system has to fetch and clear first costs more than filling them.
    Whether anybody holds an array, or a view of one, its reference count tells.
    """

    def __init__(self, most: int = 8) -> None:
        """Keep the memory of at most ``most`` batches."""
        self._most = most
        self._lock = threading.Lock()
        self._kept: list[tuple[Page, Arrays]] = []
        page = Page.blank(1, 1)
        self._unheld = _references(page, page.arrays())  # of each the fewest there can be

    def take(self, num_rows: int, context: int) -> tuple[Page, Arrays]:
        """Memory that nobody else holds, and the batch in it; whoever has that batch holds it."""
        shape = (num_rows, context)
        with self._lock:
            for page, arrays in self._kept:
                if page.mask.shape == shape and _references(page, arrays) == self._unheld:
                    return page, Arrays._make(arrays)
            page = Page.blank(num_rows, context)
            self._kept = [*self._kept, (page, page.arrays())][-self._most :]
            return page, Arrays._make(self._kept[-1][1])


def _references(page: Page, arrays: Arrays) -> int:
    """References to a page's memory (views hold it) and to its arrays, together."""
    return sum(map(sys.getrefcount, page)) + sum(map(sys.getrefcount, arrays))
