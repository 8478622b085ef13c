"""The arrays of an own pool, loaded from the files that its card names, as far as they agree with it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.card import (
    LEADS_NAME,
    NEEDS_NAME,
    OFFSETS_NAME,
    REPEATS_NAME,
    SECTIONS_NAME,
    UNITS_NAME,
    WITHDRAWN_NAME,
    Card,
)
from recipe.pools.mapped import map_npy
from recipe.pools.offsets import Offsets, open_low

_INT64 = np.dtype("<i8")
_UINT32 = np.dtype("<u4")
_HASHED_AT_OPENING = 4 << 20
"""Bytes of a file of boundaries that is read whole when it is opened, in a few milliseconds."""


@dataclass(frozen=True, slots=True)
class OwnArrays:
    """Each is loaded anew when it is called for; :class:`recipe.pools.arrays.PoolArrays` keeps it.

    Raises:
        RecipeError: a file is not what the card says.
    """

    path: Path
    card: Card

    def offsets(self) -> NDArray[np.int64] | Offsets:
        """Where documents begin among the tokens."""
        if self.card.low_offsets is not None:
            return open_low(self.path, self.card, _HASHED_AT_OPENING)
        return _load_edges(self.path / OFFSETS_NAME, self.card, self.card.num_documents + 1, self._num_tokens)

    def units(self) -> NDArray[np.int64]:
        """Where units begin among the documents."""
        documents = sum(part.documents for part in self.card.parts)
        return _load_edges(self.path / UNITS_NAME, self.card, self.card.num_units + 1, documents)

    def sections(self) -> NDArray[np.int64]:
        """Where sections begin inside documents."""
        return _load_rising(self.path / SECTIONS_NAME, self.card, self._num_tokens)

    def needs(self) -> NDArray[np.int64]:
        """Which sections need which."""
        return _load_rows(self.path / NEEDS_NAME, self.card, self._num_tokens, 4)

    def repeats(self) -> NDArray[np.int64]:
        """What repeats what stands earlier in its unit."""
        return _load_rows(self.path / REPEATS_NAME, self.card, self._num_tokens, 2)

    def leads(self) -> NDArray[np.uint32]:
        """Special tokens in front of documents."""
        record = self.card.files[LEADS_NAME]
        hashed = record.hash if record.bytes <= _HASHED_AT_OPENING else None
        return map_npy(self.path / LEADS_NAME, self.card.num_documents, _UINT32, expected_hash=hashed)

    def erased(self) -> NDArray[np.int64]:
        """Documents that were erased."""
        return _load_rising(self.path / WITHDRAWN_NAME, self.card, self.card.num_documents, least=0)

    @property
    def _num_tokens(self) -> int:
        return sum(part.tokens for part in self.card.parts)


def _load_edges(path: Path, card: Card, count: int, last: int) -> NDArray[np.int64]:
    """``count`` rising numbers from 0 to ``last``, mapped; a small file is compared with its hash at once.

    Larger ones are checked where they are used: `recipe.sequences.pieces.measure` refuses impossible lengths.
    """
    array = _map_hashed(path, card, count)
    if (array[0], array[-1]) != (0, last):
        raise _wrong_range(path, array, f"from 0 to {last}, as its card says")
    return array


def _load_rising(path: Path, card: Card, last: int, least: int = 1) -> NDArray[np.int64]:
    """Rising numbers from ``least`` on, below ``last``, as many as there are; mapped."""
    array = _map_hashed(path, card, None)
    if len(array) and not least <= array[0] <= array[-1] < last:
        raise _wrong_range(path, array, f"{least}..{last - 1}, as its card says")
    return array


def _load_rows(path: Path, card: Card, last: int, width: int) -> NDArray[np.int64]:
    """Rows of so many numbers in 0..``last``; read whole: there are few."""
    array = _map_hashed(path, card, None)
    if len(array) % width or (len(array) and not 0 <= array.min() <= array.max() <= last):
        raise _wrong_range(path, array, f"rows of {width} in 0..{last}")
    return array.reshape(-1, width)


def _map_hashed(path: Path, card: Card, count: int | None) -> NDArray[np.int64]:
    record = card.files[path.name]
    hashed = record.hash if record.bytes <= _HASHED_AT_OPENING else None
    return map_npy(path, count, _INT64, expected_hash=hashed)


def _wrong_range(path: Path, array: NDArray[np.int64], expected: str) -> RecipeError:
    return RecipeError.single(
        str(path.parent), str(path), given=f"numbers from {array[0]} to {array[-1]}", expected=expected,
        fix="copy the file again, or prepare the pool again",
    )  # fmt: skip
