"""The pools of a split, prepared in one reading: what is checked of them together."""

from __future__ import annotations

from pathlib import Path

from recipe.errors import ContentError, Problem
from recipe.text.duplicates import Placed, Rule


def check_counts(out: Path, rule: Rule, placed: Placed, total: int) -> None:
    """Refuse a split that would hold nothing: a measure of nothing is no measure.

    Raises:
        ContentError: naming each one.
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
        raise ContentError(f"splits of {out}", problems)
