"""Files derived from somebody else's: built once, found again by content, never left half-written.

They lie in a folder ``.recipe`` beside the file they are derived from, or, where nothing can be written,
in the folder of `recipe.pools.cache_folder`; where ``$RECIPE_CACHE`` names that one, there at once.
Their names hold the key of what they are derived from, so that one of an older content is never taken.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from recipe.errors import RecipeError
from recipe.pools.cache_folder import CACHE, cache_folder, named_cache_folder
from recipe.pools.workplace import NO_SPACE, sync

LOG = logging.getLogger("recipe.pools")
"""Told when something large is read or written on the way to a pool."""
BESIDE = ".recipe"
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS}

Build = Callable[[tuple[Path, ...]], None]


def derived(source: Path, key: str, endings: Sequence[str], build: Build) -> tuple[Path, ...]:
    """Files derived from ``source``, built if nobody has built them.

    Any number of processes may ask at once: one builds, the others wait for it and read what it made.

    Args:
        source: what they are derived from; gives them their names.
        key: of its contents and of how they are derived.
        endings: one for each file; the last one's presence says that all are there.
        build: writes them, to the paths it is given.

    Raises:
        RecipeError: no place to write, or a full disk.
    """
    names = [f"{source.name}.{key}.{ending}" for ending in endings]
    places = _places(source)
    for place in places:
        if (place / names[-1]).is_file():
            return tuple(place / name for name in names)
    with _locked(
        source, places if named_cache_folder() is None else places[:1], f"{source.name}.{key}.lock"
    ) as place:
        paths = tuple(place / name for name in names)
        if not paths[-1].is_file():
            _build(paths, build)
        return paths


def _build(paths: tuple[Path, ...], build: Build) -> None:
    temporary = tuple(
        path.with_name(f"{path.name}.{os.uname().nodename}.{os.getpid()}.tmp") for path in paths
    )
    try:
        build(temporary)
        for written, path in zip(temporary, paths, strict=True):
            sync(written)
            written.replace(path)
        sync(paths[0].parent)
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        free = shutil.disk_usage(paths[0].parent).free
        raise RecipeError.single(
            str(paths[0].parent), str(paths[0]), given=f"no space left ({error.strerror}): {free} bytes free",
            expected="room for what is derived from token files",
            fix=f"free space there, or name another folder: {CACHE}=FOLDER",
        ) from error  # fmt: skip
    finally:
        for path in temporary:
            path.unlink(missing_ok=True)


def _places(source: Path) -> list[Path]:
    """Where derived files may lie, in the order in which they are looked for and written."""
    beside, folder = source.parent / BESIDE, cache_folder()
    return [beside, folder] if named_cache_folder() is None else [folder, beside]


@contextmanager
def _locked(source: Path, places: Sequence[Path], name: str) -> Iterator[Path]:
    """The first place where one can write, for one process at a time."""
    reasons = []
    for place in places:
        try:
            place.mkdir(parents=True, exist_ok=True)
            lock, is_alone = _take(place / name)
        except OSError as error:
            if error.errno in NO_SPACE:
                raise
            reasons.append(f"{place} ({error.strerror})")
            continue
        try:
            if is_alone:
                _remove_remains(place, name.removesuffix("lock"))
            yield place
        finally:
            (place / name).unlink(missing_ok=True)
            lock.close()
        return
    raise RecipeError.single(
        str(source.parent), str(source), given=f"no place to write: {'; '.join(reasons)}",
        expected="a folder for what is derived from token files, such as where documents end",
        fix=f"name one: {CACHE}=FOLDER",
    )  # fmt: skip


def _remove_remains(place: Path, start: str) -> None:
    """What builders left that were killed: whoever has the lock is the only one."""
    for file in place.iterdir():
        if file.name.startswith(start) and file.suffix == ".tmp":
            file.unlink(missing_ok=True)


def _take(path: Path) -> tuple[BinaryIO, bool]:
    """The lock, once it is free, and whether the disk has locks."""
    while True:
        lock = path.open("a+b")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                lock.close()
                raise
            return lock, False  # a disk without locks: several may build, each whole, and the last one stays
        # whoever had it may have removed it meanwhile
        try:
            if os.path.samestat(path.stat(), os.fstat(lock.fileno())):
                return lock, True
        except FileNotFoundError:
            pass
        lock.close()
