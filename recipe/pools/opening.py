"""Opening pools: own folders by their card, token files that somebody else made as they are."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from recipe.config.places import StorePath, place
from recipe.errors import Problem, RecipeError
from recipe.pools.card import (
    CARD_NAME,
    HASHES_NAME,
    LEADS_NAME,
    NEEDS_NAME,
    OFFSETS_NAME,
    REPEATS_NAME,
    SECTIONS_NAME,
    TABLE_NAME,
    UNITS_NAME,
    WITHDRAWN_NAME,
    Card,
    Marks,
    read_card,
)
from recipe.pools.foreign.form import NOTHING_SAID, Form
from recipe.pools.foreign.layout import Said
from recipe.pools.foreign.opening import imported_layout, refuse_form
from recipe.pools.layout import Layout
from recipe.pools.mapped import cannot_open
from recipe.pools.own_arrays import OwnArrays
from recipe.pools.pool import Pool
from recipe.pools.settings import SETTINGS_NAME
from recipe.pools.workplace import unfinished_folder

if TYPE_CHECKING:
    from recipe.pools.remote.folder import StoredFolder

OWN_FILES = (OFFSETS_NAME, HASHES_NAME, TABLE_NAME, "part-00000.bin")


def open_pool(
    path: Path | str, name: str, *, eos: int | None = None, bos: int | None = None, form: Form = NOTHING_SAID
) -> Pool:
    """The pool at ``path``, under the name the recipe gives it.

    Own folders: only the card is read, and the sizes of the files it names are compared with it.
    Anything else is token files that somebody else made: Megatron pairs, ``.npy`` or raw files, datatrove's,
    MDS folders, or tables with a column of ids; a file, a prefix, a folder (and its sub-folders) or a
    pattern, taken in sorted order. A URL is an own folder in a store; see `recipe.pools.remote`.

    Args:
        path: folder, URL of a folder, prefix (``…/part`` for ``part.bin`` and ``part.idx``) or pattern.
        name: of the pool in the recipe.
        eos: end mark to recognise in imported files; own pools state theirs.
        bos: begin mark, likewise.
        form: what files that somebody else made leave open.

    Raises:
        RecipeError: missing, unfinished, cut short, changed, or of an unknown format.
    """
    found = place(path)
    if isinstance(found, StorePath):
        # what talks to stores: only pools that lie in one have a use for it
        from recipe.pools.remote.opening import open_in_store

        refuse_form(name, form, f"{found} is in a store, where pools are our own")
        return open_in_store(found, name, (eos, bos))
    try:
        return _open(found, name, Said(form, (eos, bos)))
    except PermissionError as error:
        raise cannot_open(Path(error.filename or path), error) from error


def _open(path: Path, name: str, said: Said) -> Pool:
    if (path / CARD_NAME).is_file() and not (path / SETTINGS_NAME).exists():
        refuse_form(name, said.form, f"{path} is an own pool, whose card states it")
        return _open_own(path, name, *said.marks)
    if path.is_dir() and any((path / file).exists() for file in OWN_FILES):
        given = "a pool folder without its card: it was never finished, or copied in part"
        raise _missing(path, name, given, path)
    if (layout := imported_layout(path, name, said, reopen_pool)) is not None:
        return Pool(name, path, layout)
    if unfinished_folder(path).is_dir():
        given = "a pool that is still being written, or whose writing was interrupted"
        raise _missing(path, name, given, unfinished_folder(path))
    given = "a folder without token files" if path.is_dir() else "no pool"
    raise _missing(path, name, given)


def reopen_pool(
    path: Path,
    name: str,
    declared: Marks,
    fingerprint: str,
    form: Form = NOTHING_SAID,
) -> Pool:
    """The pool that was pickled, on the other side.

    Raises:
        RecipeError: another pool is there now.
    """
    pool = open_pool(path, name, eos=declared[0], bos=declared[1], form=form)
    if pool.fingerprint != fingerprint:
        raise RecipeError.single(
            f"pool {name}", str(path), given=f"a pool with fingerprint {pool.fingerprint}",
            expected=fingerprint, fix="put the pool back that was opened before",
        )  # fmt: skip
    return pool


def _open_own(path: Path, name: str, eos: int | None, bos: int | None) -> Pool:
    card = read_card(path)
    check_marks(path, name, card, (eos, bos))
    check_sizes(path, own_sizes(card))
    return own_pool(path, name, card, (eos, bos))


def own_pool(
    path: Path,
    name: str,
    card: Card,
    declared: Marks,
    remote: StoredFolder | None = None,
) -> Pool:
    """The pool of a card; ``declared`` are the eos and bos that the recipe states. No file is opened.

    ``remote``: of a pool in a store, whose files are copied to ``path`` when somebody opens them.
    """
    documents = np.cumsum([0, *(part.documents for part in card.parts)], dtype=np.int64)
    offsets = np.cumsum([0, *(part.tokens for part in card.parts)], dtype=np.int64)
    own = OwnArrays(path, card)
    layout = Layout(
        fingerprint=card.fingerprint,
        token_dtype=np.dtype(card.token_dtype).newbyteorder("<"),
        folder=path,
        part_names=tuple(part.name for part in card.parts),
        part_documents=documents,
        part_offsets=offsets,
        num_units=card.num_units,
        extent_units=card.extent_units,
        bos=card.bos,
        eos=card.eos,
        bos_stored=card.bos_stored,
        eos_stored=card.eos_stored,
        load_card=lambda _pool: card,
        load_offsets=own.offsets,
        load_units=own.units if UNITS_NAME in card.files else None,
        load_sections=own.sections if SECTIONS_NAME in card.files else None,
        load_needs=own.needs if NEEDS_NAME in card.files else None,
        load_leads=own.leads if LEADS_NAME in card.files else None,
        load_repeats=own.repeats if REPEATS_NAME in card.files else None,
        load_erased=own.erased if WITHDRAWN_NAME in card.files else None,
        table=path / TABLE_NAME,
        ids_are_numbers=card.ids == "number",
        reopen=reopen_pool,
        declared=declared,
        remote=remote,
    )
    return Pool(name, path, layout)


def check_marks(path: Path, name: str, card: Card, declared: Marks) -> None:
    """Marks a recipe declares for an own pool (eos, bos) must be the card's."""
    problems = [
        Problem(
            f"pools.{name}.{mark}", str(given), f"{stated}, as the card of {path} says",
            f"leave {mark} out: only imported pairs need it",
        )
        for mark, given, stated in (("eos", declared[0], card.eos), ("bos", declared[1], card.bos))
        if given is not None and given != stated
    ]  # fmt: skip
    if problems:
        raise RecipeError(f"pool {name}", problems)


