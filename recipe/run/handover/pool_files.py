"""The files of a pool that travel: its metadata, and only on request its tokens and document table."""

from __future__ import annotations

from pathlib import Path

from recipe.pools import Pool
from recipe.pools.card import CARD_NAME
from recipe.run.handover.data import PREPARED_NAME
from recipe.run.handover.staging import Staging

_EDGES = ("offsets.npy", "units.npy")


def pool_files(pool: Pool, *, tokens: bool, documents: bool) -> dict[str, Path]:
    """The files to copy, by name in the pool's new folder."""
    layout = pool.layout
    if layout.table is None:
        endings = (".idx", ".bin") if tokens else (".idx",)
        names = [f"{part}{ending}" for part in layout.part_names for ending in endings]
    else:
        names = [CARD_NAME, *(name for name in pool.card.files if tokens or name in _EDGES)]
        names += [PREPARED_NAME] if (layout.folder / PREPARED_NAME).is_file() else []
        names += [layout.table.name] if documents else []
        names += [f"{part}{ending}" for part in layout.part_names for ending in (".bin", ".idx") if tokens]
    return {name: layout.folder / name for name in dict.fromkeys(names)}


def pool_bytes(pool: Pool, *, tokens: bool, documents: bool) -> int:
    """Bytes of those files."""
    return sum(path.stat().st_size for path in pool_files(pool, tokens=tokens, documents=documents).values())


def copy_pool(staging: Staging, folder: str, pool: Pool, *, tokens: bool, documents: bool) -> None:
    """Copy them, a block at a time."""
    for name, path in pool_files(pool, tokens=tokens, documents=documents).items():
        staging.copy(f"{folder}/{name}", path.resolve())
