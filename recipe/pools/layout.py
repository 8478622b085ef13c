"""The layout of a pool: where its contents lie, what its index says, and how to get at the rest.

Openers make it, one for each form that token files come in; the pool itself is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recipe.pools.card import Card, Marks
from recipe.pools.finding import Finding
from recipe.pools.offsets import Offsets

if TYPE_CHECKING:
    from recipe.pools.pool import Pool
    from recipe.pools.remote.folder import StoredFolder


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where a pool's contents lie and how to get at them; what an opener hands to ``Pool``."""

    fingerprint: str
    token_dtype: np.dtype[Any]
    folder: Path
    part_names: tuple[str, ...]
    """Files of the folder, without their endings."""
    part_documents: NDArray[np.int64]
    part_offsets: NDArray[np.int64]
    num_units: int
    extent_units: int
    bos: int | None
    eos: int | None
    bos_stored: str
    eos_stored: str
    load_card: Callable[[Pool], Card]
    load_offsets: Callable[[], NDArray[np.int64] | Offsets]
    load_units: Callable[[], NDArray[np.int64]] | None
    load_sections: Callable[[], NDArray[np.int64]] | None = None
    load_needs: Callable[[], NDArray[np.int64]] | None = None
    load_repeats: Callable[[], NDArray[np.int64]] | None = None
    load_leads: Callable[[], NDArray[np.uint32]] | None = None
    load_erased: Callable[[], NDArray[np.int64]] | None = None
    table: Path | None
    """The document table of an own pool."""
    ids_are_numbers: bool
    """Whether the id of each document is its number in the pool."""
    reopen: Callable[..., Pool]
    declared: Marks
    """The eos and bos the opener was given; ``reopen`` gets them again."""
    load_part: Callable[[int], NDArray[Any]] | None = None
    """The stored tokens of a part, by its number, as one array that stays where it is in memory; None: the
    token file, mapped."""
    part_files: tuple[tuple[Path, ...], ...] | None = None
    """All files of each part, the one with its tokens first; None: ``.bin`` and ``.idx`` in the folder."""
    prefix: Callable[[int, int], str] | None = None
    """Of imported files: the fingerprint of the pool that parts ``[first, end)`` are alone."""
    check: Callable[[bool], list[Finding]] | None = None
    """Of imported files: what is wrong with them, looked at in full if True; None: indices of pairs are
    compared with token files."""
    remote: StoredFolder | None = None
    """Where its files lie in a store: ``folder`` then holds copies of those that somebody opened."""

    notes: tuple[str, ...] = ()
    """What whoever uses the pool should know of its files."""

    def table_file(self) -> Path:
        """The document table of an own pool."""
        assert self.table is not None
        return self.table

    def files(self, index: int) -> tuple[Path, ...]:
        """The files of a part, the one with its tokens first."""
        if self.part_files is not None:
            return self.part_files[index]
        return tuple(self.folder / f"{self.part_names[index]}{ending}" for ending in (".bin", ".idx"))

    def part_path(self, index: int) -> Path:
        """Token file of a part."""
        return self.files(index)[0]

    def file_name(self, index: int) -> str:
        """Token file of a part, as its folder has it, and which part of the file if it holds several."""
        if self.part_files is not None:
            return self.part_names[index]
        return self.part_path(index).relative_to(self.folder).as_posix()
