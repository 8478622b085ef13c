"""Ids that somebody else chose: the documents of a pool that stay, or that go."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.contents import repeats_last, sorted_run
from recipe.pools.pool import Pool

_PIECE = 1 << 15


@dataclass(frozen=True, slots=True)
class ChosenIds:
    """A list of ids, as 128-bit hashes: 24 bytes each."""

    keep: bool
    """They are those that stay; else those that go."""
    hashes: NDArray[Any]
    """CONTENT[n]: sorted, each once."""

    @classmethod
    def of(cls, ids: Iterable[int | str], *, keep: bool) -> ChosenIds:
        """Of some ids; whole numbers are compared by their digits."""
        left = iter(ids)
        pieces = [sorted_run(map(_digest, some)) for some in iter(lambda: list(islice(left, _PIECE)), [])]
        run = np.concatenate([*pieces, sorted_run([])])
        run = run[np.lexsort((run["low"], run["high"]))]
        run = run[~repeats_last(run["high"], run["low"])]
        run["number"] = 0
        return cls(keep, run)

    def wanted(self, pool: Pool) -> NDArray[np.bool_]:
        """bool[documents]: those that may stay.

        Raises:
            RecipeError: an id is of no document, or of two: the list is of another pool.
        """
        listed = np.zeros(pool.num_numbers, np.bool_)
        edges = [*range(0, pool.num_numbers, _PIECE), pool.num_numbers]
        for start, stop in pairwise(edges):
            run = sorted_run(map(_digest, pool.ids(np.arange(start, stop))), start)
            listed[run["number"][self._holds(run)].astype(np.int64)] = True
        found = int(np.count_nonzero(listed))
        if found != len(self.hashes):
            given = f"{len(self.hashes):,} ids, of which {min(found, len(self.hashes)):,} are of documents"
            if found > len(self.hashes):
                given = (
                    f"{len(self.hashes):,} ids of {found:,} documents: a number and a text are written alike"
                )
            raise RecipeError.single(
                f"pool {pool.name}", str(pool.path), given=given, expected="ids of its documents, each once",
                fix="hand its texts out again (recipe pools texts), and take the ids from there",
            )  # fmt: skip
        return listed if self.keep else ~listed

    def to_plain(self) -> dict[str, Any]:
        """What tells the list from another one."""
        digest = blake2b(self.hashes.tobytes(), digest_size=16).hexdigest()
        return {"keep" if self.keep else "drop": len(self.hashes), "hash": digest}

    def _holds(self, run: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of some are in the list; both are sorted."""
        both = np.concatenate([self.hashes, run])
        order = np.lexsort((both["low"], both["high"]))  # stable: of the same, the list's comes first
        same = repeats_last(both["high"][order], both["low"][order])
        firsts = np.maximum.accumulate(np.where(same, 0, np.arange(len(both))))
        held = np.zeros(len(both), np.bool_)
        held[order] = order[firsts] < len(self.hashes)
        return held[len(self.hashes) :]


def _digest(id: int | str) -> bytes:
    return blake2b(str(id).encode(errors="surrogatepass"), digest_size=16).digest()
