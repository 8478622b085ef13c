"""Files of ours that say where documents of somebody else's file end, with their own hash."""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.foreign.token_file import refuse
from recipe.pools.mapped import map_array, map_npy

ENDS = "ends"
"""Ending of such files."""
INT64 = np.dtype("<i8")
_HEAD = 128
_DIGEST = 32
_BYTE = np.dtype("u1")


class EndsWriter:
    """A ``.npy`` file of int64 whose length is known when it is closed, and two hashes behind it."""

    def __init__(self, out: BinaryIO) -> None:
        """Into a file that is open for writing."""
        self.count = 0
        self._out, self._digest = out, hashlib.blake2b(digest_size=_DIGEST)
        out.write(_header(0))

    def write(self, ends: NDArray[np.integer]) -> None:
        """Append."""
        data = np.ascontiguousarray(ends, INT64).data
        self._out.write(data)
        self._digest.update(data)
        self.count += len(ends)

    def close(self, tokens_digest: bytes = bytes(_DIGEST)) -> None:
        """Write how many there are, their hash, and that of the tokens where they were decoded."""
        self._out.write(self._digest.digest() + tokens_digest)
        self._out.seek(0)
        self._out.write(_header(self.count))
        self._out.flush()


def map_ends(path: Path, num_tokens: int) -> NDArray[np.int64]:
    """int64[documents] of such a file, mapped.

    Raises:
        RecipeError: it was damaged: it is no such file, or does not end with the tokens.
    """
    with _told_as_damaged(path):
        ends = map_npy(path, None, INT64)
    if (int(ends[-1]) if len(ends) else 0) != num_tokens:
        raise damaged(path, f"ends up to token {int(ends[-1]) if len(ends) else 0}", f"up to {num_tokens}")
    return ends


def read_ends(path: Path, num_tokens: int) -> NDArray[np.int64]:
    """The same, compared with its hash.

    Raises:
        RecipeError: it was damaged.
    """
    ends = map_ends(path, num_tokens)
    found, expected = (
        hashlib.blake2b(ends.data, digest_size=_DIGEST).hexdigest(),
        _digests(path, len(ends))[0],
    )
    if found != expected:
        raise damaged(path, f"contents with hash {found[:16]}…", f"{expected[:16]}…, as it states")
    return ends


def tokens_digest(path: Path, num_tokens: int) -> str:
    """The hash of the decoded tokens, as such a file states it."""
    return _digests(path, len(map_ends(path, num_tokens)))[1]


def damaged(path: Path, given: str, expected: str) -> RecipeError:
    """The error for a file of ours that is no longer what was written."""
    fix = f"remove {path.name} and what is called like it: they are made again from the token file"
    return refuse(path, given=given, expected=expected, fix=fix)


@contextmanager
def _told_as_damaged(path: Path) -> Iterator[None]:
    """Say of a file of ours that cannot be read that it is made anew: it is no file of a pool."""
    try:
        yield
    except RecipeError as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno == errno.EMFILE:
            raise  # nothing is wrong with the file
        problem = error.problems[0]
        raise damaged(path, str(problem.given), problem.expected) from error


def _digests(path: Path, count: int) -> tuple[str, str]:
    with _told_as_damaged(path):
        tail = map_array(path, _BYTE, 2 * _DIGEST, start_byte=_HEAD + 8 * count).tobytes()
    return tail[:_DIGEST].hex(), tail[_DIGEST:].hex()


def _header(count: int) -> bytes:
    """128 bytes, whatever the count: it is written before the numbers are there, and again behind them."""
    text = repr({"descr": npy_format.dtype_to_descr(INT64), "fortran_order": False, "shape": (count,)})
    body = text.encode("latin1").ljust(_HEAD - 11) + b"\n"
    return npy_format.magic(1, 0) + len(body).to_bytes(2, "little") + body
