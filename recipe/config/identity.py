"""What makes two recipes the same, and what differs between them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from recipe.config.building import recipe_to_plain
from recipe.config.recipe import Recipe

_ABSENT = "(nothing)"


def fingerprint(recipe: Recipe) -> str:
    """Content hash of a recipe: 64 hex digits of BLAKE2b.

    Where pools lie and what the recipe is called do not count; the order of pools and stages does.
    """
    plain = recipe_to_plain(recipe)
    for key in ("name", "pools_root"):
        plain.pop(key, None)
    for pool in plain["pools"].values():
        pool.pop("path", None)
    text = json.dumps(_ordered(plain), separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()


def _ordered(value: Any) -> Any:
    """Mappings as lists of pairs: their order counts where names are free, and is sorted elsewhere."""
    if not isinstance(value, Mapping):
        return value
    pairs = {
        key: [[name, _ordered(part)] for name, part in below.items()]
        if key in ("pools", "stages") and _is_named(below)
        else _ordered(below)
        for key, below in value.items()
    }
    return [[key, pairs[key]] for key in sorted(pairs)]


def _is_named(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(part, Mapping) for part in value.values())


def difference(old: Recipe, new: Recipe) -> list[str]:
    """What changed from one recipe to another, one line a key: ``key: old → new``.

    Names and paths are shown too, although they are no part of the identity.
    """
    before, after = recipe_to_plain(old), recipe_to_plain(new)
    lines = [
        f"{key}: order {', '.join(before[key])} → {', '.join(after[key])}"
        for key in ("pools", "stages")
        if list(before[key]) != list(after[key]) and set(before[key]) == set(after[key])
    ]
    flat_before, flat_after = dict(_flat(before)), dict(_flat(after))
    for key in dict.fromkeys([*flat_before, *flat_after]):
        was, becomes = flat_before.get(key, _ABSENT), flat_after.get(key, _ABSENT)
        if was != becomes:
            lines.append(f"{key}: {was} → {becomes}")
    return lines


def _flat(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, below in value.items():
        if isinstance(below, Mapping) and below:
            yield from _flat(below, f"{above}{key}.")
        else:
            yield f"{above}{key}", below
