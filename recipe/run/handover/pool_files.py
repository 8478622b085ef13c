"""The files of a pool that travel: its metadata, and only on request its tokens and document table."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from recipe.pools import Pool
from recipe.pools.card import CARD_NAME
from recipe.pools.metadata import copy_metadata, metadata_files
from recipe.run.handover.data import PREPARED_NAME
from recipe.run.handover.staging import Staging

Inside = Literal["tokens", "metadata", "nothing"]


def inside(pool: Pool, *, tokens: bool) -> Inside:
    """What a package holds of a pool."""
    if tokens:
        return "tokens"
    return "metadata" if pool.layout.table is not None else "nothing"


def pool_bytes(pool: Pool, *, tokens: bool, documents: bool) -> int:
    """Bytes of what is copied."""
    files = _files(pool, tokens=tokens, documents=documents)
    return sum(path.stat().st_size for path in files.values())


def put_pool(staging: Staging, folder: str, pool: Pool, *, tokens: bool, documents: bool) -> str | None:
    """Copy them; what is left to say of a pool of which nothing may be copied.

    Raises:
        RecipeError: boundaries that are not what the card says.
    """
    if inside(pool, tokens=tokens) == "nothing":
        return (
            f"pool {pool.name}: imported files, whose marks are looked up in their tokens: nothing of it is "
            "in the package, and what was drawn from it cannot be computed there (use --with-tokens)"
        )
    files = _files(pool, tokens=tokens, documents=documents)
    if not tokens:
        copy_metadata(pool, staging.folder / folder, documents=documents)
        staging.adopt(folder)
        files = {name: path for name, path in files.items() if name == PREPARED_NAME}
    for name, path in files.items():
        staging.copy(f"{folder}/{name}", path.resolve())
    return None


def _files(pool: Pool, *, tokens: bool, documents: bool) -> dict[str, Path]:
    """The files to copy, by name in the pool's new folder."""
    layout = pool.layout
    paths = [path for part in range(pool.num_parts) for path in layout.files(part) if tokens]
    parts = list(dict.fromkeys(path.relative_to(layout.folder).as_posix() for path in paths))
    if layout.table is None:
        return {name: layout.folder / name for name in parts}
    prepared = [PREPARED_NAME] if (layout.folder / PREPARED_NAME).is_file() else []
    own = (CARD_NAME, *pool.card.files) if tokens else metadata_files(pool.card, documents=documents)
    return {name: layout.folder / name for name in dict.fromkeys([*own, *prepared, *parts])}
