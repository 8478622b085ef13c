"""Arrays that live in files: mapped read-only, without copying, safe for threads and forks."""

from __future__ import annotations

import errno
import hashlib
import io
import mmap
import os
import sys
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from recipe.errors import RecipeError

_WANTED_OPEN_FILES = 65_536
_MAP_OPTIONS: dict[str, Any] = {"trackfd": False} if sys.version_info >= (3, 13) else {}
_NPY_HEAD = 65_536 + 10
_limit_raised = False


def map_array(path: Path, dtype: np.dtype[Any], count: int, *, start_byte: int = 0) -> NDArray[Any]:
    """``count`` numbers of a file from ``start_byte`` on, as a read-only array over the file's pages.

    Raises:
        RecipeError: the file is missing, too short, or cannot be mapped.
    """
    if count == 0:
        return np.frombuffer(b"", dtype=dtype)
    pages = _pages(path, start_byte + count * dtype.itemsize)
    return np.frombuffer(pages, dtype=dtype, count=count, offset=start_byte)


def map_npy(
    path: Path, count: int | None, dtype: np.dtype[Any], *, expected_hash: str | None = None
) -> NDArray[Any]:
    """The one-dimensional array of a ``.npy`` file, whose type and (unless None) length are known beforehand.

    Raises:
        RecipeError: another shape, type or length; or other contents than ``expected_hash`` (blake2b-256).
    """
    pages = _pages(path, 1)
    head = io.BytesIO(pages[:_NPY_HEAD])
    try:
        if npy_format.read_magic(head) != (1, 0):
            raise ValueError("its .npy version is not 1.0")
        shape, fortran, found = npy_format.read_array_header_1_0(head)
    except (ValueError, SyntaxError, TokenError) as error:  # what NumPy lets through of a damaged header
        raise _wrong(path, f"not a .npy file ({error})", "a .npy file") from error
    if count is None and len(shape) == 1:
        count = shape[0]
    if count is None or (shape, found) != ((count,), dtype) or fortran:
        raise _wrong(path, f"{found}{list(shape)}", f"{dtype}[{count}]")
    if len(pages) < (needed := head.tell() + count * dtype.itemsize):
        raise too_short(path, len(pages), needed)
    if expected_hash is not None:
        found_hash = hashlib.blake2b(pages, digest_size=32).hexdigest()
        if found_hash != expected_hash:
            raise _wrong(path, f"contents with hash {found_hash[:16]}…", f"{expected_hash[:16]}… (its card)")
    return np.frombuffer(pages, dtype=dtype, count=count, offset=head.tell())


def _pages(path: Path, needed: int) -> mmap.mmap:
    """The pages of a file of at least ``needed`` bytes; opened once."""
    try:
        with path.open("rb") as file:
            if (size := os.fstat(file.fileno()).st_size) < needed:
                raise too_short(path, size, needed)
            _allow_many_files()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ, **_MAP_OPTIONS)
    except OSError as error:
        raise cannot_open(path, error) from error


def too_short(path: Path, size: int, needed: int) -> RecipeError:
    """The error for a file that has lost its end."""
    given = "an empty file (0 bytes)" if size == 0 else f"{size} bytes"
    return _wrong(path, given, f"{needed} bytes")


def cannot_open(path: Path, error: OSError) -> RecipeError:
    """The error for a file that the system does not open."""
    if error.errno == errno.EMFILE:
        return RecipeError.single(
            str(path.parent), str(path), given="too many open files", expected="a free file descriptor",
            fix="raise the limit of open files (ulimit -n), or store the pool in fewer, larger parts",
        )  # fmt: skip
    return _wrong(path, error.strerror or str(error), "a readable file")


def _wrong(path: Path, given: str, expected: str) -> RecipeError:
    return RecipeError.single(
        str(path.parent), str(path), given=given, expected=expected,
        fix="copy the file again from where it is whole, or prepare the pool again",
    )  # fmt: skip


def _allow_many_files() -> None:
    """Before Python 3.13 a mapping keeps a descriptor: lift the soft limit, once, so that parts fit."""
    global _limit_raised
    if _limit_raised or _MAP_OPTIONS:
        return
    _limit_raised = True
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _WANTED_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
