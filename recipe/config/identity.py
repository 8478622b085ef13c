"""What makes two recipes the same, and what differs between them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recipe.config.building import recipe_to_plain
from recipe.config.recipe import Recipe

_FREE = ("trainer", "policy")
_ABSENT = "(nothing)"


def fingerprint(recipe: Recipe) -> str:
    """Content hash of a recipe: 64 hex digits of BLAKE2b.

    Where pools lie, what the recipe is called and how its trainer splits a model do not count; the order of
    pools and stages does. Values equal to their defaults are left out, so that a later version with more keys
    gives the same hash.
    """
    plain = recipe.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    for key in ("name", "pools_root", "parallel"):
        plain.pop(key, None)
    for name, stage in plain["stages"].items():
        if "document_multiple" in stage.get("packing", {}):
            stage["packing"]["document_multiple"] = recipe.stages[name].packing.multiple(recipe.parallel)
    for pool in plain["pools"].values():
        pool.pop("path", None)
    for key in _FREE:
        if key in plain:
            plain[key] = json.dumps(plain[key], sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    text = json.dumps(_in_order(plain), separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()


def _in_order(plain: Mapping[str, Any]) -> list[Any]:
    """Mappings as lists of pairs: pools and stages in their order, everything else sorted."""
    whole = {**plain, "pools": list(plain["pools"].items()), "stages": list(plain["stages"].items())}
    return [[key, _sorted(whole[key])] for key in sorted(whole)]


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [[key, _sorted(value[key])] for key in sorted(value)]
    return [_sorted(item) for item in value] if isinstance(value, list | tuple) else value


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


def in_short(lines: Iterable[str]) -> list[str]:
    """The lines of a difference, those of a stage that is gone as one.

    >>> in_short(["seed: 1 → 2", "stages.x.context: 8 → (nothing)", "stages.x.tokens: 9 → (nothing)"])
    ['seed: 1 → 2', 'stage x left out']
    """
    lines = list(lines)
    gone = {name: f"stage {name} left out" for line in lines if (name := _left_out(line)) is not None}
    told = []
    for line in lines:
        first, _, rest = line.partition(".")
        is_of_gone = first == "stages" and line.endswith(f" → {_ABSENT}")
        told.append(gone.get(rest.partition(".")[0], line) if is_of_gone else line)
    return list(dict.fromkeys(told))


def _left_out(line: str) -> str | None:
    """The stage that a line says is gone: each has a context."""
    found = re.fullmatch(rf"stages\.([^.:]+)\.context: .* → {re.escape(_ABSENT)}", line)
    return None if found is None else found[1]


def _flat(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for key, below in value.items():
        if isinstance(below, Mapping) and below:
            yield from _flat(below, f"{above}{key}.")
        else:
            yield f"{above}{key}", below
