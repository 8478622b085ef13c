"""Part 2: the pools of a run as data, and the metadata of each: all but the tokens."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from recipe.config import Recipe
from recipe.config.naming import is_plain_name
from recipe.config.places import in_store
from recipe.config.view import filter_of, parent_name
from recipe.pools import Pool
from recipe.run.canonical import Plain

FORMAT = 1
PREPARED_NAME = "prepare.json"
"""In a pool's folder, where it was made from text: what it was made from."""


def pool_folders(recipe: Recipe) -> dict[str, str]:
    """Where each pool is looked for below a root of pools: a relative name that cannot leave it.

    The path that the recipe states, or its last component where it is absolute; a path that leads upwards,
    or one that two pools would share, is replaced by the pool's name. A view lies in its folder.
    """
    own = {name: pool for name, pool in recipe.pools.items() if pool.of is None}
    wanted = {name: _below(pool.path) for name, pool in own.items()}
    folders = {
        name: name if folder is None or _is_shared(folder, wanted.values()) else folder
        for name, folder in wanted.items()
    }
    apart = not any(_is_shared(folder, folders.values()) for folder in folders.values())
    folders = folders if apart else {name: name for name in folders}
    return {name: folders[parent_name(recipe.pools, name)] for name in recipe.pools}


def _is_shared(folder: str, wanted: Iterable[str | None]) -> bool:
    """Whether another pool wants the same folder, or one of the two lies in the other."""
    parts = folder.split("/")
    others = [other.split("/") for other in wanted if other is not None]
    return sum(parts[: len(other)] == other[: len(parts)] for other in others) > 1


def _below(path: str | None) -> str | None:
    if path is None:
        return None
    pure = in_store(path) or PurePosixPath(path)
    parts = pure.parts[-1:] if pure.is_absolute() else pure.parts
    plain = bool(parts) and all(is_plain_name(part) and "\\" not in part for part in parts)
    return "/".join(parts) if plain else None


def data_list(recipe: Recipe, pools: Mapping[str, Pool]) -> Plain:
    """Every pool: what it holds, what it was made from and with, and how it was told apart."""
    folders = pool_folders(recipe)
    return {
        "format": FORMAT,
        "pools": {
            name: {
                "folder": folders[name],
                **_pool(pool),
                **_view(recipe, name),
                "readings_allowed": recipe.epochs_allowed(name),
            }
            for name, pool in pools.items()
        },
        "groups": {name: list(group.pools) for name, group in recipe.groups.items()},
    }


def _view(recipe: Recipe, name: str) -> Plain:
    """What a pool holds of its folder, where that is not all or another pool names it."""
    pool, chosen = recipe.pools[name], filter_of(recipe.pools[name])
    said: Plain = {} if pool.of is None else {"of": pool.of}
    return said if chosen is None else {**said, "filter": chosen.to_plain()}


def _pool(pool: Pool) -> Plain:
    card = pool.card
    return {
        "fingerprint": pool.fingerprint,
        "documents": card.num_documents,
        "units": card.num_units,
        "body_tokens": card.body_tokens,
        "special_tokens": card.special_tokens,
        "counted": card.counted,
        "vocab_size": card.vocab_size,
        "largest_id": None if card.max_id is None else card.max_id.id,
        "max_document_tokens": card.max_document_tokens,
        "bos": card.bos,
        "eos": card.eos,
        "tokenizer": card.tokenizer,
        "tokenizer_name": card.tokenizer_name,
        "shuffled": card.shuffled,
        "seed": card.seed,
        "dropped": plain_of(card.dropped),
        "source": plain_of(card.source),
        "split": plain_of(card.source.get("split", "not recorded: one pool, one side of any split")),
        "inputs": _inputs(pool),
    }


def _inputs(pool: Pool) -> list[Any]:
    """The files a pool was prepared from, with their sizes and hashes, where that is on record."""
    try:
        record = json.loads((pool.layout.folder / PREPARED_NAME).read_bytes())
        inputs = record["inputs"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    dated = [{k: v for k, v in entry.items() if k != "mtime_ns"} for entry in inputs]
    return [plain_of(entry) for entry in dated]


def plain_of(value: Any) -> Any:
    """Plain values in which a path from the root of a file system is its last component.

    >>> plain_of({"file": "/data/web/a.jsonl", "size": 3})
    {'file': 'a.jsonl', 'size': 3}
    """
    if isinstance(value, Mapping):
        return {str(key): plain_of(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_of(item) for item in value]
    if isinstance(value, str) and Path(value).is_absolute():
        return Path(value).name
    return value
