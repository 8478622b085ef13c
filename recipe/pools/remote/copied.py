"""Paths of files that are copied here from a store when somebody opens them.

A pool in a store has a folder on this machine like any other; what its files hold is fetched at the moment
that the system is handed such a path, so that whoever reads a pool's folder need not know where it lies.
Token files are never copied: they are read by ranges, and to hand their path to the system is an error.
"""

from __future__ import annotations

import os
import stat
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

    def size(self, name: str) -> int:
        """Bytes of the file."""
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
        source, name = self._source()
        if source is not None and source.has(name):
            if name.endswith(".bin"):
                raise RecipeError.single(
                    f"pool {source.pool}", str(self), given="a token file that lies in a store",
                    expected="one on this machine: its tokens are read by ranges, never copied as a whole",
                    fix="copy the pool to this machine, and name the copy",
                )  # fmt: skip
            source.fetch(name)
        return str(self)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """As the system says; of a file in the store its bytes alone, and nothing is fetched for it."""
        source, name = self._source()
        if source is None or not source.has(name):
            return super().stat(follow_symlinks=follow_symlinks)
        return os.stat_result((stat.S_IFREG | 0o444, 0, 0, 1, 0, 0, source.size(name), 0, 0, 0))

    def _source(self) -> tuple[Source | None, str]:
        folder, name = os.path.split(str(self))
        return _SOURCES.get(folder), name

    def resolve(self, strict: bool = False) -> Self:
        """The same, fetched: links are followed in the folder's own path when it is made."""
        os.fspath(self)
        return self

    def read_span(self, start: int, stop: int) -> bytes:
        """Bytes ``start..stop`` of a file in the store."""
        source, name = self._source()
        assert source is not None, "of a folder that copied_from made"
        return source.read(name, start, stop)


def copied_from(source: Source, folder: Path) -> CopiedPath:
    """The folder, whose files come from a source from now on."""
    path = CopiedPath(folder)
    _SOURCES[str(path)] = source
    return path
