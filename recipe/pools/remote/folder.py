"""A pool's folder in a store: small files are copied here once, tokens are fetched by ranges.

What is copied lies below the cache folder by the URL and the contents of the card, so that runs and
processes share it; it is no part of the cache's bound. A file is there in full, or not at all.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipe.config.places import StorePath
from recipe.errors import RecipeError
from recipe.pools.blocks import file_hash
from recipe.pools.cache_folder import CACHE, cache_folder
from recipe.pools.card import CARD_NAME
from recipe.pools.remote.asking import Object, ask, gone
from recipe.pools.remote.loop import run, submit
from recipe.pools.remote.ranges import REQUEST_BYTES, Runs, runs_of
from recipe.pools.remote.store import IN_FLIGHT, Stamp, store_of

_COPIED_AT_ONCE = 16
"""Requests under way while a file is copied: each holds its answer in memory."""
_GATHERED_AT_ONCE = IN_FLIGHT // 2
"""Of many small spans: steps that are fetched meanwhile have the others."""

Request = tuple[int, int, int, int]
"""File (a number), first byte, end, and where they go in memory."""


@dataclass(frozen=True)
class StoredFolder:
    """A folder as it was when its pool was opened."""

    pool: str
    url: StorePath
    stamps: Mapping[str, Stamp]
    """Its files."""
    folder: Path
    """Where its small files are copied to."""
    hashes: Mapping[str, str]
    """Of the files that the card names, blake2b-256."""

    def object(self, name: str) -> Object:
        """A file of it, of the version that was there."""
        scheme, path = split(self.url)
        return Object(self.pool, store_of(scheme), f"{path}/{name}", self.stamps.get(name))

    def has(self, name: str) -> bool:
        """Whether there was such a file."""
        return name in self.stamps

    def size(self, name: str) -> int:
        """Bytes of a file."""
        return self.stamps[name].size

    def fetch(self, name: str) -> None:
        """Copy a small file to the folder, unless it is there.

        Raises:
            RecipeError: it is gone or changed, cannot be read, or is not what the card says; no room here.
        """
        path, what = self.folder / name, self.object(name)
        if what.stamp is None:
            raise gone(what)
        try:
            with (self.folder / f".{name}.lock").open("wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # of a process that died it is let go by the system
                if not path.is_file() or path.stat().st_size != what.stamp.size:
                    self._copy(what, name, path)
        except OSError as error:
            raise RecipeError.single(
                f"pool {self.pool}", str(path), given=error.strerror or str(error),
                expected=f"room for {what.stamp.size:,} bytes of {what.url}",
                fix=f"name another folder ({CACHE})",
            ) from error  # fmt: skip

    def _copy(self, what: Object, name: str, path: Path) -> None:
        assert what.stamp is not None
        part = path.with_name(f".{name}.part")
        with part.open("wb") as file:
            run(_copied(what, what.stamp.size, file.fileno()))
        if name in self.hashes and (found := file_hash(part)) != self.hashes[name]:
            part.unlink()
            raise RecipeError.single(
                f"pool {self.pool}", what.url, given=f"contents with hash {found}",
                expected=f"{self.hashes[name]}, as its card says",
                fix="copy the file there again from where it is whole",
            )  # fmt: skip
        part.replace(path)

    def read(self, name: str, start: int, stop: int) -> bytes:
        """Bytes ``[start, stop)`` of a file.

        Raises:
            RecipeError: as :func:`recipe.pools.remote.asking.ask`.
        """
        return run(ask(self.object(name), (start, stop))) if start < stop else b""

    def gather(
        self, names: Sequence[str], spans: NDArray[np.int64], least: int = 0
    ) -> tuple[NDArray[np.uint8], Runs]:
        """Spans of files in memory of their own; those that lie close are read together.

        Args:
            names: of the files that ``spans`` number.
            spans: int64[n, 3]: file, first byte, end.
            least: bytes between two that are read through, however short they are.

        Returns:
            uint8: the memory; span k begins at ``runs.place[k]``.
        """
        runs = runs_of(spans, least=least)
        memory = np.empty(runs.size, np.uint8)
        objects = {file: self.object(names[file]) for file in np.unique(runs.file).tolist()}
        run(filled(objects, runs.requests(), memory.data, _GATHERED_AT_ONCE))
        return memory, runs


async def filled(
    objects: Mapping[int, Object], requests: Sequence[Request], memory: memoryview, at_once: int = IN_FLIGHT
) -> None:
    """Fetch ranges into memory, ``at_once`` under way at a time; the first that fails ends the others.

    Raises:
        RecipeError: of the first range that could not be read.
    """
    left = iter(requests)

    async def worker() -> None:
        for file, start, stop, at in left:
            memory[at : at + stop - start] = await ask(objects[file], (start, stop))

    tasks = [asyncio.ensure_future(worker()) for _ in range(min(at_once, len(requests)))]
    try:
        await asyncio.gather(*tasks)
    finally:
        # Also where this is cancelled: nothing is written to the memory once it returns.
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def fill(
    objects: Mapping[int, Object], runs: Runs, memory: memoryview, done: Callable[[], None]
) -> Future[None]:
    """Begin to fetch runs into memory; ``done`` is called when nothing is written to it any more."""

    async def work() -> None:
        try:
            with memory:
                await filled(objects, runs.requests(), memory)
        finally:
            done()

    return submit(work())


async def _copied(what: Object, size: int, file: int) -> None:
    """Write a whole object to an open file, several ranges at a time."""
    starts = iter(range(0, size, REQUEST_BYTES))

    async def worker() -> None:
        for start in starts:
            data = await ask(what, (start, min(start + REQUEST_BYTES, size)))
            os.pwrite(file, data, start)

    await asyncio.gather(*(worker() for _ in range(min(_COPIED_AT_ONCE, -(-size // REQUEST_BYTES)))))


def split(url: StorePath) -> tuple[str, str]:
    """Scheme of a URL, and bucket and key."""
    scheme, *rest = url.parts
    return scheme.removesuffix(":"), "/".join(rest)


def mirror_of(url: StorePath, card: bytes) -> Path:
    """The folder for the small files of a pool with this card; it is made, with the card.

    Raises:
        RecipeError: it cannot be written.
    """
    marks = (blake2b(data, digest_size=8).hexdigest() for data in (str(url).encode(), card))
    folder = cache_folder().joinpath("pools", *marks)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / CARD_NAME).is_file() or (folder / CARD_NAME).read_bytes() != card:
            # Of another name in each thread: none reads or takes away what another one is writing.
            fresh = folder / f".{CARD_NAME}.{os.getpid()}.{threading.get_ident()}"
            fresh.write_bytes(card)
            fresh.replace(folder / CARD_NAME)
    except OSError as error:
        raise RecipeError.single(
            "cache", str(folder), given=error.strerror or str(error), expected="a folder that can be written",
            fix=f"name another folder ({CACHE})",
        ) from error  # fmt: skip
    return folder
