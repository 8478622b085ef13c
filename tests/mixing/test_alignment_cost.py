"""What a plan says of alignment: cuts moved, cuts left, starts moved, and what that takes more."""

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

TEXT = b"One two. Three four!\nFive six.\n\nSeven eight nine"


def plan(root: Path, slicing: dict[str, Any], tokenizer: str | None = "bytes") -> Any:
    """A plan over one pool of one text, with windows of 12 bytes."""
    if not (root / "web").exists():
        recipe.write_pool(root / "web", [np.frombuffer(TEXT, np.uint8).astype(np.int64)], vocab_size=257)
    stage = {"context": 12, "steps": 1, "batch": {"sequences": 1}, "quotas": {"web": "100%"}}
    plain = {"seed": 1, "pools": {"web": {"path": str(root / "web")}}, "tokenizer": tokenizer}
    stages = {"only": {**stage, "slicing": slicing}}
    return recipe.make_plan(recipe_from_plain({**plain, "stages": stages}, source="test"))


def test_B4_a_plan_counts_what_alignment_moves_and_costs(tmp_path: Path):
    made = plan(tmp_path, {"align": "line", "align_within": 11})
    epoch = made.stages["only"].pools["web"].epoch
    counted = {key: epoch[f"align_{key}"] for key in ("moved", "unaligned", "starts")}
    assert counted == {"moved": 2, "unaligned": 2, "starts": 0}  # 24 -> 21, 33 -> 32; 12 and 44 stay
    more = {key: epoch[f"align_{key}"] for key in ("pieces", "sequences", "padding")}
    assert more == {"pieces": 1, "sequences": 1, "padding": 12}


def test_a_plan_shows_the_cost_of_alignment_only_where_there_is_some(tmp_path: Path):
    told = []
    for slicing in ({"align": "line"}, {}):
        console = Console(record=True, width=160)
        for each in plan_tables(plan(tmp_path, slicing).to_plain()):
            console.print(each)
        told.append(console.export_text())
    assert "what alignment costs" in told[0]
    assert "align" not in told[1]


def test_a_plan_without_the_tokenizer_of_a_pool_says_which_it_needs(tmp_path: Path):
    with pytest.raises(RecipeError, match=r"tokenizer[\s\S]*write tokenizer"):
        plan(tmp_path, {"align": "word"}, tokenizer=None)
    assert not plan(tmp_path, {"align": "none"}, tokenizer=None).problems
