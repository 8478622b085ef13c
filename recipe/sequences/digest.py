"""Digests of rows that a trainer was handed: one a row, joined by XOR, so that ranks need not talk.

The digest of a row is blake2b-128 of the step, the row's place in the global batch, and what the row
holds: ids, labels, positions and segments, each as 32-bit integers. The digest of a step is the XOR of
its rows', in any order and from any number of ranks; a row that is missing, twice there, changed or in
another place changes it.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

FIELDS = ("input_ids", "labels", "position_ids", "segment_ids")
"""What of a batch is hashed, in this order; the attention mask follows from the segments."""
WORDS = 2
"""A digest is so many unsigned 64-bit words."""
_PERSON = b"recipe-row-1"
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1


def row_digests(batch: Mapping[str, ArrayLike], step: int, rows: ArrayLike) -> NDArray[np.uint64]:
    """The digest of each row of a batch, or of some rows of one.

    Args:
        batch: ``input_ids``, ``labels``, ``position_ids`` and ``segment_ids`` [n, context], of any integer
            type: arrays, or tensors of the host's memory. Other keys are not looked at.
        step: the step they are of.
        rows: int[n], the place of each row in the global batch.

    Returns:
        uint64[n, 2].

    Raises:
        ValueError: a field is missing, has another shape or no whole numbers of 32 bits.

    >>> zeros = {name: np.zeros((2, 4), np.int64) for name in FIELDS}
    >>> one, other = row_digests(zeros, 7, [0, 1])
    >>> bool((one == other).all()), step_digest([one, other]) == step_digest([other, one])
    (False, True)
    """
    places = np.asarray(rows, np.int64)
    if step < 0 or (len(places) and places.min() < 0):
        raise ValueError(f"step {step}, rows {places.tolist()}: none is below 0")
    cells = _cells(batch, len(places))
    data = b"".join(_digest(cell, step, place) for cell, place in zip(cells, places.tolist(), strict=True))
    return np.frombuffer(data, "<u8").reshape(-1, WORDS).astype(np.uint64)


def _digest(cell: NDArray[np.int32], step: int, place: int) -> bytes:
    where = struct.pack("<QQ", step, place)
    return hashlib.blake2b(cell.data, digest_size=8 * WORDS, person=_PERSON, salt=where).digest()


def step_digest(digests: ArrayLike) -> str:
    """The XOR of digests of rows or ranks, uint64[n, 2], as 32 hexadecimal digits.

    >>> step_digest(np.array([[1, 2], [1, 3]], np.uint64))
    '00000000000000000100000000000000'
    """
    words = np.asarray(digests, np.uint64).reshape(-1, WORDS)
    joined: NDArray[np.uint64] = np.bitwise_xor.reduce(words, axis=0)
    return joined.astype("<u8").tobytes().hex()


def words_of(digest: str) -> NDArray[np.uint64]:
    """uint64[2]: what :func:`step_digest` wrote; raises ValueError for another text."""
    data = bytes.fromhex(digest)
    if len(data) != 8 * WORDS:
        raise ValueError(f"{digest!r} is no digest of {16 * WORDS} hexadecimal digits")
    return np.frombuffer(data, "<u8").astype(np.uint64)


def _cells(batch: Mapping[str, ArrayLike], count: int) -> NDArray[np.int32]:
    """int32[count, fields, context]: what is hashed of each row, contiguous."""
    if missing := [name for name in FIELDS if name not in batch]:
        raise ValueError(f"the batch lacks {', '.join(missing)}: a digest is over {', '.join(FIELDS)}")
    arrays: list[NDArray[Any]] = [np.asarray(batch[name]) for name in FIELDS]
    shape = arrays[0].shape
    for name, array in zip(FIELDS, arrays, strict=True):
        if array.ndim != 2 or array.shape != shape or len(array) != count:
            raise ValueError(f"{name} is {list(array.shape)}, expected [{count}, context] as of input_ids")
        if array.dtype.kind not in "iu":
            raise ValueError(f"{name} is of type {array.dtype}, expected whole numbers")
        if array.size and (array.min() < _LEAST or array.max() > _MOST):
            raise ValueError(f"{name} holds numbers beyond 32 bits")
    cells = np.empty((count, len(FIELDS), *shape[1:]), "<i4")
    for place, array in enumerate(arrays):
        cells[:, place] = array
    return cells
