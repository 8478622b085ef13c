"""A token file of somebody else: where its tokens lie, and where its documents end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.mapped import map_array


class Tokens(Protocol):
    """Tokens that can be mapped."""

    @property
    def path(self) -> Path:
        """The file they lie in."""

    @property
    def count(self) -> int:
        """How many there are."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Their type."""

    def map(self) -> NDArray[Any]:
        """All of them, mapped."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Tokens one after another in a file."""

    path: Path
    start_byte: int
    count: int
    dtype: np.dtype[Any]

    def map(self) -> NDArray[Any]:
        """The tokens, mapped."""
        return map_array(self.path, self.dtype, self.count, start_byte=self.start_byte)


@dataclass(frozen=True, kw_only=True)
class TokenFile:
    """One part of a pool of imported files."""

    files: tuple[Path, ...]
    """What somebody gave us, the file with the tokens first; their contents are the part's."""
    tokens: Tokens
    num_documents: int
    ends: Callable[[], NDArray[np.int64]]
    """int64[num_documents]: where each document ends, in tokens of the part."""
    label: str = ""
    """What tells it from other parts of the same file."""
    unended: int = 0
    """Documents that lack the mark which ends the others."""
    verify: Callable[[], None] | None = None
    """Raises RecipeError where a copy of ours is no longer what was written; reads all of it."""
    beside: tuple[Path, ...] = ()
    """Files that are needed to know how these are read, and have to go along with them."""
    copied_bytes: int = 0
    """Size of what had to be decoded, in files of our own."""
    rule: tuple[object, ...] = ()
    """What decides how it is decoded, as plain values."""


def refuse(path: Path, *, given: object, expected: str, fix: str) -> RecipeError:
    """The error for a file that cannot be read as tokens."""
    return RecipeError.single(str(path.parent), str(path), given=str(given), expected=expected, fix=fix)


def refuse_negative(path: Path, ids: NDArray[Any], first: int) -> None:
    """Raise RecipeError where an id is negative; the first of ``ids`` is token ``first`` of the file."""
    if ids.dtype.kind == "i" and len(ids) and ids.min() < 0:
        at = int(np.argmax(ids < 0))
        raise refuse(
            path, given=f"id {ids[at]} at token {first + at}", expected="ids from 0 on",
            fix="correct the file, or what is said of it: no model has a negative id",
        )  # fmt: skip


def check_ends(ends: NDArray[np.int64], num_tokens: int, path: Path) -> None:
    """Ends of documents rise and the last one is that of the tokens.

    Raises:
        RecipeError: naming the first one that does not.
    """
    fix = "fetch the list again, together with its token file; or leave it out and scan (documents: eos)"
    falls = np.flatnonzero(np.diff(ends, prepend=0) < 0)
    if len(falls):
        at = int(falls[0])
        raise refuse(path, given=f"document {at} that ends at token {ends[at]}, before it begins",
                     expected="ends that rise", fix=fix)  # fmt: skip
    last = int(ends[-1]) if len(ends) else 0
    if last != num_tokens:
        left = num_tokens - last
        given = f"documents that end at token {last}"
        if left > 0:
            given += f": {left} tokens behind the last one belong to none"
        raise refuse(path, given=given, expected=f"{num_tokens}, the tokens of the file", fix=fix)
