"""A pool without its tokens: card and boundaries, enough to compute every length again.

For somebody who may not have the texts, because they are licensed or private, and who still wants to
check what was spent of them. What a pool is called in a record, its fingerprint, covers its boundaries:
metadata that were changed are not taken for the pool's.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from recipe.config.places import StorePath, in_store
from recipe.errors import RecipeError
from recipe.pools.card import BOUNDARIES, CARD_NAME, TABLE_NAME, WITHDRAWN_NAME, Card, Marks, read_card
from recipe.pools.foreign.form import NOTHING_SAID, Form
from recipe.pools.foreign.opening import refuse_form
from recipe.pools.offsets import boundary_fault
from recipe.pools.opening import check_marks, check_sizes, own_pool
from recipe.pools.pool import Pool
from recipe.pools.workplace import is_used, sync


def metadata_files(card: Card, *, documents: bool = False) -> tuple[str, ...]:
    """Files of a pool's folder that say how long its documents are; with their table if that is wanted."""
    edges = tuple(name for name in (*BOUNDARIES, WITHDRAWN_NAME) if name in card.files)
    return (CARD_NAME, *edges, *([TABLE_NAME] if documents and TABLE_NAME in card.files else []))


def copy_metadata(pool: Pool, dest: str | Path, *, documents: bool = False) -> Path:
    """Copy what is needed to compute lengths, and no token, to a new folder.

    Args:
        pool: an own pool; imported token files have no card, and their marks are known from their tokens.
        dest: the folder; it must not be there, or be empty.
        documents: copy the document table too: ids, groups, tags, sources and content hashes.

    Returns:
        the folder.

    Raises:
        RecipeError: imported pairs; a folder that is taken; a file that is not what the card says.
    """
    if pool.layout.table is None:
        raise RecipeError.single(
            f"pool {pool.name}", str(pool.path), given="imported token files",
            expected="a pool with a card: which marks such files store is looked up in their tokens",
            fix="prepare it as a pool of its own, or hand over its token files",
        )  # fmt: skip
    folder = Path(dest)
    if is_used(folder):
        raise RecipeError.single(
            f"pool {pool.name}", str(folder), given="something that is there already",
            expected="a new folder, or an empty one", fix="choose another place: nothing is overwritten",
        )  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    *others, card = reversed(metadata_files(pool.card, documents=documents))
    for name in others:
        shutil.copyfile(pool.layout.folder / name, folder / name)
        sync(folder / name)
        _check_hash(folder, pool.card, name)
    # last, as when a pool is written: a folder without its card is no pool
    shutil.copyfile(pool.layout.folder / card, folder / card)
    sync(folder / card)
    return folder


def open_metadata(
    path: Path | str, name: str, *, eos: int | None = None, bos: int | None = None, form: Form = NOTHING_SAID
) -> Pool:
    """The pool whose metadata lie at ``path``; its token files are not looked for, and none is ever opened.

    Boundaries are compared with the hashes that the card states, whatever their size: everything that
    is computed stands on them.

    Raises:
        RecipeError: no card, or files of another size or with other contents than it states.
    """
    place, url = Path(path), in_store(path)
    if url is not None:
        return _open_stored(url, name, (eos, bos))
    if not (place / CARD_NAME).is_file():
        raise RecipeError.single(
            f"pool {name}", str(place), given=f"no {CARD_NAME}" if place.is_dir() else "no such folder",
            expected=f"the metadata of a pool: {CARD_NAME} and what it names of {', '.join(BOUNDARIES)}",
            fix="copy them (`recipe.pools.metadata.copy_metadata`); imported token files have none",
        )  # fmt: skip
    card = read_card(place)
    refuse_form(name, form, f"{place} is an own pool, whose card states it")
    check_marks(place, name, card, (eos, bos))
    edges = [file for file in metadata_files(card) if file != CARD_NAME]
    check_sizes(place, {file: card.files[file].bytes for file in edges})
    for file in edges:
        _check_hash(place, card, file)
    return own_pool(place, name, card, (eos, bos))


def _open_stored(url: StorePath, name: str, marks: Marks) -> Pool:
    """The same of a pool in a store: its boundaries are copied here."""
    # what talks to stores: only pools that lie in one have a use for it
    from recipe.pools.remote.opening import open_in_store

    pool = open_in_store(url, name, marks, tokens=False)
    for file in metadata_files(pool.card):
        if file != CARD_NAME:
            _check_hash(pool.layout.folder, pool.card, file)
    return pool


def _check_hash(folder: Path, card: Card, name: str) -> None:
    if (fault := boundary_fault(folder, card, name)) is not None:
        expected, found = fault
        raise RecipeError.single(
            str(folder), str(folder / name), given=f"contents with hash {found}",
            expected=f"{expected}, as its card says",
            fix="copy the file again from where it is whole",
        )  # fmt: skip
