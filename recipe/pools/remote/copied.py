"""Paths of files that are copied here from a store when somebody opens them.

A pool in a store has a folder on this machine like any other; what its files hold is fetched at the moment
that the system is handed such a path, so that whoever reads a pool's folder need not know where it lies.
Token files are never copied: they are read by ranges, and to hand their path to the system is an error.
"""

from __future__ import annotations

import os
from pathlib import Path, PosixPath
from typing import Protocol, Self

from recipe.errors import RecipeError


class Source(Protocol):
    """What a folder's files are copied from."""

    @property
    def pool(self) -> str:
        """Name of the pool."""
        ...

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        ...

    def fetch(self, name: str) -> None:
        """See to it that the file is here."""
        ...

    def read(self, name: str, start: int, stop: int) -> bytes:
        """Bytes of a file."""
        ...


_SOURCES: dict[str, Source] = {}


class CopiedPath(PosixPath):
    """A folder that ``copied_from`` made known, or a file in it."""

    def __fspath__(self) -> str:
        """The path, once there is something at it.

        Raises:
            RecipeError: the file cannot be fetched, or holds tokens.
        """
        folder, name = os.path.split(str(self))
        source = _SOURCES.get(folder)
        if source is not None and source.has(name):
            if name.endswith(".bin"):
                raise RecipeError.single(
                    f"pool {source.pool}", str(self), given="a token file that lies in a store",
                    expected="one on this machine: its tokens are read by ranges, never copied as a whole",
                    fix="copy the pool to this machine, and name the copy",
                )  # fmt: skip
            source.fetch(name)
        return str(self)

    def resolve(self, strict: bool = False) -> Self:
        """The same, fetched: links are followed in the folder's own path when it is made."""
        os.fspath(self)
        return self

    def read_span(self, start: int, stop: int) -> bytes:
        """Bytes ``start..stop`` of a file in the store."""
        folder, name = os.path.split(str(self))
        return _SOURCES[folder].read(name, start, stop)


def copied_from(source: Source, folder: Path) -> CopiedPath:
    """The folder, whose files come from a source from now on."""
    path = CopiedPath(folder)
    _SOURCES[str(path)] = source
    return path
