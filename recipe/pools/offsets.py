"""Where documents begin, in four bytes a document: the low bits of offsets, and where they begin anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recipe.errors import RecipeError
from recipe.pools.blocks import file_hash
from recipe.pools.card import OFFSETS_NAME, Card, FileRecord, LowOffsets
from recipe.pools.mapped import map_npy
from recipe.pools.npy_files import npy_record, pieces_record, write_npy

MANY_DOCUMENTS = 1 << 15
"""A pool of fewer keeps whole offsets: it is a few pages, which anybody reads."""
INT64, UINT32 = np.dtype("<i8"), np.dtype("<u4")
_PIECE = 1 << 20
_LOW_BITS = 32


class Offsets:
    """int64[n] that rise, of which the low 32 bits are kept; read as an array of NumPy is.

    >>> Offsets(np.array([0, 7, 1], np.uint32), np.array([2]))[1:].tolist()
    [7, 4294967297]
    """

    dtype = INT64
    ndim = 1

    def __init__(self, low: NDArray[np.uint32], wraps: Sequence[int] | NDArray[np.int64]) -> None:
        """``low``: the low bits; ``wraps``: numbers at which they begin anew, rising."""
        self._low, self._wraps = low, np.asarray(wraps, dtype=np.int64)

    def __len__(self) -> int:
        """How many."""
        return len(self._low)

    @property
    def shape(self) -> tuple[int]:
        """As of an array."""
        return (len(self._low),)

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> np.int64: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | NDArray[Any]) -> NDArray[np.int64]: ...
    def __getitem__(self, key: Any) -> Any:
        """One offset, or int64[…] of a slice or of numbers."""
        low = self._low[key].astype(np.int64)
        if not len(self._wraps):
            return low
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self._low))
            numbers = np.arange(start, stop, step)
        else:
            numbers = np.asarray(key)
            numbers = np.flatnonzero(numbers) if numbers.dtype == np.bool_ else numbers
            numbers = np.where(numbers < 0, numbers + len(self._low), numbers)
        return low + (np.searchsorted(self._wraps, numbers, side="right").astype(np.int64) << _LOW_BITS)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """All of them, 8 bytes each."""
        return self[:] if dtype is None else self[:].astype(dtype)

    def __iter__(self) -> Iterator[np.int64]:
        """One after another."""
        return iter(self[:])

    def tolist(self) -> list[int]:
        """All of them, as numbers of Python."""
        found: list[int] = self[:].tolist()
        return found

    def searchsorted(self, values: ArrayLike, side: Any = "left", sorter: None = None) -> Any:
        """As `numpy.searchsorted`, which comes here."""
        wanted = np.asarray(values).astype(np.int64)
        edges = np.concatenate([[0], self._wraps, [len(self._low)]])
        flat, found = wanted.reshape(-1), np.empty(wanted.size, np.int64)
        turns = np.clip(flat >> _LOW_BITS, -1, len(edges) - 1)
        for turn in np.unique(turns).tolist():
            here = turns == turn
            if not 0 <= turn < len(edges) - 1:
                found[here] = 0 if turn < 0 else len(self._low)
                continue
            start, stop = edges[turn : turn + 2].tolist()
            low = (flat[here] & 0xFFFFFFFF).astype(np.uint32)
            found[here] = start + np.searchsorted(self._low[start:stop], low, side=side)
        return found.reshape(wanted.shape) if wanted.ndim else found[0]


def write_offsets(
    folder: Path, count: int, pieces: Callable[[], Iterable[NDArray[np.int64]]]
) -> tuple[FileRecord, LowOffsets | None]:
    """Write ``count`` offsets, which are given twice.

    Returns:
        what the card says of the file, and of what it leaves out, if it does.
    """
    path, wraps = folder / OFFSETS_NAME, list[int]()
    if count <= MANY_DOCUMENTS:
        return write_npy(path, (count,), INT64, pieces()), None

    def low() -> Iterator[NDArray[np.uint32]]:
        number = 0
        for piece in pieces():
            edges = np.arange(len(wraps) + 1, (int(piece[-1]) >> _LOW_BITS) + 1, dtype=np.int64)
            wraps.extend((number + np.searchsorted(piece, edges << _LOW_BITS)).tolist())
            number += len(piece)
            yield piece.astype(UINT32)

    record = write_npy(path, (count,), UINT32, low())
    whole = pieces_record((count,), INT64, pieces())
    return record, LowOffsets(hash=whole.hash, wraps=tuple(wraps))


def map_offsets(folder: Path, card: Card) -> NDArray[np.int64] | Offsets:
    """The offsets of a pool's folder, mapped, as its card says that they are kept."""
    path, count = folder / OFFSETS_NAME, card.num_documents + 1
    if card.low_offsets is None:
        return map_npy(path, count, INT64)
    return Offsets(map_npy(path, count, UINT32), card.low_offsets.wraps)


def open_low(folder: Path, card: Card, hashed: int) -> Offsets:
    """Offsets that are kept in part; a file of at most ``hashed`` bytes is compared with its hashes at once.

    Raises:
        RecipeError: they are not from 0 to the tokens of the pool, or not those that the card states.
    """
    offsets = map_offsets(folder, card)
    assert isinstance(offsets, Offsets)
    ends, last = [int(offsets[0]), int(offsets[-1])], sum(part.tokens for part in card.parts)
    given, expected = f"numbers from {ends[0]} to {ends[1]}", f"from 0 to {last}, as its card says"
    assert card.low_offsets is not None
    wrong, stated = ends != [0, last], card.low_offsets.hash
    if not wrong and card.files[OFFSETS_NAME].bytes <= hashed:
        found = npy_record(offsets, INT64).hash  # of the map that is there: no file is opened again
        wrong, given, expected = (
            found != stated,
            f"contents with hash {found[:16]}…",
            f"{stated[:16]}… (its card)",
        )
    if wrong:
        raise RecipeError.single(
            str(folder), str(folder / OFFSETS_NAME), given=given, expected=expected,
            fix="copy the file again, or prepare the pool again",
        )  # fmt: skip
    return offsets


def boundary_fault(folder: Path, card: Card, name: str) -> tuple[str, str] | None:
    """The hash that a card states of a file and the one that is found, where they are not the same."""
    stated, found = card.files[name].hash, file_hash(folder / name)
    if found == stated and name == OFFSETS_NAME and card.low_offsets is not None:
        stated, found = card.low_offsets.hash, npy_record(map_offsets(folder, card), INT64).hash
    return None if found == stated else (stated, found)


def found_low(folder: Path) -> LowOffsets | None:
    """What a card says of offsets that are kept in part, from the file alone; None of whole ones.

    No document has more than 2**31 tokens: low bits that fall begin anew, once.
    """
    found = np.load(folder / OFFSETS_NAME, mmap_mode="r")
    if found.dtype != UINT32:
        return None
    pieces = ((at, found[at : at + _PIECE + 1]) for at in range(0, len(found) - 1, _PIECE))
    falls = [at + 1 + np.flatnonzero(low[1:] < low[:-1]) for at, low in pieces]
    wraps = tuple(np.concatenate(falls).tolist())
    return LowOffsets(hash=npy_record(Offsets(found, wraps), INT64).hash, wraps=wraps)