def own_sizes(card: Card) -> dict[str, int]:
    """Bytes of every file that a card names."""
    sizes = {name: record.bytes for name, record in card.files.items()}
    sizes |= {f"{part.name}.bin": part.bytes for part in card.parts}
    return sizes | {f"{part.name}.idx": part.index_bytes for part in card.parts}


def check_sizes(path: Path, sizes: Mapping[str, int], found: Mapping[str, int] | None = None) -> None:
    """These files are there in full; they are looked at, not opened. ``found``: what a store has there."""
    found = _found_sizes(path) if found is None else found
    fix = "copy the file again from where it is whole, or prepare the pool again"
    problems = [
        Problem(str(path / file), _as_found(found.get(file)), f"{expected} bytes, as its card says", fix)
        for file, expected in sizes.items()
        if found.get(file) != expected
    ]
    if problems:
        raise RecipeError(str(path), problems)


def _found_sizes(path: Path) -> dict[str, int]:
    """Bytes of each file of a folder; one pass, whatever the number of files."""
    sizes = {}
    with os.scandir(path) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):  # a link that leads nowhere
                sizes[entry.name] = entry.stat().st_size
    return sizes


def _as_found(size: int | None) -> str:
    if size is None:
        return "no file"
    return f"{size} bytes" if size else "an empty file (0 bytes)"


def _missing(path: Path, name: str, given: str, unfinished: Path | None = None) -> RecipeError:
    fix = "prepare it (recipe prepare), or correct the pool's path"
    if unfinished is not None:
        fix = f"{fix}; what is unfinished can be removed: rm -r {shlex.quote(str(unfinished))}"
    return RecipeError.single(
        f"pool {name}", str(path), given=given,
        expected="a folder with a card.json, Megatron .bin and .idx pairs, or other token files",
        fix=fix,
    )  # fmt: skip
