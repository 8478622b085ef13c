"""Where a pool is written: a folder beside its final place, held by one writer, renamed when whole."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from recipe.errors import RecipeError

_LOCK = "writer.lock"
NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
"""Numbers of errors of a disk that is full."""


def unfinished_folder(path: Path) -> Path:
    """Where the pool ``path`` is while it is being written."""
    return path.with_name(path.name + ".partial")


def sync(path: Path) -> None:
    """Bring a file or folder to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_durably(path: Path, data: bytes) -> None:
    """Write a small file so that it is there whole or not at all."""
    with written_durably(path) as file:
        file.write(data)


@contextmanager
def written_durably(path: Path) -> Iterator[BinaryIO]:
    """A file to be written that is there whole, or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):  # what went wrong first is told
            temporary.unlink(missing_ok=True)
        raise
    sync(path.parent)


def move_whole(folder: Path, path: Path) -> None:
    """Give a folder that is whole its place, in one step: also on another disk, where it is copied first."""
    tidy(folder)
    try:
        folder.rename(path)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        copy = unfinished_folder(path)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        for file in copy.iterdir():
            sync(file)
        copy.rename(path)
        shutil.rmtree(folder)
    sync(path.parent)


def tidy(folder: Path) -> None:
    """Remove the lock of a writer that was killed between giving a folder its name and letting go."""
    path = folder / _LOCK
    if path.is_file():
        with path.open("rb") as lock, suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)


def is_used(path: Path) -> bool:
    """Whether something is there; an empty folder is nothing."""
    return path.exists() and not (path.is_dir() and not any(path.iterdir()))


def refuse_inside(out: Path) -> None:
    """Raise RecipeError where something new would be written into the folder of a pool, or below it."""
    above = out.resolve()
    for folder in (above, *above.parents):
        if (folder / "card.json").is_file():
            raise RecipeError.single(
                str(out), str(out), given=f"a folder inside the pool {folder}",
                expected="a folder beside the pools", fix="choose another path: a pool stays as it is",
            )  # fmt: skip


class Workplace:
    """The folder a pool is written in, locked until the pool is whole or given up."""

    def __init__(self, path: Path) -> None:
        """Take the folder for the pool ``path``.

        Raises:
            RecipeError: something is at ``path`` already, another process is writing it, or it is
                inside a pool.
        """
        self.path = path
        self.folder = unfinished_folder(path)
        self._lock: BinaryIO | None = None
        refuse_inside(path.parent)
        _refuse_existing(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = self._take_lock()
        except OSError as error:
            with suppress(OSError):  # it may hold what somebody began
                self.folder.rmdir()
            raise RecipeError.single(
                str(path), str(error.filename or path), given=error.strerror or str(error),
                expected="a place where a folder can be made", fix="choose another path, or free this one",
            ) from error  # fmt: skip
        try:
            _refuse_existing(path)
        except RecipeError:
            self.discard()
            raise

    @property
    def held(self) -> bool:
        """Whether this writer has the folder."""
        return self._lock is not None

    def keep_only(self, names: set[str]) -> None:
        """Remove what an earlier writer left, but for the files named."""
        for file in self.folder.iterdir():
            if file.name != _LOCK and file.name not in names:
                file.unlink()

    def sync(self) -> None:
        """Bring all its files to the disk."""
        for file in self.folder.iterdir():
            if file.name != _LOCK:
                sync(file)
        sync(self.folder)

    def publish(self) -> None:
        """Give the folder its final name, in one step, after all its files are on the disk."""
        self.sync()
        try:
            self.folder.rename(self.path)
        except OSError:
            _refuse_existing(self.path)
            raise
        try:
            (self.path / _LOCK).unlink()
            sync(self.path.parent)
        finally:  # it is whole and has its name: there is nothing to give up
            self.release()

    def discard(self) -> None:
        """Remove the folder and all it holds."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.release()

    def release(self) -> None:
        """Let another writer have the folder."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    @contextmanager
    def disk_errors(self, pending_bytes: int = 0) -> Iterator[None]:
        """Tell a full disk as a fault with the bytes needed and free."""
        try:
            yield
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            written = sum(file.stat().st_size for file in self.folder.iterdir())
            free = shutil.disk_usage(self.folder).free
            raise RecipeError.single(
                str(self.path), str(self.folder),
                given=f"no space left ({error.strerror}): {free} bytes free",
                expected=f"at least {written + pending_bytes} bytes needed, {written} of them written so far",
                fix="free space there, or write the pool to another disk; then run the same again",
            ) from error  # fmt: skip

    def _take_lock(self) -> BinaryIO:
        while True:
            self.folder.mkdir(exist_ok=True)
            try:
                lock = (self.folder / _LOCK).open("a+b")
            except FileNotFoundError:
                continue
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                owner = _owner(lock)
                lock.close()
                raise self._busy(owner) from None
            # the folder may have been renamed or removed between opening and locking
            if _same_file(self.folder / _LOCK, lock):
                lock.truncate(0)
                lock.write(f"{os.uname().nodename} process {os.getpid()}".encode())
                lock.flush()
                return lock
            lock.close()

    def _busy(self, owner: str) -> RecipeError:
        return RecipeError.single(
            str(self.path), str(self.folder), given=f"a pool that is being written by {owner}",
            expected="one writer at a time", fix="wait until it is done, or stop it",
        )  # fmt: skip


def _owner(lock: BinaryIO) -> str:
    lock.seek(0)
    return lock.read().decode(errors="replace") or "another process"


def _same_file(path: Path, file: BinaryIO) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


def _refuse_existing(path: Path) -> None:
    if not is_used(path):
        return
    if path.is_dir():
        tidy(path)
    kind = "a pool" if (path / "card.json").exists() else "a folder with files" if path.is_dir() else "a file"
    raise RecipeError.single(
        str(path), str(path), given=f"{kind} that is there already", expected="a path where nothing is yet",
        fix="choose another path, or remove it first: a pool is never written over",
    )  # fmt: skip
