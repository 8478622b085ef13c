"""Content hashes of fixed-size blocks, computed while the bytes go by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK_BYTES = 4 << 20
DIGEST_BYTES = 16


def raw_bytes(array: NDArray[Any]) -> memoryview:
    """The bytes of a contiguous array, not copied."""
    return array.view(np.uint8).data if array.size else memoryview(b"")


def block_hash() -> hashlib.blake2b:
    """The hash of one block, or of one document, to be fed its bytes: blake2b, 16 bytes."""
    return hashlib.blake2b(digest_size=DIGEST_BYTES)


def block_digest(data: bytes | memoryview) -> bytes:
    """Hash of one block: blake2b, 16 bytes."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).digest()


def root_hash(digests: Iterable[bytes]) -> str:
    """Hash of a part: blake2b-256 over its blocks' hashes, as hexadecimal text."""
    return hashlib.blake2b(b"".join(digests), digest_size=32).hexdigest()


def file_hash(path: Path) -> str:
    """blake2b-256 of a whole file, as hexadecimal text."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


def document_hash(body: NDArray[np.integer[Any]]) -> str:
    """Hash of a document's body tokens as 32-bit integers, whatever the width they are stored in."""
    return block_digest(np.ascontiguousarray(body, dtype="<i4").tobytes()).hex()


def numbers_hash(numbers: NDArray[np.integer[Any]]) -> str:
    """Hash of a list of documents by number."""
    return block_digest(numbers.astype("<i8").tobytes()).hex()


def num_blocks(num_bytes: int, block_bytes: int) -> int:
    """Blocks of a file, the last one possibly short."""
    return -(-num_bytes // block_bytes)


class BlockHasher:
    """Hashes of the blocks of a stream of bytes."""

    def __init__(self, block_bytes: int = BLOCK_BYTES) -> None:
        """Blocks of ``block_bytes`` bytes."""
        self._block_bytes = block_bytes
        self._open = block_hash()
        self._filled = 0
        self._digests: list[bytes] = []

    def update(self, data: memoryview) -> None:
        """Take the next bytes."""
        while len(data):
            taken = data[: self._block_bytes - self._filled]
            self._open.update(taken)
            self._filled += len(taken)
            data = data[len(taken) :]
            if self._filled == self._block_bytes:
                self._close_block()

    def digests(self) -> list[bytes]:
        """Hashes of all blocks, the short last one included."""
        if self._filled:
            self._close_block()
        return self._digests

    def _close_block(self) -> None:
        self._digests.append(self._open.digest())
        self._open = block_hash()
        self._filled = 0
