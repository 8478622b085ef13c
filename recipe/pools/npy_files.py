"""``.npy`` files of a pool: written piece by piece, with what its card says of them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from recipe.pools.blocks import file_hash
from recipe.pools.card import FileRecord

_PIECE = 1 << 20


def write_npy(
    path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], pieces: Iterable[NDArray[Any]]
) -> FileRecord:
    """What a card says of the file, which is written piece by piece and hashed on the way."""
    with path.open("wb") as file:
        return _hashed(_bytes(shape, dtype, pieces), file)


def npy_record(array: Any, dtype: np.dtype[Any], count: int | None = None) -> FileRecord:
    """What a card would say of the file that holds an array, or its first ``count`` rows; nothing is written.

    >>> npy_record(np.arange(3), np.dtype("<i8")).bytes
    152
    """
    count = len(array) if count is None else count
    pieces = (array[start : min(start + _PIECE, count)] for start in range(0, count, _PIECE))
    return pieces_record((count, *array.shape[1:]), dtype, pieces)


def pieces_record(shape: tuple[int, ...], dtype: np.dtype[Any], pieces: Iterable[NDArray[Any]]) -> FileRecord:
    """What a card would say of the file that ``write_npy`` writes of these pieces."""
    return _hashed(_bytes(shape, dtype, pieces))


def file_record(path: Path) -> FileRecord:
    """What a card says of any file that is there, which is read."""
    return FileRecord(bytes=path.stat().st_size, hash=file_hash(path))


def _bytes(shape: tuple[int, ...], dtype: np.dtype[Any], pieces: Iterable[NDArray[Any]]) -> Iterator[bytes]:
    head = io.BytesIO()
    header = {"descr": npy_format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy_format.write_array_header_1_0(head, header)
    yield head.getvalue()
    for piece in pieces:
        yield np.ascontiguousarray(piece, dtype).tobytes()


def _hashed(pieces: Iterable[bytes], out: io.BufferedWriter | None = None) -> FileRecord:
    digest, size = hashlib.blake2b(digest_size=32), 0
    for data in pieces:
        digest.update(data)
        size += len(data)
        if out is not None:
            out.write(data)
    return FileRecord(bytes=size, hash=digest.hexdigest())
