"""Local room for what was fetched: files without a name in one folder, together never above a bound.

The folder is that of `recipe.pools.cache_folder`, ``RECIPE_CACHE_BYTES`` the bound of each process that reads
(a rank, a worker of a loader). The files have no name: the system gives their room back when a process ends,
however it ends.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

from recipe.errors import RecipeError
from recipe.maths.amounts import parse_amount
from recipe.pools.cache_folder import CACHE, cache_folder

BYTES = "RECIPE_CACHE_BYTES"
DEFAULT_BYTES = "1Gi"
_PAGE = 4096


def cache_bytes() -> int:
    """The bound of a process.

    Raises:
        RecipeError: the environment names no amount.
    """
    given = os.environ.get(BYTES, DEFAULT_BYTES)
    try:
        return parse_amount(given)
    except (RecipeError, ValueError) as error:
        raise RecipeError.single(
            "environment", BYTES, given=given, expected="bytes, such as 512Mi or 20Gi", fix="correct it"
        ) from error


class Slab:
    """Room for some bytes, filled by the loop's thread; alive until it is let go."""

    def __init__(self, size: int, folder: Path) -> None:
        """Made by :meth:`Cache.take`."""
        self.size = size
        self.held = 0
        """By how many it is being read: while it is, it stays."""
        self.is_filling = False
        self.is_alive = True
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed when it is freed
        try:
            # Room is taken now: a full disk is an error here, and no signal when a page is touched.
            os.posix_fallocate(self._file.fileno(), 0, size)
            self._pages = mmap.mmap(self._file.fileno(), size)
        except BaseException:
            self._file.close()
            raise
        self.address: int = np.frombuffer(self._pages, np.uint8).__array_interface__["data"][0]
        """Of its first byte."""

    @property
    def memory(self) -> memoryview:
        """Its bytes; let go of it before the slab is freed."""
        return memoryview(self._pages)

    def free(self) -> None:
        """Give the room back at once, whoever else has the file open since a fork."""
        self._pages.close()
        os.ftruncate(self._file.fileno(), 0)
        self._file.close()


class Cache:
    """The slabs of one process."""

    def __init__(self, folder: Path, bound: int) -> None:
        """No room is taken yet."""
        self.folder, self.bound = folder, bound
        self.used = 0
        """Bytes taken now; never above ``bound``."""
        self._changes = threading.Condition()
        self._slabs: list[Slab] = []

    def take(self, size: int, *, now: bool) -> Slab | None:
        """Room for ``size`` bytes, held by the caller.

        Args:
            size: bytes.
            now: let go of what was fetched ahead for later, and wait for what is in use; else None
                where nothing is free.

        Raises:
            RecipeError: so much is above the bound; or the disk is full.
        """
        size = max(_PAGE, -(-size // _PAGE) * _PAGE)
        if size > self.bound:
            if not now:
                return None
            raise _too_small(size, self.bound)
        with self._changes:
            while self.used + size > self.bound:
                if not now:
                    return None
                if not self._let_go_of_one():
                    self._changes.wait(0.5)
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                slab = Slab(size, self.folder)
            except OSError as error:
                raise _no_room(self.folder, size, error) from error
            slab.held = 1
            self.used += size
            self._slabs.append(slab)
            return slab

    def hold(self, slab: Slab) -> bool:
        """Keep a slab while it is read; False: it was let go before."""
        with self._changes:
            slab.held += int(slab.is_alive)
            return slab.is_alive

    def release(self, slab: Slab) -> None:
        """What was held by one is held by one less."""
        with self._changes:
            slab.held -= 1
            self._free_unused(slab)

    def let_go(self, slab: Slab) -> None:
        """Nobody else will read it: its room is free, once it is neither being filled nor held."""
        with self._changes:
            self._let_go(slab)

    def fill(self, slab: Slab, is_filling: bool) -> None:
        """Say that a slab is being filled, or not any more."""
        with self._changes:
            slab.is_filling = is_filling
            self._free_unused(slab)

    def _let_go_of_one(self) -> bool:
        """Let go of the youngest that nobody reads: it would have been needed last."""
        slab = next((slab for slab in reversed(self._slabs) if not slab.held), None)
        if slab is None:
            return False
        self._let_go(slab)
        return not slab.is_filling

    def _let_go(self, slab: Slab) -> None:
        if slab.is_alive:
            slab.is_alive = False
            self._slabs.remove(slab)
            self._free_unused(slab)

    def _free_unused(self, slab: Slab) -> None:
        if not (slab.is_alive or slab.is_filling or slab.held):
            slab.free()
            self.used -= slab.size
        self._changes.notify_all()


_cache: Cache | None = None
_lock = threading.Lock()


def cache() -> Cache:
    """The cache of this process, with the environment's present settings."""
    global _cache
    with _lock:
        folder, bound = cache_folder(), cache_bytes()
        if _cache is None or (_cache.folder, _cache.bound) != (folder, bound):
            _cache = Cache(folder, bound)
        return _cache


def _too_small(size: int, bound: int) -> RecipeError:
    return RecipeError.single(
        "cache", BYTES, given=f"{bound:,} bytes",
        expected=f"at least {size:,} bytes: so many tokens of one step are held together; with twice as much "
        "the next step is read meanwhile",
        fix=f"set {BYTES} to {2 * size} or more",
    )  # fmt: skip


def _no_room(folder: Path, size: int, error: OSError) -> RecipeError:
    return RecipeError.single(
        "cache", str(folder), given=error.strerror or str(error), expected=f"room for {size:,} bytes",
        fix=f"name another folder ({CACHE}), or lower {BYTES}",
    )  # fmt: skip


def _forget(*_: Any) -> None:
    """A child has no part in what its parent fetched."""
    global _cache, _lock
    _cache, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
