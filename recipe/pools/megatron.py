"""Megatron's ``.idx`` files (MMIDIDX, version 1): written beside our parts, read from anybody's."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.blocks import raw_bytes
from recipe.pools.mapped import cannot_open, map_array, too_short

MAGIC = b"MMIDIDX\x00\x00"
VERSION = 1
_HEADER = struct.Struct("<9sQBQQ")
_DTYPES: dict[int, np.dtype[Any]] = {
    code: np.dtype(name).newbyteorder("<")
    for code, name in {1: "u1", 2: "i1", 3: "i2", 4: "i4", 5: "i8", 6: "f8", 7: "f4", 8: "u2"}.items()
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_LENGTH = np.dtype("<i4")
_PLACE = np.dtype("<i8")
_PIECE = 1 << 18
"""Documents whose places are computed at once."""


def index_bytes(num_sequences: int, num_documents: int) -> int:
    """Size of an index without the optional modes at its end."""
    return _HEADER.size + 12 * num_sequences + 8 * (num_documents + 1)


def write_index(file: BinaryIO, lengths: NDArray[np.integer[Any]], dtype: np.dtype[Any]) -> None:
    """Write the index of a part in which every document is one sequence.

    Args:
        file: open for writing.
        lengths: stored tokens of each document, each below 2**31.
        dtype: of the token file.
    """
    count = len(lengths)
    file.write(_HEADER.pack(MAGIC, VERSION, _CODES[dtype], count, count + 1))
    pieces = [slice(start, start + _PIECE) for start in range(0, count, _PIECE)]
    for piece in pieces:
        file.write(raw_bytes(lengths[piece].astype(_LENGTH)))
    start = 0
    for piece in pieces:
        sizes = lengths[piece].astype(_PLACE) * dtype.itemsize
        stops = start + np.cumsum(sizes, dtype=_PLACE)
        file.write(raw_bytes(stops - sizes))
        start = int(stops[-1])
    for first in range(0, count + 1, _PIECE):
        file.write(raw_bytes(np.arange(first, min(first + _PIECE, count + 1), dtype=_PLACE)))


@dataclass(frozen=True)
class Index:
    """A read index; its arrays are mapped when asked for."""

    path: Path
    dtype: np.dtype[Any]
    num_sequences: int
    num_documents: int
    num_tokens: int

    def lengths(self) -> NDArray[np.int32]:
        """int32[num_sequences]: tokens of each sequence."""
        return map_array(self.path, _LENGTH, self.num_sequences, start_byte=_HEADER.size)

    def pointers(self) -> NDArray[np.int64]:
        """int64[num_sequences]: first byte of each sequence."""
        start = _HEADER.size + 4 * self.num_sequences
        return map_array(self.path, _PLACE, self.num_sequences, start_byte=start)

    def documents(self) -> NDArray[np.int64]:
        """int64[num_documents + 1]: first sequence of each document, then the number of sequences."""
        start = _HEADER.size + 12 * self.num_sequences
        return map_array(self.path, _PLACE, self.num_documents + 1, start_byte=start)

    def offsets(self) -> NDArray[np.int64]:
        """int64[num_documents + 1]: first token of each document, then the number of tokens.

        Raises:
            RecipeError: sequences leave gaps, overlap, or documents run backwards.
        """
        lengths, documents = self.lengths(), self.documents()
        ends = np.zeros(self.num_sequences + 1, dtype=np.int64)
        np.cumsum(lengths, dtype=np.int64, out=ends[1:])
        self._check_order(lengths, documents)
        if not np.array_equal(ends[:-1] * self.dtype.itemsize, self.pointers()):
            at = int(np.flatnonzero(ends[:-1] * self.dtype.itemsize != self.pointers())[0])
            raise self.wrong(
                f"sequence {at} at byte {self.pointers()[at]}",
                f"byte {ends[at] * self.dtype.itemsize}: sequences one after another, without gaps",
            )
        if ends[-1] != self.num_tokens:
            raise self.wrong(
                f"lengths that sum to {ends[-1]}", f"{self.num_tokens} tokens, as the token file holds"
            )
        return ends[documents]

    def _check_order(self, lengths: NDArray[np.int32], documents: NDArray[np.int64]) -> None:
        if len(lengths) and int(lengths.min()) < 0:
            at = int(np.argmax(lengths < 0))
            raise self.wrong(f"sequence {at} of {lengths[at]} tokens", "lengths of 0 or more")
        if documents[0] != 0 or bool(np.any(np.diff(documents) < 0)):
            raise self.wrong("document entries that run backwards", "entries from 0 upwards")

    def wrong(self, given: str, expected: str) -> RecipeError:
        """The error for an index that contradicts itself or its token file."""
        return _wrong(self.path, given, expected)


def read_index(path: Path) -> Index:
    """Header and last entries of an index, compared with its size and its token file's.

    Reads a fixed number of bytes, whatever the size.

    Raises:
        RecipeError: not an index, cut short, or contradicting its token file.
    """
    try:
        size = path.stat().st_size
        bin_bytes = path.with_suffix(".bin").stat().st_size
        with path.open("rb") as file:
            header = file.read(_HEADER.size)
    except OSError as error:
        raise cannot_open(Path(error.filename or path), error) from error
    if len(header) < _HEADER.size or not header.startswith(MAGIC):
        raise _wrong(
            path, f"a file that begins with {header[:9]!r}", f"a Megatron index, which begins with {MAGIC!r}"
        )
    _, version, code, num_sequences, num_entries = _HEADER.unpack(header)
    if version != VERSION:
        raise _wrong(path, f"index version {version}", f"version {VERSION}")
    dtype = _DTYPES.get(code)
    if dtype is None or dtype.kind == "f":
        raise _wrong(
            path, f"tokens of type code {code} ({dtype})", "an integer type (codes 1, 2, 3, 4, 5, 8)"
        )
    if num_entries < 1:
        raise _wrong(path, "no document entries", "at least one document entry")
    if size < (needed := index_bytes(num_sequences, num_entries - 1)):
        raise too_short(path, size, needed)
    index = Index(path, dtype, num_sequences, num_entries - 1, bin_bytes // dtype.itemsize)
    _check_ends(index, bin_bytes)
    return index


def _check_ends(index: Index, bin_bytes: int) -> None:
    """The last document entry, pointer and length agree with the counts and with the token file."""
    last = int(index.documents()[-1])
    if last != index.num_sequences:
        raise index.wrong(
            f"{last} as its last document entry", f"{index.num_sequences}, its number of sequences"
        )
    needed = 0
    if index.num_sequences:
        needed = int(index.pointers()[-1]) + int(index.lengths()[-1]) * index.dtype.itemsize
    if bin_bytes < needed:
        raise too_short(index.path.with_suffix(".bin"), bin_bytes, needed)
    if bin_bytes > needed:
        raise _wrong(
            index.path.with_suffix(".bin"), f"{bin_bytes} bytes", f"{needed} bytes, as its index says"
        )


def _wrong(path: Path, given: str, expected: str) -> RecipeError:
    return RecipeError.single(
        str(path.parent), str(path), given=given, expected=expected,
        fix="copy the pair again from where it is whole, or write it again from its text",
    )  # fmt: skip
