"""Which documents of a folder pass a filter: from their lengths, and from the table where it must."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.config.view import Filter
from recipe.errors import RecipeError
from recipe.pools.lengths import length_bits
from recipe.pools.pool import Pool
from recipe.pools.where import passing

_PIECE = 1 << 20
"""Units that are looked at together."""


class Selection(NamedTuple):
    """What of a folder a view holds, counted."""

    units: NDArray[np.int64]
    """int64[n]: rising."""
    mask: NDArray[np.bool_] | None
    """bool[documents of the folder]: those held; None: units are held whole."""
    documents: int
    body: int
    """Body tokens."""
    special: int
    longest: int
    """Body tokens of the longest document."""
    longest_unit: int
    """Largest size, as the filter counts it."""
    histogram: tuple[int, ...]
    """Documents by length, as in a card."""

    def __reduce__(self) -> tuple[Any, ...]:
        """A bit a unit and a document: numbers would be sixty-four times that, for every process."""
        held = np.zeros(int(self.units[-1]) + 1, np.bool_)
        held[self.units] = True
        mask = None if self.mask is None else (np.packbits(self.mask), len(self.mask))
        return _unpacked, (np.packbits(held), mask, *self[2:])


def _unpacked(
    units: NDArray[np.uint8], mask: tuple[NDArray[np.uint8], int] | None, *counts: Any
) -> Selection:
    held = None if mask is None else np.unpackbits(mask[0], count=mask[1]).view(np.bool_)
    return Selection(np.flatnonzero(np.unpackbits(units)), held, *counts)


def select(pool: Pool, chosen: Filter) -> Selection:
    """What passes a filter, of a pool that is all of its folder.

    Raises:
        RecipeError: a column that no document has, or no document passes.
    """
    held = passing(pool, chosen.where) if chosen.where else None
    if held is None:
        held = np.ones(pool.num_numbers, np.bool_)
    needed = _needed(pool) if chosen.by == "needs" else None
    units, total = [np.empty(0, np.int64)], _Sums()
    for piece in _pieces(pool):
        sizes = _choose(piece, held, chosen, needed)
        here = held[piece.numbers]
        units.append(piece.first + np.flatnonzero(np.logical_or.reduceat(here, piece.starts)))
        total.add(piece.lengths[here], piece.special[here], sizes)
    members = np.concatenate(units)
    if not len(members):
        raise _nothing(pool)
    return Selection(
        units=members,
        mask=_mask(pool, members, held, total.documents),
        documents=total.documents,
        body=total.body,
        special=total.special,
        longest=total.longest,
        longest_unit=total.longest_unit,
        histogram=_trimmed(total.histogram),
    )


class _Piece(NamedTuple):
    """Some units: ``edges`` int64[n + 1] of their documents; lengths and marks of these."""

    first: int
    edges: NDArray[np.int64]
    lengths: NDArray[np.int64]
    special: NDArray[np.int64]

    @property
    def numbers(self) -> slice:
        """Its documents."""
        return slice(int(self.edges[0]), int(self.edges[-1]))

    @property
    def starts(self) -> NDArray[np.int64]:
        """int64[n]: where its units begin, from its first document."""
        starts: NDArray[np.int64] = self.edges[:-1] - self.edges[0]
        return starts


@dataclass(slots=True)
class _Sums:
    """What was counted so far."""

    documents: int = 0
    body: int = 0
    special: int = 0
    longest: int = 0
    longest_unit: int = 0
    histogram: NDArray[np.int64] = field(default_factory=lambda: np.zeros(64, np.int64))

    def add(self, lengths: NDArray[np.int64], special: NDArray[np.int64], sizes: NDArray[np.int64]) -> None:
        """Count the documents held of a piece, and the sizes of what was judged."""
        self.documents += len(lengths)
        self.body += int(lengths.sum())
        self.special += int(special.sum())
        self.longest = max(self.longest, int(lengths.max(initial=0)))
        self.longest_unit = max(self.longest_unit, int(sizes.max(initial=0)))
        self.histogram += np.bincount(length_bits(lengths), minlength=64)


def _choose(
    piece: _Piece, held: NDArray[np.bool_], chosen: Filter, needed: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """Note in ``held`` which documents of a piece pass; the sizes of what does, as they are counted."""
    low, high = chosen.min_tokens or 0, chosen.max_tokens
    if chosen.by == "document":
        fits = _within(piece.lengths, low, high) & held[piece.numbers]
        held[piece.numbers] = fits
        return piece.lengths[fits]
    sizes: NDArray[np.int64] = np.add.reduceat(piece.lengths, piece.starts)
    if needed is not None:
        sizes = needed[piece.first : piece.first + len(sizes)]
    fits = _within(sizes, low, high) & np.logical_and.reduceat(held[piece.numbers], piece.starts)
    held[piece.numbers] = np.repeat(fits, np.diff(piece.edges))
    return sizes[fits]


def _within(sizes: NDArray[np.int64], low: int, high: int | None) -> NDArray[np.bool_]:
    fits: NDArray[np.bool_] = sizes >= low
    return fits if high is None else fits & (sizes <= high)


def _trimmed(histogram: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(histogram[: int(np.flatnonzero(histogram)[-1]) + 1].tolist())


def _mask(
    pool: Pool, members: NDArray[np.int64], passed: NDArray[np.bool_], documents: int
) -> NDArray[np.bool_] | None:
    """The documents held, where a unit is held in part."""
    if pool.units is None:
        return None
    whole = int((np.asarray(pool.units[members + 1]) - np.asarray(pool.units[members])).sum())
    return None if whole == documents else passed


def _pieces(pool: Pool) -> Iterator[_Piece]:
    total = pool.layout.num_units
    for first in range(0, total, _PIECE):
        last = min(first + _PIECE, total)
        edges = np.arange(first, last + 1)
        if pool.units is not None:
            edges = np.asarray(pool.units[first : last + 1])
        numbers = np.arange(int(edges[0]), int(edges[-1]))
        special = pool.fronts(numbers) + pool.stored_marks(numbers)[1]
        offsets = np.asarray(pool.offsets[int(edges[0]) : int(edges[-1]) + 1])
        yield _Piece(first, edges, offsets[1:] - offsets[:-1] - special, special)


def _needed(pool: Pool) -> NDArray[np.int64]:
    """int64[units]: tokens of the largest section that needs others, with those; 0 where none does."""
    sizes, needs = np.zeros(pool.layout.num_units, np.int64), pool.needs
    if needs is None or not len(needs):
        return sizes
    opens = np.flatnonzero(np.append(True, (needs[1:, :2] != needs[:-1, :2]).any(axis=1)))
    own = needs[opens, 1] - needs[opens, 0]
    together = own + np.add.reduceat(needs[:, 3] - needs[:, 2], opens)
    documents = np.searchsorted(pool.offsets, needs[opens, 0], side="right") - 1
    np.maximum.at(sizes, units_of(pool, documents), together)
    return sizes


def _nothing(pool: Pool) -> RecipeError:
    given = f"no document of {pool.num_numbers:,} passes"
    fix = "correct the filter, or leave the pool out"
    return RecipeError.single(
        f"pool {pool.name}", str(pool.path), given=given, expected="a document that passes", fix=fix
    )


def units_of(pool: Pool, documents: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n]: the units that documents lie in, by their numbers in the folder."""
    if pool.units is None:
        return documents
    found: NDArray[np.int64] = np.searchsorted(pool.units, documents, side="right") - 1
    return found
