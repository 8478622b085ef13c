"""Bytes of a file, decompressed, in lines that end at ``\\n`` alone; bounded memory."""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import zstandard

from recipe.errors import RecipeError
from recipe.text.stores import Stored, open_stored

#: A buffer of the file, of decompressed bytes, of the tail of a line that is too long.
BUFFER_BYTES = 1 << 17
#: Compressed bytes given to zstd at once: its output is not bounded by itself (at most 128 KiB for 4 bytes).
ZSTD_INPUT_BYTES = 1 << 13


class TruncatedError(Exception):
    """The archive stops before its end, or is damaged."""


class _Hashing(io.RawIOBase):
    """A file that feeds every byte read from it to a hash."""

    def __init__(self, place: Stored, digest: Any) -> None:
        super().__init__()
        self._file: Any = open_stored(place)
        self._digest = digest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self._file.readinto(buffer)
        if self._digest is not None:
            self._digest.update(memoryview(buffer)[:count])
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


class _Zstd(io.RawIOBase):
    """Frames of a .zst file, one after the other; a frame without its end is an error.

    The library's own stream reader takes a truncated frame for the end of the file.
    """

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self._frame: Any = None
        self._input = b""
        self._output = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._output:
            if not self._fill():
                return 0
        count = min(len(buffer), len(self._output))
        buffer[:count] = self._output[:count]
        self._output = self._output[count:]
        return count

    def _fill(self) -> bool:
        """Decompress some more; False at the end of the file."""
        if not self._input:
            self._input = self._file.read(ZSTD_INPUT_BYTES)
            if not self._input:
                if self._frame is not None:
                    raise TruncatedError("the last zstd frame has no end")
                return False
        if self._frame is None:
            self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._output = memoryview(self._frame.decompress(self._input))
        self._input = b""
        if self._frame.eof:
            self._input = self._frame.unused_data
            self._frame = None
        return True


@contextmanager
def open_bytes(place: Stored, digest: Any = None) -> Iterator[IO[bytes]]:
    """The contents of a file, decompressed by its suffix (``.gz``, ``.zst``; ``.tgz``, ``.tzst``).

    All members of a .gz and all frames of a .zst are read. ``digest`` (an object of `hashlib`) is
    fed the bytes of the file as they are stored.

    Raises:
        TruncatedError: while reading, at the place where the archive stops.
    """
    stored = io.BufferedReader(_Hashing(place, digest), BUFFER_BYTES)
    try:
        if place.suffix.lower() in (".gz", ".tgz"):
            yield gzip.GzipFile(fileobj=stored, mode="rb")  # type: ignore[misc]
        elif place.suffix.lower() in (".zst", ".tzst"):
            yield io.BufferedReader(_Zstd(stored), BUFFER_BYTES)
        else:
            yield stored
        while digest is not None and stored.read(BUFFER_BYTES):
            pass  # what a stop left unread belongs to the digest
    finally:
        stored.close()


@contextmanager
def local_file(place: Stored, digest: Any = None) -> Iterator[Path]:
    """A file of this machine with the stored bytes, for readers that go to and fro in it.

    An object of a store is fetched once, into the folder for temporary files (``TMPDIR``), and removed
    afterwards. ``digest`` is fed all stored bytes.

    Raises:
        RecipeError: there is no space for it.
    """
    with io.BufferedReader(_Hashing(place, digest), BUFFER_BYTES) as stored:
        if isinstance(place, Path):
            while digest is not None and stored.read(BUFFER_BYTES):
                pass
            yield place
            return
        with tempfile.NamedTemporaryFile(prefix="recipe-") as copy:
            try:
                shutil.copyfileobj(stored, copy, BUFFER_BYTES)
                copy.flush()
            except OSError as error:
                raise RecipeError.single(
                    "sources", str(place), given=f"{error.strerror} ({tempfile.gettempdir()})",
                    expected="space for a copy of it while it is read",
                    fix="set TMPDIR to a folder with more space, then run the same again: it goes on",
                ) from error  # fmt: skip
            yield Path(copy.name)


def read_line(stream: IO[bytes], limit: int) -> tuple[bytes, bool]:
    """The next line with its ``\\n`` (b"" at the end); True if it had more than ``limit`` bytes and was cut.

    The rest of a cut line is read and let go, so memory stays bounded.

    Raises:
        TruncatedError: the archive stops inside the line.

    >>> read_line(io.BytesIO("a\\u2028b\\nc".encode()), 100)
    (b'a\\xe2\\x80\\xa8b\\n', False)
    """
    with truncation():
        line = stream.readline(limit + 1)
        if len(line) <= limit or line.endswith(b"\n"):
            return line, False
        rest = stream.readline(BUFFER_BYTES)
        while rest and not rest.endswith(b"\n"):
            rest = stream.readline(BUFFER_BYTES)
        return line, True


def read_all(stream: IO[bytes], limit: int) -> tuple[bytes, bool]:
    """The whole stream, and whether it has more than ``limit`` bytes and was cut.

    Raises:
        TruncatedError: the archive stops before its end.
    """
    with truncation():
        data = bytearray()
        while len(data) <= limit and (more := stream.read(BUFFER_BYTES)):
            data += more
        return bytes(data), len(data) > limit


@contextmanager
def truncation() -> Iterator[None]:
    """Every library's word for a damaged archive, as one."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError, tarfile.TarError) as error:
        raise TruncatedError(str(error)) from error
