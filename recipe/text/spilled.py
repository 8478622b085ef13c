"""Tokenised documents between the passes, looked up by their numbers."""

from __future__ import annotations

import json
from bisect import bisect_right
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.text.spill import CONTENT, first_numbers, task_file


def contents_of(folder: Path, number: int) -> NDArray[Any]:
    """CONTENT[n] of one task, mapped; ``number`` counts from its first document."""
    path = task_file(folder, number, "contents")
    return np.asarray(np.memmap(path, CONTENT, "r")) if path.stat().st_size else np.zeros(0, CONTENT)


class Spilled:
    """The documents of all tasks, by number: what is known of some of them."""

    def __init__(self, folder: Path, num_tasks: int) -> None:
        """Of a first pass that is whole; its files are mapped."""
        self.first = first_numbers(folder, num_tasks)
        # plain views: every look at a map of NumPy's costs many times what it finds
        indices = [
            np.asarray(np.load(task_file(folder, number, "npy"), mmap_mode="r"))
            for number in range(num_tasks)
        ]
        self._highs, self._lows, self._starts = (
            [index[name] for index in indices] for name in ("high", "low", "row")
        )
        self._rows = [_bytes(task_file(folder, number, "rows")).data for number in range(num_tasks)]

    def key(self, number: int) -> tuple[int, int]:
        """Key of the document's unit."""
        task, place = self._place(number)
        return int(self._highs[task][place]), int(self._lows[task][place])

    def row(self, number: int) -> tuple[Any, ...]:
        """Its row; see `Entry`."""
        task, place = self._place(number)
        starts = self._starts[task]
        return tuple(json.loads(bytes(self._rows[task][int(starts[place]) : int(starts[place + 1])])))

    def _place(self, number: int) -> tuple[int, int]:
        task = bisect_right(self.first, number) - 1
        return task, number - self.first[task]


def _bytes(path: Path) -> NDArray[np.uint8]:
    return np.asarray(np.memmap(path, np.uint8, "r")) if path.stat().st_size else np.zeros(0, np.uint8)
