"""Where pools lie: folders of this machine, or folders of a store that fsspec opens."""

from __future__ import annotations

import re
from pathlib import Path, PosixPath, PurePath
from typing import Self

_URL = re.compile(r"([a-z][a-z0-9+.-]+):/{1,2}([^/].*)")
"""Also as ``Path`` writes it, with one slash. A letter alone is a drive, no scheme."""


class StorePath(PosixPath):
    """A folder or an object of a store: made of components as a path is, and written as its URL.

    It is no file of this machine: nothing exists at it for ``Path.exists`` and the like.
    """

    def __str__(self) -> str:
        """The URL."""
        scheme, *rest = self.parts or ("",)
        return f"{scheme}//{'/'.join(rest)}"

    def __repr__(self) -> str:
        """With the URL."""
        return f"StorePath({str(self)!r})"

    def __fspath__(self) -> str:
        """The URL, which no file of this machine is called."""
        return str(self)

    def is_absolute(self) -> bool:
        """Yes: a URL says where it is."""
        return True

    def absolute(self) -> Self:
        """The same."""
        return self

    def resolve(self, strict: bool = False) -> Self:
        """The same: a store has no links."""
        return self


def place(*parts: str | PurePath) -> Path:
    """The path that paths and URLs mean one below the other; what comes before a URL or a whole path is left.

    ``~`` is the home of the user, and ``file://`` is this machine.

    >>> place("s3://bucket/pools", "english"), str(place("pools", "s3://bucket/zh/"))
    (StorePath('s3://bucket/pools/english'), 's3://bucket/zh')
    >>> place("pools", "file:///data/zh").as_posix(), place("s3://bucket", "/data").as_posix()
    ('/data/zh', '/data')
    """
    found: Path = Path()
    for part in parts:
        text = str(part)
        url = _URL.fullmatch(text)
        if text.startswith("file:/"):
            found = Path("/" + text.removeprefix("file:").lstrip("/"))
        elif url is not None:
            found = StorePath(f"{url[1]}:", *(name for name in url[2].split("/") if name))
        else:
            one = Path(part).expanduser()
            found = one if one.is_absolute() else found / one
    return found


def is_stored(path: PurePath) -> bool:
    """Whether a path that ``place`` gave lies in a store."""
    return isinstance(path, StorePath)


def in_store(path: str | PurePath) -> StorePath | None:
    """The place in a store that a path or URL means; None: it is one of this machine.

    >>> in_store("pools/english"), in_store("s3://bucket/english")
    (None, StorePath('s3://bucket/english'))
    """
    found = place(path)
    return found if isinstance(found, StorePath) else None
