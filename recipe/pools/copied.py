"""Pools made of chosen documents of others: written once, and known again when the same is wanted."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.adopting import EXTENDS
from recipe.pools.beside import RECORD_NAME, sealed_record
from recipe.pools.card import CARD_NAME, Card, card_text, read_card
from recipe.pools.copying import COPIED, copy_documents
from recipe.pools.opening import open_pool
from recipe.pools.pool import Pool
from recipe.pools.reasons import added
from recipe.pools.splits import SPLIT
from recipe.pools.workplace import is_used, tidy, write_durably

SINCE = "left_out_since"
"""Key of a card's ``source``: documents left out since the records were read, by reason."""


def existing_copy(path: Path, pool: Pool, source: Mapping[str, Any]) -> Pool | None:
    """The copy that is there, if it is the same; None: nothing is there.

    Raises:
        RecipeError: something else is there.
    """
    if not is_used(path):
        return None
    if (path / CARD_NAME).is_file():
        said = read_card(path).source
        origin = said.get(COPIED, {}).get("fingerprint")
        if origin == pool.fingerprint and all(said.get(key) == value for key, value in source.items()):
            tidy(path)
            _write_beside(pool, path)  # an older version gave copies their names before
            return open_pool(path, path.name)
    kind = "another pool" if (path / CARD_NAME).is_file() else "something that is no pool"
    raise RecipeError.single(
        str(path), str(path), given=kind, expected="a new folder, or the same pool",
        fix="choose another folder, or remove it first: a pool is never written over",
    )  # fmt: skip


def write_copy(  # noqa: PLR0913  what may differ from the pool that is copied
    pool: Pool,
    chosen: NDArray[np.bool_],
    path: Path,
    *,
    tags: Callable[[int], Mapping[str, Any] | None] = lambda number: None,
    source: Mapping[str, Any],
    left_out: Mapping[str, int],
    elsewhere: Mapping[str, int] | None = None,
) -> Pool:
    """Write the chosen documents of a pool; interrupted, the same goes on.

    Args:
        pool: an own pool.
        chosen: bool[num_numbers].
        path: of the new pool.
        tags: those of a document by its number; None: what it has.
        source: what the new card says beside what the old one does.
        left_out: documents by reason, added to what the old card says.
        elsewhere: likewise, those that would be in other copies too; default: ``left_out`` is all.

    Raises:
        RecipeError: as ``copy_documents``.
    """
    dropped = added(pool.card.dropped, left_out)
    since = added(left_out_since(pool.card), left_out if elsewhere is None else elsewhere)
    source = {**readings_of(pool.card), **source, **({SINCE: since} if since else {})}
    return copy_documents(
        pool, chosen, path, source=source, dropped=dropped,
        tags=lambda row: row.tags if (said := tags(row.document)) is None else said,
        beside=lambda folder: _write_beside(pool, folder),
    )  # fmt: skip


def left_out_since(card: Card) -> dict[str, int]:
    """Documents that copies left out since the records were read, by reason: of pools it extends, too."""
    parts = [card.source, *(entry["source"] for entry in card.source.get(EXTENDS, ()))]
    return reduce(added, (part.get(SINCE, {}) for part in parts))


def readings_of(card: Card) -> dict[str, Any]:
    """What was read for a pool and those that it extends, as one reading; nothing where that is on record."""
    parts = [card.source, *(entry["source"] for entry in card.source.get(EXTENDS, ()))]
    if len(parts) == 1 or not all(isinstance(part.get("read"), Mapping) for part in parts):
        return {}
    tallies = [part["read"] for part in parts]
    keys = dict.fromkeys(key for tally in tallies for key in tally)
    read: dict[str, Any] = {
        key: sum(tally.get(key) or 0 for tally in tallies) for key in keys if key != "quarantined"
    }
    read["quarantined"] = reduce(added, (tally["quarantined"] for tally in tallies))
    splits = [part[SPLIT] for part in parts if SPLIT in part]
    documents = reduce(added, (split["documents"] for split in splits), dict[str, int]())
    return {"read": read, **({SPLIT: {**splits[0], "documents": documents}} if splits else {})}


def _write_beside(pool: Pool, path: Path) -> None:
    """What is said beside the documents goes along: the summary of the text, and how it was prepared."""
    card, record = read_card(path), pool.path / RECORD_NAME
    if record.is_file() and not (path / RECORD_NAME).exists():
        plain = json.loads(record.read_bytes())
        plain = {key: value for key, value in plain.items() if key not in ("beside", "hash")}
        plain["settings"] = {**plain.get("settings", {}), COPIED: card.source[COPIED]}
        write_durably(path / RECORD_NAME, sealed_record(path, plain))
    if card.about is None and pool.card.about:
        write_durably(path / CARD_NAME, card_text(replace(card, about=dict(pool.card.about))))
