"""Documents that withdrawals on record name, whatever became of the rows: their tokens may be erased."""

from __future__ import annotations

import json
from base64 import b85decode
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.audit.chain import Text
from recipe.config import Recipe
from recipe.config.view import families
from recipe.run.canonical import digest


def taken_down(folder: Path, text: Text) -> dict[str, NDArray[np.int64]]:
    """Per pool, int64[n]: numbers of the documents withdrawn in this run or before it began, rising.

    A list whose bytes are not those of the hash on record names nothing here; it is a finding elsewhere.
    """
    named: dict[str, list[NDArray[np.int64]]] = {}
    for entry in text.entries:
        if entry.kind == "withdraw":
            found = _of_file(folder, text.row(entry))
        elif entry.kind == "created" and entry.line == 0:
            found = _of_branch(text.row(entry).get("withdrawals"))
        else:
            continue
        for pool, documents in found.items():
            named.setdefault(pool, []).append(documents)
    return {pool: np.unique(np.concatenate(parts)) for pool, parts in named.items()}


def in_folders(
    named: dict[str, NDArray[np.int64]], recipes: Iterable[Recipe]
) -> dict[str, NDArray[np.int64]]:
    """The same, under every pool that reads their folder: what is erased is gone for all of them."""
    found, nothing = dict(named), np.empty(0, np.int64)
    for recipe in recipes:
        for members in families(recipe.pools):
            together = np.unique(np.concatenate([named.get(name, nothing) for name in members]))
            found |= {name: np.union1d(found.get(name, nothing), together) for name in members}
    return found


def _of_file(folder: Path, row: dict[str, Any]) -> dict[str, NDArray[np.int64]]:
    name = row.get("file")
    if not isinstance(name, str) or name != f"withdrawn/{Path(name).name}":
        return {}
    try:
        data = (folder / name).read_bytes()
        if digest(data) != row.get("file_hash"):
            return {}
        pools = json.loads(data)["documents"]
        return {str(pool): np.array(numbers, np.int64) for pool, numbers in pools.items()}
    except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError):
        return {}


def _of_branch(plain: Any) -> dict[str, NDArray[np.int64]]:
    """What a branch brought along: per pool texts in base 85 of differences between rising numbers."""
    found: dict[str, list[NDArray[np.int64]]] = {}
    try:
        for pool, entries in plain["pools"].items():
            for _, width, packed in entries:
                found.setdefault(str(pool), []).append(_unpacked(width, packed))
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}
    return {pool: np.concatenate(parts) for pool, parts in found.items()}


def _unpacked(width: int, packed: str) -> NDArray[np.int64]:
    data = b85decode(packed)
    steps = [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]
    return np.cumsum(steps, dtype=np.int64)
