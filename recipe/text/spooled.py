"""Ids of long texts: on disk, not in memory, until the run that they belong to is stored."""

from __future__ import annotations

import mmap
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.pools.blocks import block_hash, raw_bytes

SLICE_TOKENS = 1 << 20
"""Tokens that are looked at together."""
HELD_TOKENS = 1 << 22
"""Of one document, so many are in memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Spooled:
    """Ids in a file without a name, which goes with the last who knows it."""

    mapped: mmap.mmap
    dtype: np.dtype[Any]

    def __len__(self) -> int:
        """Number of ids."""
        return len(self.mapped) // self.dtype.itemsize


Tokens = NDArray[Any] | Spooled
"""Ids of one document."""


def gathered(arrays: Iterable[NDArray[Any]], dtype: np.dtype[Any], folder: Path | None) -> Tokens:
    """The ids of some arrays, one after the other; many of them in a file in ``folder``, where there is one.

    Raises:
        OSError: the disk is full.

    >>> gathered([np.array([1, 2]), np.array([3])], np.dtype("<u2"), None).tolist()
    [1, 2, 3]
    """
    held: list[NDArray[Any]] = []
    with ExitStack() as opened:
        file = None
        for array in arrays:
            held.append(np.ascontiguousarray(array, dtype=dtype))
            if folder is not None and sum(map(len, held)) > HELD_TOKENS:
                file = file or opened.enter_context(tempfile.TemporaryFile(dir=folder))
                _write(file, held)
                held = []
        if file is None:
            return held[0] if len(held) == 1 else np.concatenate([*held, np.zeros(0, dtype)])
        _write(file, held)
        file.flush()
        return Spooled(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), dtype)


def slices(tokens: Tokens) -> Iterator[NDArray[Any]]:
    """The ids in views of bounded length, each to be used before the next is taken."""
    if isinstance(tokens, Spooled):
        for start in range(0, len(tokens), SLICE_TOKENS):
            count = min(SLICE_TOKENS, len(tokens) - start)
            yield np.frombuffer(tokens.mapped, tokens.dtype, count, start * tokens.dtype.itemsize)
            tokens.mapped.madvise(mmap.MADV_DONTNEED)  # what was read is in the cache, no longer in memory
    else:
        for start in range(0, len(tokens), SLICE_TOKENS):
            yield tokens[start : start + SLICE_TOKENS]


def tokens_digest(tokens: Tokens) -> bytes:
    """Hash of a document's ids as 32-bit integers, as `recipe.pools.blocks.document_hash` has it."""
    digest = block_hash()
    for part in slices(tokens):
        digest.update(raw_bytes(np.ascontiguousarray(part, dtype="<i4")))
    return digest.digest()


def _write(file: Any, arrays: Iterable[NDArray[Any]]) -> None:
    for array in arrays:
        file.write(raw_bytes(array))
