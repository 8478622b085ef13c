"""Every write to a run folder happens here, so that all of them can be tested at once.

A file is replaced by writing a temporary file in the same folder, fsync, rename, fsync of the
folder; a reader sees the old bytes or the new ones. The ledger is appended to in place. Whatever
the system refuses (disk full, read-only folder, no permission) becomes one ``RecipeError`` that
names the path, the bytes needed and the bytes free, and leaves no temporary file.

The functions call ``os`` through this module's name ``os``: tests put a failing or killing
stand-in there and so reach every single write.
"""

# ruff: noqa: PTH103, PTH104, PTH108

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from recipe.errors import RecipeError

TEMPORARY = ".tmp-"
"""How the names of unfinished files and folders begin."""
LOCK_SECONDS = 2.0
"""How long a file that somebody else is appending to is waited for."""
_LOOK_SECONDS = 0.01


def replace_file(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Put ``data`` at ``path`` in one instant; ``durable=False`` skips fsync (for hints)."""
    temporary = _temporary(path)
    with _told(path, len(data)):
        try:
            _write_new(temporary, data, durable=durable)
            os.rename(temporary, path)
        except BaseException:
            _forget(temporary)
            raise
        if durable:
            _sync_folder(path.parent)


def create_file(path: Path, data: bytes) -> bool:
    """Put ``data`` at ``path`` in one instant unless something is there; whether it was done."""
    temporary = _temporary(path)
    with _told(path, len(data)):
        try:
            _write_new(temporary, data, durable=True)
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            _forget(temporary)
        _sync_folder(path.parent)
    return True


def place_file(path: Path, data: bytes, *, check: Callable[[], None]) -> None:
    """Put ``data`` at ``path`` in one instant; what an unfinished write left there makes way.

    A writer that slept through its lease replaces nothing that others put there: ``check`` is called
    once the data is on disk, right before it appears, and only what was there then makes way.

    Args:
        path: the file.
        data: its content.
        check: raises RecipeError once others may write.
    """
    temporary = _temporary(path)
    with _told(path, len(data)):
        try:
            _write_new(temporary, data, durable=True)
            check()
            try:
                os.link(temporary, path)
            except FileExistsError:
                before = path.read_bytes()
                check()
                _make_way(path, before)
                os.link(temporary, path)
        finally:
            _forget(temporary)
        _sync_folder(path.parent)


@contextmanager
def locked(path: Path) -> Iterator[Append]:
    """A file to append to, which nobody else locks meanwhile, where the file system has locks.

    Raises:
        RecipeError: somebody else is writing to it, or the system refuses.
    """
    with _told(path, 0):
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        if not _lock(handle):
            raise RecipeError.single(
                "the run is being written",
                str(path),
                given="a file that a running process has locked",
                expected="a ledger that nobody is writing to",
                fix="let that process finish, or end it",
            )
        yield Append(path, handle)
    finally:
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)  # a process forked meanwhile has the file open as well
        os.close(handle)


class Append:
    """Appends to a file that is locked; made by :func:`locked`."""

    def __init__(self, path: Path, handle: int) -> None:
        """Of an open file."""
        self._path = path
        self._handle = handle

    def __call__(self, data: bytes, *, at: int, size: int) -> None:
        """Cut the file of ``size`` bytes to ``at`` bytes, add ``data`` and fsync.

        When it fails half-way the file is cut again as far as the system lets it; what a killed
        process left behind is an unfinished last line, which readers know.

        Raises:
            RecipeError: the file has another size by now (nothing was written), or the system refuses.
        """
        handle = self._handle
        with _told(self._path, len(data)):
            found = os.fstat(handle).st_size
            if found != size:
                raise _grown(self._path, found, size)
            try:
                if size != at:
                    os.ftruncate(handle, at)
                os.lseek(handle, at, os.SEEK_SET)
                _write_all(handle, data)
                os.fsync(handle)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(handle, at)
                raise


def rename_file(path: Path, to: Path) -> None:
    """Give a file another name in its folder."""
    with _told(path, 0):
        os.rename(path, to)


def remove_file(path: Path) -> None:
    """Remove a file if it is there."""
    with _told(path, 0), suppress(FileNotFoundError):
        os.unlink(path)


def make_folder(path: Path) -> None:
    """Make a folder and its parents; fine when it is there."""
    with _told(path, 0):
        os.makedirs(path, exist_ok=True)


def create_folder(path: Path, files: Mapping[str, bytes], folders: tuple[str, ...] = ()) -> bool:
    """A folder with its first files appears at ``path`` at once, or not at all.

    Args:
        path: where; an empty folder may already be there.
        files: contents by relative path.
        folders: further, empty folders.

    Returns:
        False when a folder that holds something, or a file, is at ``path`` already.
    """
    return create_folders({path: files}, folders) is None


def create_folders(wanted: Mapping[Path, Mapping[str, bytes]], folders: tuple[str, ...] = ()) -> Path | None:
    """Several folders appear, each at once, as :func:`create_folder` has it: all of them, or none.

    All are filled before the first appears; a process that is killed between the first and the last
    leaves those that appeared, each whole.

    Returns:
        None, or the first path where something is already.
    """
    hidden = {path: _temporary(path) for path in wanted}
    shown: list[Path] = []
    path = next(iter(wanted))
    with _told(path, sum(len(data) for files in wanted.values() for data in files.values())):
        try:
            for path, files in wanted.items():
                _fill(hidden[path], files, folders)
            for path, temporary in hidden.items():
                os.rename(temporary, path)
                shown.append(path)
            for parent in dict.fromkeys(path.parent for path in wanted):
                _sync_folder(parent)
        except BaseException as error:
            taken = path not in shown and isinstance(error, OSError)
            for back in shown:
                with suppress(OSError):
                    os.rename(back, hidden[back])
            for temporary in hidden.values():
                shutil.rmtree(temporary, ignore_errors=True)
            if taken and (path.is_file() or _holds_something(path)):
                return path
            raise
    return None


def _make_way(path: Path, expected: bytes) -> None:
    """Remove a file if it holds what was expected; else it stays, and the call fails."""
    aside = _temporary(path)
    os.rename(path, aside)
    try:
        if aside.read_bytes() != expected:
            os.link(aside, path)
            raise FileExistsError(errno.EEXIST, "somebody else wrote it meanwhile")
    finally:
        _forget(aside)


def _lock(handle: int) -> bool:
    """Lock a file until it is closed, if nobody else has; also true where the file system has no locks."""
    give_up = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= give_up:
                return False
            time.sleep(_LOOK_SECONDS)
            continue
        except OSError:
            pass
        return True


def _fill(folder: Path, files: Mapping[str, bytes], folders: tuple[str, ...]) -> None:
    os.makedirs(folder)
    for name in folders:
        os.makedirs(folder / name, exist_ok=True)
    for name, data in files.items():
        os.makedirs((folder / name).parent, exist_ok=True)
        _write_new(folder / name, data, durable=True)
    for inner in (*(path for path in folder.rglob("*") if path.is_dir()), folder):
        _sync_folder(inner)


def _holds_something(path: Path) -> bool:
    try:
        return any(path.iterdir())
    except OSError:
        return False


def _temporary(path: Path) -> Path:
    return path.parent / f"{TEMPORARY}{path.name}-{uuid.uuid4().hex[:12]}"


def _write_new(path: Path, data: bytes, *, durable: bool) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        _write_all(handle, data)
        if durable:
            os.fsync(handle)
    finally:
        os.close(handle)


def _write_all(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _forget(temporary: Path) -> None:
    with suppress(OSError):
        os.unlink(temporary)


@contextmanager
def _told(path: Path, needed: int) -> Iterator[None]:
    """Turn what the system refuses into one RecipeError."""
    try:
        yield
    except OSError as error:
        raise RecipeError.single(
            f"{path}: not written",
            str(path),
            given=f"{error.strerror or error} ({needed:,} bytes needed, {_free(path)})",
            expected="a folder that can be written, with room",
            fix="free space or repair the folder and call again: what was written before still holds",
        ) from error


def _grown(path: Path, found: int, size: int) -> RecipeError:
    return RecipeError.single(
        f"{path}: changed while it was written",
        str(path),
        given=f"{found:,} bytes",
        expected=f"{size:,} bytes, as a moment before",
        fix="see what else writes to the run (`recipe audit` names every fault), then open the run again",
    )


def _free(path: Path) -> str:
    for folder in path.parents:
        with suppress(OSError):
            return f"{shutil.disk_usage(folder).free:,} bytes free"
    return "free space unknown"
