"""The plan: allotments, readings and what stands against a recipe, before the first step."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe as product
from recipe.config import recipe_from_plain
from recipe.errors import RecipeError
from recipe.mixing.plan import make_plan
from recipe.mixing.stream import Stream
from tests.mixing.build import make, stage, world, write

B = 10**9
TABLE = {
    "english": (3080, "61.6%", 2.0, 6_160_000_000),
    "rewrites": (600, "7.9%", 1.3167, 790_000_000),
    "chinese": (500, "14%", 2.8, 1_400_000_000),
    "code_web": (250, "5%", 2.0, 500_000_000),
    "code": (490, "9.9%", 2.0204, 990_000_000),
    "maths": (70, "1.5%", 2.1429, 150_000_000),
    "teacher": (10, "0.1%", 1.0, 10_000_000),
}
"""Stock in B, quota, mean readings, allotment of a chunk of 10B."""


def ten_trillion(**keys: Any) -> Any:
    """Facts D without data."""
    plain = {
        "seed": 1,
        "pools": {name: {"stock": f"{row[0]}B"} for name, row in TABLE.items()},
        "groups": {"code_all": ["code_web", "code", "teacher"]},
        "stages": {
            "base": {
                "tokens": "10T",
                "context": 4000,
                "batch": {"sequences": 1000},
                "chunk": "10B",
                "quotas": {name: row[1] for name, row in TABLE.items()},
            }
        },
        **keys,
    }
    return recipe_from_plain(plain, source="test")


def test_D1_a_chunk_of_ten_billion_is_allotted_exactly():
    stage_plan = make_plan(ten_trillion()).stages["base"]
    assert dict(stage_plan.chunk_allotment) == {name: row[3] for name, row in TABLE.items()}
    assert sum(stage_plan.chunk_allotment.values()) == 10 * B


def test_D_the_table_is_planned_from_stocks_alone():
    plan = make_plan(ten_trillion())
    assert plan.problems == ()
    assert {n: round(float(p.epochs), 4) for n, p in plan.pools.items()} == {
        n: r[2] for n, r in TABLE.items()
    }
    assert {n: p.tokens for n, p in plan.pools.items()} == {n: 1000 * r[3] for n, r in TABLE.items()}
    assert dict(plan.stages["base"].groups) == {"code_all": Fraction(15, 100)}
    assert sum(p.stock_tokens for p in plan.pools.values()) == 5000 * B


def test_D_readings_beyond_what_is_allowed_are_refused_and_equality_is_not():
    assert make_plan(ten_trillion(max_epochs=3)).problems == ()
    problems = make_plan(ten_trillion(max_epochs=2)).problems
    assert [p.where for p in problems] == ["pools.chinese", "pools.code", "pools.maths"]
    chinese = problems[0]
    assert "1,400,000,000,000" in str(chinese.given)
    assert "1,000,000,000,000" in chinese.expected
    assert "max_epochs=3" in chinese.fix


def test_the_json_holds_what_others_build_on():
    plain = json.loads(json.dumps(make_plan(ten_trillion()).to_plain()))
    base = plain["stages"]["base"]
    assert {"tokens", "context", "steps", "chunk", "chunk_allotment", "pools"} <= set(base)
    assert (base["tokens"], base["context"], base["steps"], base["chunk"]) == (
        10**13,
        4000,
        2_500_000,
        10 * B,
    )
    assert base["pools"]["english"]["share"] == "77/125"
    assert base["pools"]["english"] | {"tokens": 6160 * B, "epochs": 2.0} == base["pools"]["english"]
    assert (
        plain["pools"]["teacher"] | {"stock_tokens": 10 * B, "tokens": 10 * B, "epochs": 1.0}
        == (plain["pools"]["teacher"])
    )
    assert plain["problems"] == []


def test_M01_fifteen_windows_over_eight_equal_pools():
    names = [f"p{i}" for i in range(8)]
    plain = {
        "seed": 1,
        "pools": {name: {"stock": 1000} for name in names},
        "stages": {"s": stage(1, dict.fromkeys(names, 1), tokens=45, chunk=15)},
    }
    plan = make_plan(recipe_from_plain(plain, source="test"))
    assert list(plan.stages["s"].chunk_allotment.values()) == [2, 2, 2, 2, 2, 2, 2, 1]


def test_D6_target_measured_and_gap_of_a_pool_with_both(tmp_path: Path):
    write(tmp_path / "a", [10] * 7)
    pool = make_plan(make(tmp_path, {"a": {"stock": 100}}, [stage(5, {"a": 1})])).pools["a"]
    assert (pool.declared, pool.measured, pool.gap, pool.stock_tokens) == (100, 70, -30, 70)


def test_C7_both_packings_are_compared(tmp_path: Path):
    write(tmp_path / "a", [7, 3, 7, 3, 12, 2], eos=True)
    plan = make_plan(make(tmp_path, {"a": {}}, [stage(10, {"a": 1})]))
    packing = plan.stages["s0"].packing
    assert set(packing) == {"best_fit", "concat"}
    readings = plan.pools["a"].epochs
    assert packing["best_fit"].cut_documents == readings  # one document is cut: the one of 12
    assert packing["concat"].cut_documents > packing["best_fit"].cut_documents
    assert packing["best_fit"].padding == Fraction(10, 50) > packing["concat"].padding


@pytest.mark.parametrize("method", ["best_fit", "concat", "none"])
@pytest.mark.parametrize("count", ["body", "fresh", "labels", "positions"])
def test_the_planned_epoch_is_the_epoch_that_is_served(tmp_path: Path, method: str, count: str):
    """Where all blocks are planned, one reading by the plan is one reading of the run."""
    write(tmp_path / "a", [n % 11 + 1 for n in range(60)], eos=True)
    keys = {"count": count, "max_epochs": 3, "on_exhausted": "stop"}
    stages = [stage(8, {"a": 1}, steps=1000, packing=method)]
    made = world(tmp_path, {"a": {}}, stages, **keys)
    stream = made.stream()
    list(stream.batches(read_ahead=0))
    state = stream.snapshot(stream.end_step or 0).pools[0]
    assert state.cursor.epoch == 3
    plan = make_plan(make(tmp_path, {"a": {}}, [stage(8, {"a": 1}, steps=1, packing=method)], count=count))
    yielded = plan.stages["s0"].pools["a"]
    per_epoch = yielded.need / yielded.epochs
    assert abs(per_epoch - Fraction(state.spent, 3)) <= 8


def problems(tmp_path: Path, steps: int, **keys: Any) -> tuple[list[str], list[str]]:
    """Where problems are, and warnings, of reading twenty windows of four tokens for some steps."""
    plan = make_plan(make(tmp_path, {"a": {}}, [stage(4, {"a": 1}, steps=steps)], **keys))
    return [p.where for p in plan.problems], list(plan.warnings)


def test_E06_equality_is_fine_and_one_more_is_not(tmp_path: Path):
    write(tmp_path / "a", [4] * 20)
    assert problems(tmp_path, 40, max_epochs=2) == ([], [])
    assert problems(tmp_path, 41, max_epochs=2)[0] == ["pools.a"]
    assert problems(tmp_path, 41, max_epochs=3) == ([], [])


def test_a_policy_other_than_repeat_is_warned_about_only(tmp_path: Path):
    write(tmp_path / "a", [4] * 20)
    where, warnings = problems(tmp_path, 41, max_epochs=2, on_exhausted="stop")
    assert where == []
    assert "runs dry near position 160" in warnings[0]


def test_a_need_that_depends_on_padding_is_never_decided_against_the_exact_answer(tmp_path: Path):
    write(tmp_path / "a", [n % 5 + 1 for n in range(50)], eos=True)
    stages = [stage(8, {"a": 1}, steps=99)]
    made = world(tmp_path, {"a": {}}, stages, max_epochs=1, on_exhausted="stop")
    rows = len(list(made.stream().batches(read_ahead=0)))
    for steps in range(rows - 3, rows + 4):
        loaded = make(tmp_path, {"a": {}}, [stage(8, {"a": 1}, steps=steps)], max_epochs=1)
        estimated, exact = make_plan(loaded), make_plan(loaded, exact=True)
        assert [p.where for p in exact.problems] == (["pools.a"] if steps > rows else [])
        assert not estimated.problems or exact.problems
        assert not exact.problems or estimated.problems or "may run out" in estimated.warnings[0]


def test_a_need_within_the_drift_of_the_schedule_is_not_certain(tmp_path: Path):
    """21 windows at equal shares: the first pool gives 11, the second 10; both are owed 10.5."""
    for name in "ab":
        write(tmp_path / name, [4] * (11 if name == "a" else 10), first=500 if name == "a" else 900)
    loaded = make(tmp_path, {"a": {}, "b": {}}, [stage(4, {"a": 1, "b": 1}, steps=21)], max_epochs=1)
    assert make_plan(loaded, exact=True).problems == ()
    assert make_plan(loaded).problems == ()


def test_exact_needs_every_pool(tmp_path: Path):
    write(tmp_path / "a", [4] * 20)
    pools = {"a": {}, "b": {"path": None, "stock": 100}}
    with pytest.raises(RecipeError, match=r"pools\.b\.path"):
        make_plan(make(tmp_path, pools, [stage(4, {"a": 1, "b": 1})]), exact=True)


def test_D06_a_pool_that_gives_no_window_is_a_problem_with_its_name(tmp_path: Path):
    write(tmp_path / "a", [99])
    (problem,) = make_plan(
        make(tmp_path, {"a": {}}, [stage(100, {"a": 1}, slicing={"tail": "drop"})])
    ).problems
    assert problem.where == "stages.s0.weights.a"
    write(tmp_path / "b", [100])
    assert (
        make_plan(make(tmp_path, {"b": {}}, [stage(100, {"b": 1}, slicing={"tail": "drop"})])).problems == ()
    )


def test_N07_ids_above_the_vocabulary_are_told_with_their_place(tmp_path: Path):
    product.write_pool(tmp_path / "a", [np.array([1, 2, 3, 4, 5, 63_999]), [7]], vocab_size=64_000)
    product.write_pool(tmp_path / "b", [np.array([31_999])], vocab_size=32_000)
    pools: dict[str, Any] = {"a": {}, "b": {}}
    loaded = make(tmp_path, pools, [stage(4, {"a": 1, "b": 1}, steps=1)], model={"vocab_size": 32_000})
    (problem,) = make_plan(loaded).problems
    assert problem.where.startswith("pools.a")
    assert "63999 at position 5" in str(problem.given)
    assert "31999" in problem.expected


def test_a_pool_that_is_not_there_is_told_with_all_the_others(tmp_path: Path):
    with pytest.raises(RecipeError) as error:
        make_plan(make(tmp_path, {"a": {}, "b": {}}, [stage(4, {"a": 1, "b": 1})]))
    assert [p.where.split(":")[0] for p in error.value.problems] == ["pools.a", "pools.b"]


def test_the_first_exhaustion_point_is_told_in_positions_of_the_run(tmp_path: Path):
    write(tmp_path / "a", [4] * 20)
    write(tmp_path / "b", [4] * 200, first=800)
    stages = [stage(4, {"a": 1, "b": 1}, steps=20), stage(4, {"a": 1, "b": 0}, steps=30)]
    plan = make_plan(make(tmp_path, {"a": {}, "b": {}}, stages, max_epochs=1))
    assert plan.pools["a"].exhausted_at == (20 + 10) * 4
    assert plan.pools["b"].exhausted_at is None


def test_a_pool_with_one_very_long_document_is_not_taken_for_a_small_one(tmp_path: Path):
    """Only some blocks are looked at: what the others hold is known from the stock."""
    write(tmp_path / "a", [10] * 300 + [20_000])
    loaded = make(tmp_path, {"a": {"block_units": 8}}, [stage(10, {"a": 1}, steps=2000)], max_epochs=1)
    assert make_plan(loaded, exact=True).problems == ()
    assert make_plan(loaded).problems == ()
    assert abs(make_plan(loaded).pools["a"].epochs - Fraction(20_000, 23_000)) < Fraction(1, 100)


def test_a_pool_whose_few_long_documents_lie_in_blocks_nobody_looked_at_is_not_empty(tmp_path: Path):
    write(tmp_path / "a", [1] * 40 + [4])
    slicing = {"tail": "drop"}
    loaded = make(tmp_path, {"a": {"block_units": 1}}, [stage(4, {"a": 1}, steps=3, slicing=slicing)])
    assert make_plan(loaded).problems == ()
    assert make_plan(loaded).pools["a"].epochs == 3


def test_an_exact_plan_shows_what_the_run_then_spends(tmp_path: Path):
    write(tmp_path / "a", [7, 30, 3, 64, 12] * 20, eos=True)
    recipe = make(tmp_path, {"a": {}}, [stage(16, {"a": 1}, steps=20), stage(32, {"a": 1}, steps=9)])
    plan = make_plan(recipe, exact=True)
    stream = Stream(plan.recipe, plan.opened)
    end = stream.snapshot(stream.num_steps).pools[0]
    for kind in ("body", "overlap", "special", "padding", "sequences"):
        assert sum(getattr(s.pools["a"], kind) for s in plan.stages.values()) == getattr(end, kind), kind
    assert plan.end_step is None


def test_what_is_soon_walked_goes_by_sequences_units_and_blocks(tmp_path: Path):
    """Below 65,536: a row of one document is a sequence and a unit, and a block is worth 128 of them."""
    write(tmp_path / "a", [4] * 400)

    def is_walked(steps: int, **pool: Any) -> bool:
        loaded = make(tmp_path, {"a": pool}, [stage(4, {"a": 1}, steps=steps)], max_epochs=1000)
        return make_plan(loaded, exact=None, compare_packing=False).exact

    assert is_walked(30_000) and not is_walked(40_000)
    assert is_walked(500, block_units=1) and not is_walked(600, block_units=1)


def test_an_exact_plan_says_where_a_run_ends_early(tmp_path: Path):
    write(tmp_path / "a", [4, 4, 4])
    write(tmp_path / "b", [4] * 30)
    stages = [stage(4, {"a": 1, "b": 1}, steps=20), stage(4, {"a": 1, "b": 1}, steps=5)]
    plan = make_plan(
        make(tmp_path, {"a": {}, "b": {}}, stages, max_epochs=1, on_exhausted="stop"), exact=True
    )
    assert plan.end_step == 6
    assert plan.stages["s0"].pools["a"].sequences == 3
    assert plan.stages["s1"].pools["b"].sequences == 0


def test_every_pool_that_lacks_what_its_cuts_are_made_by_is_told_at_once(tmp_path: Path):
    for name in ("a", "b"):
        write(tmp_path / name, [30, 20])
    cut = stage(8, {"a": 1, "b": 1}, steps=4, slicing={"align": "section"})
    with pytest.raises(RecipeError) as caught:
        make_plan(make(tmp_path, {"a": {}, "b": {}}, [cut]))
    assert [problem.where for problem in caught.value.problems] == ["pools.a", "pools.b"]
