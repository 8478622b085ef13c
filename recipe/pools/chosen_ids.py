"""Ids that somebody else chose: the documents of a pool that stay, or that go."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.contents import repeats_last, sorted_run
from recipe.pools.pool import Pool
from recipe.pools.reasons import DUPLICATE, EMPTY, NEAR_DUPLICATE, OTHER_SPLIT, WITHDRAWN

_PIECE = 1 << 15
_SHOWN = 5
_WORD = re.compile(r"[a-z][a-z0-9_]{0,39}")
_COUNTED = (DUPLICATE, EMPTY, OTHER_SPLIT, WITHDRAWN)

Again = Callable[[], Iterable[int | str]]


@dataclass(frozen=True, slots=True)
class ChosenIds:
    """A list of ids, as 128-bit hashes: 24 bytes each."""

    keep: bool
    """They are those that stay; else those that go."""
    hashes: NDArray[Any]
    """CONTENT[n]: sorted, each once."""
    reason: str = NEAR_DUPLICATE
    """What cards count the documents under that go."""
    again: Again | None = field(default=None, compare=False, repr=False)
    """Gives the ids once more: to name those that no document has."""

    @classmethod
    def of(
        cls, ids: Iterable[int | str], *, keep: bool, reason: str = NEAR_DUPLICATE, again: Again | None = None
    ) -> ChosenIds:
        """Of some ids; whole numbers are compared by their digits.

        Raises:
            RecipeError: ``reason`` is no word of small letters, or one that is counted by itself.
        """
        if not _WORD.fullmatch(reason) or reason in _COUNTED:
            raise RecipeError.single(
                "dedup", "--reason", given=repr(reason),
                expected=f"a word of a-z, 0-9 and _, but not {', '.join(_COUNTED)}",
                fix="write what the list was made by, such as low_quality",
            )  # fmt: skip
        left = iter(ids)
        pieces = [sorted_run(map(_digest, some)) for some in iter(lambda: list(islice(left, _PIECE)), [])]
        run = np.concatenate([*pieces, sorted_run([])])
        run = run[np.lexsort((run["low"], run["high"]))]
        run = run[~repeats_last(run["high"], run["low"])]
        run["number"] = 0
        return cls(keep, run, reason, again)

    def wanted(self, pool: Pool) -> NDArray[np.bool_]:
        """bool[documents]: those that may stay.

        Raises:
            RecipeError: an id is of no document, or of two: the list is of another pool.
        """
        listed, known = np.zeros(pool.num_numbers, np.bool_), [self.hashes[:0]]
        edges = [*range(0, pool.num_numbers, _PIECE), pool.num_numbers]
        for start, stop in pairwise(edges):
            run = sorted_run(map(_digest, pool.ids(np.arange(start, stop))), start)
            held = run[self._holds(run)]
            listed[held["number"].astype(np.int64)] = True
            known.append(held)
        run = np.concatenate(known)
        run = run[np.lexsort((run["low"], run["high"]))]
        found, of = len(run), int(np.count_nonzero(~repeats_last(run["high"], run["low"])))
        if found != len(self.hashes) or of != found:
            given = f"{len(self.hashes):,} ids of {found:,} documents: a number and a text are written alike"
            if of < len(self.hashes):
                unknown = self._unknown(run)
                given = f"{len(self.hashes):,} ids, of which {of:,} are of documents"
                more = ", …" if len(unknown) == _SHOWN else ""
                given += f"; of none: {', '.join(map(repr, unknown))}{more}" if unknown else ""
            raise RecipeError.single(
                f"pool {pool.name}", str(pool.path), given=given, expected="ids of its documents, each once",
                fix="hand its texts out again (recipe pools texts), and take the ids from there",
            )  # fmt: skip
        return listed if self.keep else ~listed

    def to_plain(self) -> dict[str, Any]:
        """What tells the list from another one."""
        digest = blake2b(self.hashes.tobytes(), digest_size=16).hexdigest()
        named = {} if self.reason == NEAR_DUPLICATE else {"reason": self.reason}
        return {"keep" if self.keep else "drop": len(self.hashes), "hash": digest, **named}

    def _unknown(self, known: NDArray[Any]) -> list[int | str]:
        """The first ids of the list that are not among some hashes, which are sorted."""
        found: list[int | str] = []
        if self.again is None:
            return found
        unknown = ChosenIds(self.keep, self.hashes[~ChosenIds(self.keep, known)._holds(self.hashes)])
        left = iter(self.again())
        while len(found) < _SHOWN and (some := list(islice(left, _PIECE))):
            run = sorted_run(map(_digest, some))
            numbers = sorted(run["number"][unknown._holds(run)].tolist())
            found += [id for id in dict.fromkeys(some[number] for number in numbers) if id not in found]
        return found[:_SHOWN]

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
