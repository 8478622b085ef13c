"""Where bytes are kept: a file of this machine, or an object of a store that fsspec opens."""

from __future__ import annotations

import errno
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any

import fsspec

from recipe.config.extras import how_to_install
from recipe.errors import Problem, RecipeError

#: Bytes of one request to a store; so much of an object is in memory.
REQUEST_BYTES = 16 << 20

#: What stores call the version of an object, the surest first; only one of them is looked at, since a
#: listing and a look at one object may state times with different digits.
VERSIONS = (
    *("ETag", "etag", "md5Hash", "content_md5", "generation"),
    *("LastModified", "last_modified", "updated", "modified", "mtime", "created"),
)


@dataclass(frozen=True, slots=True)
class Remote:
    """An object of a store, such as ``s3://bucket/web/0001.jsonl.zst``."""

    url: str

    def __str__(self) -> str:
        """The URL."""
        return self.url

    @property
    def suffix(self) -> str:
        """The name's last suffix, with its dot."""
        return PurePosixPath(self.url).suffix

    def __truediv__(self, name: str) -> Remote:
        """An object below this one."""
        return Remote(f"{self.url.rstrip('/')}/{name}")


Stored = Path | Remote


def stored(source: str | Path) -> Stored:
    """The place that a path or a URL means; ``file://`` is this machine.

    >>> stored("s3://bucket/a.jsonl"), stored("file:///texts/a.jsonl")
    (Remote(url='s3://bucket/a.jsonl'), PosixPath('/texts/a.jsonl'))
    """
    if isinstance(source, str) and "://" in source:
        if source.startswith("file://"):
            return Path(source.removeprefix("file://"))
        return Remote(source)
    return Path(source)


@dataclass(frozen=True, slots=True)
class State:
    """What can be known of a file without reading it."""

    size: int
    stamp: int
    """Nanoseconds of its last change; of an object, a number made of its version; -1: not known."""


def state_of(place: Stored) -> State | None:
    """Size and stamp at this moment; None: there is no such file."""
    if isinstance(place, Remote):
        with _told(place):
            return _remote_state(place)
    try:
        state = place.stat()
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:  # a link that leads to itself is none
            return None
        raise
    return State(state.st_size, state.st_mtime_ns)


def open_stored(place: Stored) -> io.RawIOBase:
    """The stored bytes, not buffered.

    Raises:
        RecipeError: a store cannot be reached, or does not give the object; also while reading.
    """
    return _RemoteBytes(place) if isinstance(place, Remote) else place.open("rb", buffering=0)


def objects_below(place: Remote) -> tuple[bool, list[tuple[Remote, State]]] | None:
    """Whether it is a folder, and the object itself or all objects below it, sorted; None: nothing is there.

    Raises:
        RecipeError: the store cannot be reached, or does not say how long an object is.
    """
    with _told(place):
        if (state := _remote_state(place)) is not None:
            return False, [(place, state)]
        system, path = _system(place)
        found: Mapping[str, Mapping[str, Any]] = system.find(path, detail=True)
        # The scheme stays as it was written: s3a:// is not made s3://.
        scheme = place.url.partition("://")[0]
        names = sorted(name for name in found if not name.endswith("/"))
        objects = [
            (Remote(f"{scheme}://{name.removeprefix(f'{scheme}://').lstrip('/')}"), _state(name, found[name]))
            for name in names
        ]
        return (True, objects) if found else None


def path_in_store(place: Remote) -> PurePosixPath:
    """Bucket and key of an object, from which names are made."""
    return PurePosixPath("/" + place.url.partition("://")[2].strip("/"))


def _system(place: Remote) -> tuple[Any, str]:
    """The file system of a URL, which remembers no listing, and the path in it."""
    system, path = fsspec.url_to_fs(place.url)
    system.invalidate_cache()
    return system, path


def _remote_state(place: Remote) -> State | None:
    """Of an object; None: nothing is there, or a folder."""
    system, path = _system(place)
    try:
        info: Mapping[str, Any] = system.info(path)
    except FileNotFoundError:
        return None
    return None if info.get("type") == "directory" else _state(place.url, info)


def _state(name: str, info: Mapping[str, Any]) -> State:
    size = info.get("size")
    if size is None:
        expected, fix = "an object whose size is known", "copy it to this machine and name the copy"
        raise RecipeError.single("sources", name, given="no size", expected=expected, fix=fix)
    version = next((info[key] for key in VERSIONS if info.get(key) is not None), None)
    if version is None:
        return State(int(size), -1)
    if isinstance(
        version, datetime
    ):  # where one call gives a time, another one of the same store gives seconds
        version = version.timestamp()
    words = f"{version:.3f}" if isinstance(version, float) else str(version).strip('"')
    digest = blake2b(words.encode(), digest_size=8).digest()
    return State(int(size), int.from_bytes(digest, "big") >> 1)


class _RemoteBytes(io.RawIOBase):
    """An object's bytes; whatever goes wrong is told with its name."""

    def __init__(self, place: Remote) -> None:
        super().__init__()
        self._place = place
        with _told(place):
            system, path = _system(place)
            self._file = system.open(path, "rb", block_size=REQUEST_BYTES)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with _told(self._place):
            data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


@contextmanager
def _told(place: Remote) -> Iterator[None]:
    """Faults of a store as faults of the user's input, which name the object."""
    try:
        yield
    except (RecipeError, MemoryError):
        raise
    except Exception as error:
        # Each store's package has exceptions of its own; none of them is a fault of this program.
        raise RecipeError("sources", [_unreachable(place, error)]) from error


def _unreachable(place: Remote, error: Exception) -> Problem:
    if isinstance(error, ImportError):
        scheme = place.url.partition("://")[0]
        extra = how_to_install("s3") if scheme in ("s3", "s3a") else "install what it names"
        return Problem(place.url, str(error), f"a package that opens {scheme}://", extra)
    words = " ".join(str(error).split()) or type(error).__name__
    fix = "check name and credentials; then run the same again: what is prepared stays"
    return Problem(place.url, f"{type(error).__name__}: {words:.300}", "an object that can be read", fix)


def read_small(place: Stored) -> bytes:
    """All of a small file."""
    with io.BufferedReader(open_stored(place)) as file:
        return file.read()
