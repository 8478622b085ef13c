"""What a plan expects transforms to choose, against what they choose."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from recipe.mixing.plan import make_plan
from recipe.report.plans import plan_tables
from tests.mixing.build import make, write

LENGTHS = [9, 30, 1, 17, 40, 12, 25, 8]
"""142 tokens; 15 pieces of at most 13."""


def planned(root: Path, lengths: list[int], rate: str | None, *, exact: bool = False, **pool: Any) -> Any:
    """A plan of a stage of one pool that is transformed, and one that is not."""
    if not (root / "code").exists():
        write(root / "code", lengths)
        write(root / "web", [20] * 50, first=90_000)
    code: dict[str, Any] = {"path": "code", "max_epochs": 9} | pool
    if rate is not None:
        code["transform"] = {"fim": {"rate": rate, "prefix": 4, "middle": 5, "suffix": 6}}
    stage = {"steps": 20, "context": 16, "batch": {"sequences": 4}, "weights": {"code": 1, "web": 1}}
    recipe = make(root, {"code": code, "web": {"max_epochs": 9}}, [stage])
    return make_plan(recipe, exact=exact, compare_packing=False)


@pytest.mark.parametrize(
    ("rate", "slicing", "right"),
    [
        ("100%", None, (60, 568)),
        ("50%", None, (30, 284)),
        ("0%", None, (0, 0)),
        # with overlap only first pieces are chosen: 8 of at most 10 tokens
        ("100%", {"window": 10, "stride": 6}, (32, 272)),
    ],
)
def test_the_pieces_and_tokens_of_an_epoch_by_hand(tmp_path: Path, rate: str, slicing: Any, right: Any):
    plan = planned(tmp_path, LENGTHS * 4, rate, slicing=slicing)
    epoch = plan.stages["s0"].pools["code"].epoch
    assert (epoch["transformed_pieces"], epoch["transformed_tokens"]) == right
    assert "transformed_pieces" not in plan.stages["s0"].pools["web"].epoch


@pytest.mark.parametrize("exact", [False, True])
def test_what_a_stage_transforms_is_as_much_as_it_reads(tmp_path: Path, exact: bool):
    plan = planned(tmp_path, LENGTHS * 4, "50%", exact=exact)
    pool = plan.stages["s0"].pools["code"]
    assert pool.transformed == (round(pool.epochs * 30), round(pool.epochs * 284))
    assert plan.to_plain()["stages"]["s0"]["pools"]["code"]["transformed"]["pieces"] == pool.transformed[0]
    assert "transformed" not in plan.to_plain()["stages"]["s0"]["pools"]["web"]


def test_what_is_expected_is_what_is_chosen_but_for_chance(tmp_path: Path):
    plan = planned(tmp_path, [10 + n % 4 for n in range(4_000)], "25%", exact=True)
    pieces, _ = plan.stages["s0"].pools["code"].transformed
    special = plan.stages["s0"].pools["code"].special
    assert special % 3 == 0
    assert abs(special / 3 - pieces) < 4 * (pieces * 0.75) ** 0.5 + 1


def test_the_table_says_so(tmp_path: Path):
    console = Console(width=300, record=True, file=StringIO())
    for table in plan_tables(planned(tmp_path, LENGTHS * 4, "100%").to_plain()):
        console.print(table)
    told = console.export_text()
    assert "filled in the middle: code, about" in told and "(100.00 %)" in told
    for table in plan_tables(planned(tmp_path, LENGTHS * 4, None).to_plain()):
        console.print(table)
    assert "filled in" not in console.export_text()
