"""The pools of a split, prepared in one reading: what is checked and said of them together."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from recipe.errors import Problem, RecipeError
from recipe.pools.pool import Pool
from recipe.pools.splits import Split
from recipe.pools.workplace import write_durably
from recipe.text.documents import Tally
from recipe.text.duplicates import Placed, Rule
from recipe.text.targets import load_json

SPLITS_NAME = "splits.json"
"""Beside the pools of a split: the rule, and what each of them is."""
FORMAT = 1


def check_counts(out: Path, rule: Rule, placed: Placed, total: int) -> None:
    """Refuse a split that would hold nothing: a measure of nothing is no measure.

    Raises:
        RecipeError: naming each one.
    """
    assert rule.split is not None
    problems = [
        Problem(
            name, f"0 of {total:,} documents", f"at least one, for a share of {share}",
            "give it a larger share, leave it out, or choose another --split-salt",
        )
        for index, (name, share) in enumerate(rule.split.shares.items())
        if placed.count(index) == 0 and rule.extends[index] is None
    ]  # fmt: skip
    if problems:
        raise RecipeError(f"splits of {out}", problems)


def write_record(out: Path, split: Split, pools: Sequence[Pool], tally: Tally) -> None:
    """Say beside the pools what they are; written last."""
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
    record = {"format": FORMAT, **split.to_plain(), "read": tally.to_plain(), "pools": said}
    write_durably(out / SPLITS_NAME, (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())


def has_record(out: Path, pools: Sequence[Pool]) -> bool:
    """Whether what is said beside them is of these pools."""
    said = load_json(out / SPLITS_NAME).get("pools", {})
    return [entry.get("fingerprint") for entry in said.values()] == [pool.fingerprint for pool in pools]
