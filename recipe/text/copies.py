"""New documents that equal old ones of an extended pool: what they say more is noted, by the old one."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from recipe.pools.copies import copy_line
from recipe.pools.dedup import tags_of
from recipe.pools.pool import Pool
from recipe.pools.tags import joined_tags


def noted_copies(folder: Path, split: int) -> Path:
    """Where the copies of an extended pool's documents are noted between the passes."""
    return folder / f"placed.copies-{split}.jsonl"


class CopyNotes:
    """Which new documents equal which old ones; 24 bytes each."""

    def __init__(self) -> None:
        """None so far."""
        self._notes = array("q")

    def add(self, split: int, old: int, copies: Sequence[int]) -> None:
        """Note the copies of document ``old`` of the pool that is extended in a split."""
        for copy in copies:
            self._notes.extend((split, old, copy))

    def write(
        self,
        folder: Path,
        pools: Sequence[Pool | None],
        row: Callable[[int], tuple[Any, ...]],
        order: Callable[[int], tuple[Any, ...]],
    ) -> None:
        """Write the copies whose tags say more than the document's and those of the copies before them.

        Args:
            folder: between the passes.
            pools: by split, those that are extended.
            row: of a new document, by number: id, group, tags, source, …
            order: of new documents, whatever their numbers.
        """
        notes = np.array(self._notes, np.int64).reshape(-1, 3)
        for split, pool in enumerate(pools):
            chosen = notes[notes[:, 0] == split, 1:]
            if pool is None or not len(chosen):
                continue
            chosen = chosen[np.argsort(chosen[:, 0], kind="stable")]
            said = iter(tags_of(pool, np.unique(chosen[:, 0]), 0))
            number, text = next(said, (-1, ""))
            with noted_copies(folder, split).open("wb") as file:
                for old, pairs in groupby(chosen.tolist(), key=itemgetter(0)):
                    while -1 < number < old:
                        number, text = next(said, (-1, ""))
                    own = json.loads(text) if number == old else {}
                    copies = _saying_more(
                        own, [row(copy) for _, copy in sorted(pairs, key=lambda p: order(p[1]))]
                    )
                    if copies:
                        file.write(copy_line({"document": old, "copies": copies}))


def _saying_more(own: dict[str, Any], rows: Sequence[tuple[Any, ...]]) -> list[dict[str, Any]]:
    found = []
    for id, _, tags, source, *_ in rows:
        joined = joined_tags(own, [tags])
        if joined != own:
            found.append({"id": id, "source": source, "tags": tags})
            own = joined
    return found
