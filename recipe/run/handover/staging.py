"""Files that appear at their place all at once, with the SHA-256 of each; and the archive of them.

Everything is written below a temporary name beside the place. Names are sorted and times fixed, so that
the same contents give the same bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import tarfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Literal, cast

import zstandard

from recipe.errors import Problem, RecipeError

Archive = Literal["tar.zst", "tar.gz", "none"]
ARCHIVES: tuple[Archive, ...] = ("tar.zst", "tar.gz", "none")
SUMS_NAME = "SHA256SUMS"
FIXED_TIME = 315_532_800
"""1980-01-01, the first time that every archive format can state."""
_BLOCK = 1 << 20
_LEVEL = {"tar.zst": 9, "tar.gz": 6}


Watch = Callable[[int], None]
"""Called with bytes that were written, some at a time."""


def watch_nothing(size: int) -> None:
    """For callers that do not watch."""


class Staging:
    """A folder that is being filled, below a temporary name."""

    def __init__(self, folder: Path, watch: Watch = watch_nothing) -> None:
        """Fill ``folder``, which is there and empty."""
        self.folder = folder
        self._sums: dict[str, str] = {}
        self._watch = watch

    def put(self, name: str, data: bytes) -> None:
        """Write one file."""
        with self._file(name) as file:
            file.write(data)
        self._sums[name] = hashlib.sha256(data).hexdigest()

    def copy(self, name: str, source: Path, *, most: int | None = None) -> None:
        """Copy one file, or its first ``most`` bytes, a block at a time; a link is not followed."""
        digest = hashlib.sha256()
        handle = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(handle, "rb", buffering=0) as read, self._file(name) as file:
            left = most
            while data := read.read(_BLOCK if left is None else min(_BLOCK, left)):
                left = None if left is None else left - len(data)
                digest.update(data)
                file.write(data)
                self._watch(len(data))
        self._sums[name] = digest.hexdigest()

    def adopt(self, name: str) -> None:
        """Take up a file, or every file of a folder, that something else wrote below the folder."""
        place = self.folder / name
        files = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
        for path in files:
            self._sums[path.relative_to(self.folder).as_posix()] = sha256_of(path)
            self._watch(path.stat().st_size)

    def sums(self) -> bytes:
        """The list that ``sha256sum -c`` reads: every file, sorted by name."""
        return "".join(f"{self._sums[name]}  {name}\n" for name in sorted(self._sums)).encode()

    @property
    def num_files(self) -> int:
        """Files so far."""
        return len(self._sums)

    def _file(self, name: str) -> IO[bytes]:
        assert is_inside(name), name
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path.open("xb")


def is_inside(name: str) -> bool:
    """Whether a name stays below the folder and is one that a list of checksums can hold as it is."""
    parts = name.split("/")
    return all(part not in ("", ".", "..") for part in parts) and name.isprintable() and "\\" not in name


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_free(out: Path, archive: Archive) -> None:
    """Raise RecipeError unless a folder, and an archive of it, may be written at ``out``."""
    if archive not in ARCHIVES:
        raise ValueError(f"archive is {archive!r}; it is one of {', '.join(ARCHIVES)}")
    if out.name in ("", "..") or not out.name.isprintable() or "\\" in out.name:
        fix = "give the package a folder of its own, such as handover-demo"
        raise RecipeError.single("handover", "OUT", given=repr(str(out)), expected="a new folder", fix=fix)
    problems: list[tuple[Path, str]] = []
    if os.path.lexists(out) and not (out.is_dir() and not out.is_symlink() and not any(out.iterdir())):
        problems.append((out, "a folder with something in it" if out.is_dir() else "a file"))
    packed = archive_path(out, archive)
    if packed is not None:
        problems += [(path, "a file") for path in (packed, sum_path(packed)) if os.path.lexists(path)]
    if problems:
        fix = "choose another name: what is there is never written over"
        raise RecipeError(
            f"{out}: taken", [Problem(str(path), given, "nothing there yet", fix) for path, given in problems]
        )


def archive_path(out: Path, archive: Archive) -> Path | None:
    """Where the archive of a folder goes: beside it."""
    return None if archive == "none" else out.with_name(f"{out.name}.{archive}")


def sum_path(packed: Path) -> Path:
    """Where the checksum of an archive goes: beside it."""
    return packed.with_name(f"{packed.name}.sha256")


@contextmanager
def staged(out: Path, archive: Archive, watch: Watch = watch_nothing) -> Iterator[Staging]:
    """A folder to fill; on leaving it, checksums are added, it is packed, and both appear at their places.

    Raises:
        RecipeError: the system refuses (no space, no permission); nothing is left behind.
    """
    temporary = out.with_name(f".tmp-{out.name}-{uuid.uuid4().hex[:12]}")
    packed, place = temporary.with_name(f"{temporary.name}.archive"), archive_path(out, archive)
    moves = [(temporary, out)]
    if place is not None:
        moves += [(packed, place), (sum_path(packed), sum_path(place))]
    done: list[Path] = []
    try:
        with _told(out):
            out.parent.mkdir(parents=True, exist_ok=True)
            temporary.mkdir()
            staging = Staging(temporary, watch)
            yield staging
            (temporary / SUMS_NAME).write_bytes(staging.sums())
            if place is not None:
                _pack(temporary, out.name, packed, (archive, watch))
                sum_path(packed).write_text(f"{sha256_of(packed)}  {place.name}\n", encoding="utf-8")
            for here, there in moves:
                here.rename(there)
                done.append(there)
    finally:
        _clear([here for here, _ in moves] + (done if len(done) < len(moves) else []))


def _clear(paths: Iterable[Path]) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)
        with suppress(OSError):
            path.unlink()


@contextmanager
def _told(out: Path) -> Iterator[None]:
    """Turn what the system refuses into one RecipeError."""
    try:
        yield
    except OSError as error:
        where = str(error.filename) if error.filename is not None else str(out)
        raise RecipeError.single(
            f"{out}: not handed over",
            where,
            given=f"{error.strerror or error}; {_free(out)}",
            expected="files that can be read, and a folder that can be written, with room",
            fix="free space or repair the folder and call again: nothing was left behind",
        ) from error


def check_space(out: Path, needed: int) -> None:
    """Raise RecipeError when the disk has fewer bytes free than will be written."""
    folder = next((path for path in out.absolute().parents if path.is_dir()), None)
    free = shutil.disk_usage(folder).free if folder is not None else needed
    if free < needed:
        raise RecipeError.single(
            f"{out}: no space",
            str(out),
            given=f"{free:,} bytes free",
            expected=f"{needed:,} bytes, for the folder and its archive",
            fix="free space, choose another disk, or leave the archive out (--archive none)",
        )


def _free(path: Path) -> str:
    for folder in path.absolute().parents:
        with suppress(OSError):
            return f"{shutil.disk_usage(folder).free:,} bytes free"
    return "free space unknown"


def _pack(folder: Path, name: str, path: Path, how: tuple[Archive, Watch]) -> None:
    """A tar file of a folder, in one pass: names sorted, times, owners and modes fixed."""
    archive, watch = how
    with (
        path.open("xb") as file,
        _compressed(file, archive) as sink,
        tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_BLOCK) as tar,
    ):
        for inner in sorted(inner for inner in folder.rglob("*") if inner.is_file()):
            info = tarfile.TarInfo(f"{name}/{inner.relative_to(folder).as_posix()}")
            info.size, info.mtime, info.mode = inner.stat().st_size, FIXED_TIME, 0o644
            with inner.open("rb") as source:
                tar.addfile(info, source)
            watch(info.size)


@contextmanager
def _compressed(file: IO[bytes], archive: Archive) -> Iterator[IO[bytes]]:
    if archive == "tar.gz":
        with gzip.GzipFile("", "wb", _LEVEL[archive], file, mtime=FIXED_TIME) as zipped:
            yield cast(IO[bytes], zipped)
    else:
        with zstandard.ZstdCompressor(level=_LEVEL[archive]).stream_writer(file, closefd=False) as packed:
            yield cast(IO[bytes], packed)
