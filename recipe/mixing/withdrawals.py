"""Withdrawn documents of a run, by pool: a value that travels with the state.

Withdrawals are numbered 1, 2, … over the run and its parents. A document counts under the first
withdrawal that names it; naming it again changes nothing. What a withdrawal does to the stream is told in
:mod:`recipe.mixing.reading` and :mod:`recipe.sequences.blocks`.

The plain form is ``{"number": n, "pools": {name: [[number, width, text], …]}}``: per pool its withdrawals
in rising order, each with the rising numbers of the documents that it took down first. ``text`` is base 85
(RFC 1924) of the differences between them, the first one from 0, each an unsigned little-endian number of
``width`` bytes. It is not compressed: the same documents are the same text for ever, and a state is
compressed as a whole.
"""

from __future__ import annotations

from base64 import b85decode, b85encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recipe.config import Recipe
from recipe.config.view import family
from recipe.errors import Problem, RecipeError
from recipe.pools import Pool
from recipe.sequences.withdrawn import NOTHING, Withdrawn, together


@dataclass(frozen=True, eq=False, slots=True)
class Withdrawals:
    """All documents withdrawn so far."""

    number: int = 0
    """Withdrawals made."""
    pools: Mapping[str, Withdrawn] = field(default_factory=dict)
    """By pool; pools of which nothing was withdrawn are left out."""

    @classmethod
    def none(cls) -> Withdrawals:
        """Nothing was withdrawn."""
        return cls()

    def of(self, pool: str) -> Withdrawn:
        """What was withdrawn of a pool."""
        return self.pools.get(pool, NOTHING)

    def documents(self, pool: str, number: int | None = None) -> NDArray[np.int64]:
        """int64[n]: numbers of the documents withdrawn from a pool by a withdrawal, or by now; rising."""
        known = self.of(pool)
        return known.documents[known.numbers <= (self.number if number is None else number)]

    def up_to(self, number: int) -> Withdrawals:
        """As it was after a withdrawal."""
        kept = {
            name: Withdrawn(known.documents[known.numbers <= number], known.numbers[known.numbers <= number])
            for name, known in self.pools.items()
        }
        return Withdrawals(number, {name: known for name, known in kept.items() if len(known.documents)})

    def without(self, pools: Iterable[str]) -> Withdrawals:
        """Without what was withdrawn of some pools: they were replaced."""
        gone = set(pools)
        return Withdrawals(self.number, {name: held for name, held in self.pools.items() if name not in gone})

    def and_then(self, documents: Mapping[str, ArrayLike]) -> Withdrawals:
        """With one more withdrawal: numbers of documents, by pool, in any order.

        Raises:
            ValueError: a number is below zero.
        """
        number, pools = self.number + 1, dict(self.pools)
        for name, given in documents.items():
            before = self.of(name)
            new = np.setdiff1d(np.asarray(given, np.int64), before.documents)
            if not len(new):
                continue
            if new[0] < 0:
                raise ValueError(f"document {new[0]} of pool {name!r}")
            pools[name] = _joined(before, Withdrawn(new, np.full(len(new), number)))
        return Withdrawals(number, pools)

    def __eq__(self, other: object) -> bool:
        """Whether the same documents were withdrawn by the same withdrawals."""
        return isinstance(other, Withdrawals) and self.to_plain() == other.to_plain()

    def __hash__(self) -> int:
        """Of the number alone: runs have few withdrawals."""
        return hash(self.number)

    def to_plain(self) -> dict[str, Any]:
        """A mapping of plain values that survives JSON and YAML unchanged.

        >>> Withdrawals.none().and_then({"web": [300, 7]}).to_plain()
        {'number': 1, 'pools': {'web': [[1, 2, '2LL4j']]}}
        """
        pools = {name: _to_plain(withdrawn) for name, withdrawn in sorted(self.pools.items())}
        return {"number": self.number, "pools": pools}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Withdrawals:
        """The inverse of :meth:`to_plain`.

        Raises:
            ValueError: it is no such value.
        """
        try:
            number, pools = plain["number"], plain["pools"]
            known = {name: _from_plain(entries, number) for name, entries in pools.items()}
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"not a list of withdrawals: {error}") from error
        return cls(number, known)


