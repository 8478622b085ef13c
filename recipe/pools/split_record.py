"""What is said beside the pools of a split: the rule, and what each of them is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from recipe.errors import Problem, RecipeError
from recipe.pools.pool import Pool
from recipe.pools.splits import Split
from recipe.pools.workplace import write_durably

SPLITS_NAME = "splits.json"
"""Beside the pools of a split; written last."""
FORMAT = 1


def write_record(out: Path, split: Split, pools: Sequence[Pool], read: Mapping[str, Any]) -> None:
    """Say what the pools are; ``read`` counts the documents that were looked at, which add up."""
    said = {
        name: {
            "share": str(split.shares[name]),
            "documents": pool.card.num_documents,
            "tokens": pool.card.body_tokens,
            "left_out": dict(pool.card.dropped),
            "fingerprint": pool.fingerprint,
        }
        for name, pool in zip(split.names, pools, strict=True)
    }
    record = {"format": FORMAT, **split.to_plain(), "read": read, "pools": said}
    write_durably(out / SPLITS_NAME, (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())


def check_others(out: Path, split: Split) -> None:
    """Refuse a folder in which pools of another split would stay beside the new ones: they share texts.

    Raises:
        RecipeError: naming each.
    """
    try:
        said = list(json.loads((out / SPLITS_NAME).read_bytes())["pools"])
    except (OSError, ValueError, KeyError, TypeError):
        return
    problems = [
        Problem(
            str(out / name), "a pool of the split that was there before", "none beside the new ones",
            "remove it, or choose another folder: its texts are in the new pools too",
        )
        for name in said
        if name not in split.names and (out / name).exists()
    ]  # fmt: skip
    if problems:
        raise RecipeError(f"splits of {out}", problems)


def has_record(out: Path, pools: Sequence[Pool]) -> bool:
    """Whether what is said beside them is of these pools."""
    try:
        said = json.loads((out / SPLITS_NAME).read_bytes())["pools"]
        return [entry["fingerprint"] for entry in said.values()] == [pool.fingerprint for pool in pools]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def split_at(out: Path) -> Mapping[str, Any] | None:
    """What is said beside the pools of a split: ``shares`` by name, ``salt``; None: the folder holds none."""
    try:
        said = json.loads((out / SPLITS_NAME).read_bytes())
        names, salt = [str(name) for name in said["shares"]], int(said["salt"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return {"shares": {name: str(said["shares"][name]) for name in names}, "salt": salt}
