"""A folder of half-done work, for one process at a time."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK_NAME = "lock"


@contextmanager
def held(folder: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """The folder, made if need be, for this process alone; others wait. A dead process holds nothing.

    ``waiting`` is called once where another process holds it. The holder may remove the folder.
    """
    while True:
        folder.mkdir(exist_ok=True)
        try:
            lock = (folder / LOCK_NAME).open("a+b")
        except FileNotFoundError:
            continue
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                waiting()
                fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                same = os.path.samestat((folder / LOCK_NAME).stat(), os.fstat(lock.fileno()))
            except FileNotFoundError:
                same = False
            if same:  # else the folder was removed between opening and locking
                yield
                return


def clear(folder: Path) -> None:
    """Remove all that a held folder holds, but for its lock."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK_NAME:
            path.unlink()


def remove(folder: Path) -> None:
    """Remove a held folder."""
    shutil.rmtree(folder)
