"""What a plan says of windows that repeat others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import recipe
from recipe.config import recipe_from_plain
from recipe.errors import RecipeError
from recipe.report.plans import plan_tables

LETTERS = [b"Hi,\nyes. Bye", b"Hi,\nand so? > yes. Bye"]
"""Windows of 4: three new ones; then the first, two new, one that is new by half, one old, the last."""


def plan(root: Path, slicing: dict[str, Any], **options: Any) -> Any:
    if not (root / "mail").exists():
        arrays = [np.frombuffer(text, np.uint8).astype(np.int64) for text in LETTERS]
        recipe.write_pool(root / "mail", arrays, vocab_size=257, groups=["thread"] * 2, **options)
    stage = {"context": 4, "steps": 1, "batch": {"sequences": 1}, "quotas": {"mail": "100%"}}
    plain = {"seed": 1, "pools": {"mail": {"path": str(root / "mail")}}}
    stages = {"only": {**stage, "slicing": slicing}}
    return recipe.make_plan(recipe_from_plain({**plain, "stages": stages}, source="test"))


@pytest.mark.parametrize(("part", "windows"), [("keep", None), ("drop", 1), ("75%", 1), ("25%", 2)])
def test_A12_a_plan_counts_windows_and_tokens_that_are_dropped(
    tmp_path: Path, part: str, windows: int | None
):
    epoch = plan(tmp_path, {"duplicates": part}, repeats=5).stages["only"].pools["mail"].epoch
    assert epoch.get("duplicate_pieces") == windows
    assert epoch.get("dropped_duplicate") == (windows and 4 * windows)
    assert epoch["body"] == sum(map(len, LETTERS)) - 4 * (windows or 0)


def test_A12_a_plan_shows_duplicates_only_where_they_are_dropped(tmp_path: Path):
    told = []
    for slicing in ({"duplicates": "25%"}, {}):
        console = Console(record=True, width=160)
        for each in plan_tables(plan(tmp_path, slicing, repeats=5).to_plain()):
            console.print(each)
        told.append(console.export_text())
    assert "only: duplicates" in told[0]
    assert "duplicate" not in told[1]


def test_A12_a_plan_names_the_pool_in_which_nobody_looked(tmp_path: Path):
    with pytest.raises(RecipeError, match=r"pools\.mail[\s\S]*recipe prepare --repeats"):
        plan(tmp_path, {"duplicates": "drop"})
