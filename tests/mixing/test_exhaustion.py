"""Pools that run dry: what each policy does, in the stream and in its account."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recipe.errors import RecipeError
from recipe.mixing.plan import make_plan
from tests.mixing.build import World, everything, make, stage, windows, world, write

LEAVE: dict[str, Any] = {"max_epochs": 1, "on_exhausted": "redistribute"}


def pools(root: Path, sizes: dict[str, int]) -> None:
    """Pools of so many windows of four tokens."""
    for index, (name, size) in enumerate(sizes.items()):
        write(root / name, [4] * size, first=1000 * (index + 1))


def drawn(made: World) -> list[str]:
    return [window[0] for window in windows(made.stream())]


def test_E01_use_everything_once_serves_every_window_of_every_pool(tmp_path: Path):
    pools(tmp_path, {"a": 3, "b": 4, "c": 3})
    stages = [stage(4, {"a": 1, "b": 1, "c": 1}, steps=20)]
    made = world(tmp_path, {"a": {}, "b": {}, "c": {}}, stages, **LEAVE)
    served = windows(made.stream())
    assert [window[0] for window in served] == ["a", "b", "c"] * 3 + ["b"]
    assert len(set(served)) == 10


@pytest.mark.parametrize("order", [("empty", "a", "b"), ("a", "empty", "b"), ("a", "b", "empty")])
def test_E02_an_empty_pool_is_never_drawn_wherever_it_stands(tmp_path: Path, order: tuple[str, ...]):
    pools(tmp_path, {"empty": 0, "a": 2, "b": 1})
    named: dict[str, Any] = {name: {} for name in order}
    stages = [stage(4, dict.fromkeys(order, 1), steps=9)]
    served = windows(world(tmp_path, named, stages, **LEAVE).stream())
    assert sorted(served) == [("a", 0, 0, 4), ("a", 1, 0, 4), ("b", 0, 0, 4)]
    plan = make_plan(make(tmp_path, named, stages, max_epochs=9))
    (problem,) = [p for p in plan.problems if "empty" in p.where]
    assert "0 sequences" in str(problem.given)


def test_E05_redistribute_splits_what_is_left_by_the_other_shares(tmp_path: Path):
    pools(tmp_path, {"a": 20, "b": 200, "c": 200})
    named: dict[str, Any] = {"a": {}, "b": {}, "c": {}}
    stages = [stage(4, {"a": 5, "b": 3, "c": 2}, batch=10, steps=10, chunk=40)]
    made = world(tmp_path, named, stages, **LEAVE)
    served = drawn(made)
    assert [served.count(name) for name in "abc"] == [20, 48, 32]
    end = made.stream().snapshot(10)
    assert end.left == (0,)
    assert [pool.spent for pool in end.pools] == [80, 192, 128]


def test_E05_without_redistribution_the_plan_says_what_is_needed_and_there(tmp_path: Path):
    pools(tmp_path, {"a": 20, "b": 200, "c": 200})
    stages = [stage(4, {"a": 5, "b": 3, "c": 2}, batch=10, steps=10)]
    plan = make_plan(make(tmp_path, {"a": {}, "b": {}, "c": {}}, stages, max_epochs=1))
    (problem,) = plan.problems
    assert problem.where == "pools.a"
    assert "200" in str(problem.given)
    assert "80" in problem.expected
    with pytest.raises(RecipeError, match="needs 200 tokens"):
        plan.check()


def one_pool(root: Path, method: str, **keys: Any) -> tuple[Any, ...]:
    write(root / "a", [1001])
    slicing = {"tail": "drop"}
    stages = [stage(100, {"a": 1}, tokens=1500, slicing=slicing, packing=method)]
    return root, {"a": {}}, stages, keys


@pytest.mark.parametrize("method", ["best_fit", "concat"])
def test_E06_a_run_longer_than_its_pool_reads_it_again_in_another_order(tmp_path: Path, method: str):
    root, named, stages, _ = one_pool(tmp_path, method)
    starts = [window[2] for window in windows(world(root, named, stages).stream())]
    assert sorted(starts[:10]) == list(range(0, 1000, 100))
    assert len(starts) == 15
    assert len(set(starts[10:])) == 5
    assert starts[10:] != starts[:5]


@pytest.mark.parametrize("method", ["best_fit", "concat"])
def test_E06_where_one_reading_is_allowed_the_plan_refuses(tmp_path: Path, method: str):
    root, named, stages, _ = one_pool(tmp_path, method)
    (problem,) = make_plan(make(root, named, stages, max_epochs=1)).problems
    assert "1,500" in str(problem.given)
    assert "1,000" in problem.expected


def test_M03_a_pool_that_is_just_enough_is_enough_and_no_window_too_many_is_served(tmp_path: Path):
    pools(tmp_path, {"tiny": 10, "big": 10})
    named: dict[str, Any] = {"tiny": {}, "big": {}}
    shares = {"tiny": 1, "big": 999}
    ten = [stage(4, shares, steps=10)]
    assert make_plan(make(tmp_path, named, ten, max_epochs=1)).problems == ()
    assert drawn(world(tmp_path, named, ten, max_epochs=1)) == ["big"] * 10
    (problem,) = make_plan(make(tmp_path, named, [stage(4, shares, steps=12)], max_epochs=1)).problems
    assert problem.where == "pools.big"
    over = windows(world(tmp_path, named, [stage(4, shares, steps=12)], **LEAVE).stream())
    assert len(over) == len(set(over)) == 12


def test_A01_a_budget_is_filled_to_the_token_before_anything_is_read_twice(tmp_path: Path):
    write(tmp_path / "a", [1000] * 50, part_tokens=5000)
    made = world(tmp_path, {"a": {}}, [stage(1000, {"a": 1}, tokens=19_000)], max_epochs=1)
    served = windows(made.stream())
    assert len(set(served)) == len(served) == 19
    assert made.stream().snapshot(19).pools[0].spent == 19_000


def test_A05_padding_is_not_spent(tmp_path: Path):
    write(tmp_path / "a", [3, 5])
    made = world(tmp_path, {"a": {}}, [stage(8, {"a": 1}, batch=2, steps=1, packing="none")])
    end = made.stream().snapshot(1)
    assert (end.pools[0].spent, end.pools[0].padding, end.positions) == (8, 8, 16)


def test_stop_ends_at_the_last_whole_batch_before_the_empty_choice(tmp_path: Path):
    pools(tmp_path, {"a": 7, "b": 50})
    stages = [stage(4, {"a": 1, "b": 1}, batch=4, steps=20)]
    stream = world(tmp_path, {"a": {}, "b": {}}, stages, max_epochs=1, on_exhausted="stop").stream()
    assert len(everything(stream)) == stream.end_step == 3
    end = stream.snapshot(3)
    assert (end.ended, end.step, [pool.sequences for pool in end.pools]) == (True, 3, [6, 6])


def test_the_end_is_told_without_reading_up_to_it(tmp_path: Path):
    pools(tmp_path, {"a": 7})
    stages = [stage(4, {"a": 1}, batch=3, steps=20)]
    keys = {"max_epochs": 1, "on_exhausted": "stop"}
    fresh, read = (world(tmp_path, {"a": {}}, stages, **keys).stream() for _ in range(2))
    assert len(everything(read)) == 2
    assert fresh.snapshot(2) == read.snapshot(2)
    assert fresh.snapshot(2).ended


def test_a_pool_that_left_a_stage_leaves_the_next_one_too_and_is_read_no_further(tmp_path: Path):
    pools(tmp_path, {"a": 3, "b": 50})
    stages = [stage(4, {"a": 1, "b": 1}, steps=8), stage(4, {"a": 3, "b": 1}, steps=8)]
    made = world(tmp_path, {"a": {}, "b": {}}, stages, **LEAVE)
    served = drawn(made)
    assert served.count("a") == 3
    assert made.stream().snapshot(16).pools[0].cursor.epoch == 1
    assert made.stream().snapshot(16).left == (0,)


def test_a_pool_that_leaves_clears_all_debts(tmp_path: Path):
    pools(tmp_path, {"a": 1, "b": 50, "c": 50})
    made = world(
        tmp_path, {"a": {}, "b": {}, "c": {}}, [stage(4, {"a": 2, "b": 1, "c": 1}, steps=40)], **LEAVE
    )
    served = drawn(made)
    after = served[served.index("a") + 1 :]
    assert abs(after.count("b") - after.count("c")) <= 1


def test_one_pool_may_stop_the_run_while_others_repeat(tmp_path: Path):
    pools(tmp_path, {"a": 2, "b": 6})
    named = {"a": {}, "b": {"on_exhausted": "stop", "max_epochs": 1}}
    stream = world(tmp_path, named, [stage(4, {"a": 1, "b": 1}, steps=40)]).stream()
    assert len(everything(stream)) == stream.end_step == 13
    assert stream.snapshot(13).pools[0].cursor.epoch == 3


def test_a_pool_that_gives_no_sequence_under_a_rule_is_told_with_its_repair(tmp_path: Path):
    write(tmp_path / "a", [3, 2, 1])
    made = world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, slicing={"tail": "drop"})])
    with pytest.raises(RecipeError, match="0 sequences") as error:
        made.stream().batch(0)
    assert error.value.problems[0].where == "stages.s0.weights.a"


def test_a_sequence_in_the_last_block_of_an_epoch_is_found_from_anywhere(tmp_path: Path):
    """Most blocks give nothing under drop: the one document that is long enough is found every epoch."""
    write(tmp_path / "a", [1] * 40 + [4])
    stages = [stage(4, {"a": 1}, steps=6, slicing={"tail": "drop"})]
    made = world(tmp_path, {"a": {"block_units": 1}}, stages, max_epochs=9)
    assert windows(made.stream()) == [("a", 40, 0, 4)] * 6


def test_what_was_served_can_be_saved_where_the_next_stage_has_nothing_to_serve(tmp_path: Path):
    write(tmp_path / "a", [4] * 9)
    stages = [stage(4, {"a": 1}, steps=9), stage(8, {"a": 1}, slicing={"tail": "drop"})]
    stream = world(tmp_path, {"a": {}}, stages, on_exhausted="stop", max_epochs=9).stream()
    assert stream.snapshot(9).step == 9
    with pytest.raises(RecipeError, match="0 sequences"):
        stream.batch(9)


@pytest.mark.parametrize(("policy", "shares"), [("stop", {"a": 1, "b": 1}), ("redistribute", {"a": 1})])
def test_a_plan_that_ends_early_names_the_pool_and_the_policy_in_force(
    tmp_path: Path, policy: str, shares: dict[str, int]
):
    pools(tmp_path, {"a": 6, "b": 200})
    named: dict[str, Any] = {name: {} for name in shares}
    made = make(tmp_path, named, [stage(4, shares, steps=40)], max_epochs=1, on_exhausted=policy)
    (said,) = [line for line in make_plan(made, exact=True).warnings if "the run ends" in line]
    assert said.endswith(f": pool a (on_exhausted: {policy}) has nothing left")
