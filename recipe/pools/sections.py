"""Where the documents of a pool have sections, and which of them need others.

Two files beside the offsets. ``sections.npy`` int64[n]: the stored tokens, counted over the pool, at which
sections begin, rising; the start of a document is none. ``needs.npy`` int64[4 m]: each four ``a, b, c, d``
say that the section ``[a, b)`` needs the section ``[c, d)`` of the same unit (group, or document) in front
of it; stored tokens again, marks left out, rising by a, then as declared. The section that begins with its
document is one here. Needs are direct: what a needed section needs itself has rows of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.pools.card import canonical_json
from recipe.pools.workplace import sync


class Section(NamedTuple):
    """Where a section of a document begins, and what it needs."""

    start: int
    """Token of the document; characters of its text before it is tokenised."""
    id: int | str | None = None
    """What others call it; unique among the sections of its unit."""
    needs: tuple[int | str, ...] = ()
    """Ids of sections of the same unit that it is read after."""


class Boundaries(NamedTuple):
    """The two arrays of a pool; ``needs`` int64[m, 4], or None: no section needs another."""

    sections: NDArray[np.int64]
    needs: NDArray[np.int64] | None


def plain(sections: Sequence[int | Section], tokens: int) -> list[object]:
    """The sections of one document as plain values, checked.

    Raises:
        ValueError: starts that do not rise, or lie outside the document.
    """
    found = [section if isinstance(section, Section) else Section(int(section)) for section in sections]
    starts = [section.start for section in found]
    if any(not 0 <= start < max(1, tokens) for start in starts):
        raise ValueError(f"sections at {starts[:10]} of a document of {tokens} tokens")
    if any(one >= two for one, two in pairwise(starts)):
        raise ValueError(f"sections at {starts[:10]}: they rise, each at a token of its own")
    return [[s.start, s.id, list(s.needs)] if s.id is not None or s.needs else s.start for s in found]


class SectionsFile:
    """Sections of the documents of one part, until the pool is whole; made when the first ones come."""

    def __init__(self, path: Path) -> None:
        """Begin without a file."""
        self._path = path
        self._file: BinaryIO | None = None

    @property
    def is_used(self) -> bool:
        """Whether anything was said of any document."""
        return self._file is not None

    def add(self, document: int, sections: list[object]) -> None:
        """Note the sections of one document of the part; none is a statement, too."""
        if self._file is None:
            self._file = self._path.open("wb")
        if sections:
            self._file.write(canonical_json([document, sections]) + b"\n")

    def finish(self) -> bool:
        """Bring it to the disk; whether there is one."""
        self.close()
        if self.is_used:
            sync(self._path)
        return self.is_used

    def close(self) -> None:
        """Close the file, finished or not."""
        if self._file is not None:
            self._file.close()


def sections_path(folder: Path, name: str) -> Path:
    """Sections of a part's documents, until the pool's file is made of them."""
    return folder / f"{name}.sections"