def withdrawn_of(recipe: Recipe, withdrawals: Withdrawals, pool: str) -> Withdrawn:
    """What is not read of a pool: documents withdrawn from it, or from any pool that shares its folder."""
    return together(withdrawals.of(name) for name in family(recipe.pools, pool))


def erased_withdrawals(recipe: Recipe, pools: Mapping[str, Pool]) -> Withdrawals:
    """What a run over these pools starts with: documents that were erased from them are withdrawn by then."""
    found: dict[str, NDArray[np.int64]] = {}
    for name, pool in pools.items():
        mine = pool.erased[pool.holds(pool.erased)]
        for other in family(recipe.pools, name):
            mine = np.setdiff1d(mine, found.get(other, mine[:0]))
        if len(mine):
            found[name] = mine
    return Withdrawals.none().and_then(found) if found else Withdrawals.none()


def erased_and_served(
    recipe: Recipe, pools: Mapping[str, Pool], withdrawals: Withdrawals
) -> dict[str, NDArray[np.int64]]:
    """By pool, int64[n]: documents that were erased from it and are not withdrawn, where there are any."""
    lacking = {
        name: np.setdiff1d(known.documents, withdrawn_of(recipe, withdrawals, name).documents)
        for name, known in erased_withdrawals(recipe, pools).pools.items()
    }
    return {name: numbers for name, numbers in lacking.items() if len(numbers)}


def refuse_erased(
    recipe: Recipe, pools: Mapping[str, Pool], withdrawals: Withdrawals, what: str, fix: str
) -> None:
    """Raise RecipeError if documents that were erased from pools would be served.

    Args:
        recipe: whose pools.
        pools: opened.
        withdrawals: in force.
        what: that would serve them.
        fix: the way out.
    """
    problems = []
    for name, numbers in erased_and_served(recipe, pools, withdrawals).items():
        shown = ", ".join(map(repr, pools[name].ids(numbers[:5])))
        given = f"{len(numbers):,} documents that were erased: {shown}{', …' if len(numbers) > 5 else ''}"
        problems.append(Problem(f"pools.{name}", given, "documents that are there, or withdrawn", fix))
    if problems:
        raise RecipeError(f"{what}: documents that are no more would be served", problems)


def _joined(*parts: Withdrawn) -> Withdrawn:
    documents = np.concatenate([part.documents for part in parts])
    numbers = np.concatenate([part.numbers for part in parts])
    order = np.argsort(documents, kind="stable")
    return Withdrawn(documents[order], numbers[order])


def _to_plain(withdrawn: Withdrawn) -> list[list[Any]]:
    numbers = np.unique(withdrawn.numbers).tolist()
    return [[number, *_packed(withdrawn.documents[withdrawn.numbers == number])] for number in numbers]


def _packed(documents: NDArray[np.int64]) -> tuple[int, str]:
    differences = np.diff(documents, prepend=0)
    width = max(1, (int(differences.max()).bit_length() + 7) // 8)
    raw = differences.astype("<i8").view(np.uint8).reshape(-1, 8)[:, :width]
    return width, b85encode(raw.tobytes()).decode()


def _from_plain(entries: list[list[Any]], last: int) -> Withdrawn:
    parts = []
    for number, width, text in entries:
        data = b85decode(text)
        if not 1 <= number <= last or not 1 <= width <= 8 or not data or len(data) % width:
            raise ValueError(f"withdrawal {number} of {last}: {len(data)} bytes, {width} a document")
        wide = np.zeros((len(data) // width, 8), np.uint8)
        wide[:, :width] = np.frombuffer(data, np.uint8).reshape(-1, width)
        documents = np.cumsum(wide.reshape(-1).view("<i8"), dtype=np.int64)
        parts.append(Withdrawn(documents, np.full(len(documents), number)))
    joined = _joined(*parts)
    if (np.diff(joined.documents, prepend=-1) <= 0).any():
        raise ValueError("a document is named twice")
    return joined
