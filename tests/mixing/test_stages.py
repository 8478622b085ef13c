"""From one stage to the next: readings go on, quotas change, what is left of a block is cut anew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.mixing.build import World, everything, stage, windows, world, write


@pytest.fixture
def hundred(tmp_path: Path) -> Path:
    """Three pools of a hundred windows."""
    for index, name in enumerate("abc"):
        write(tmp_path / name, [4] * 100, first=500 * (index + 1))
    return tmp_path


def by_pool(made: World) -> dict[str, list[tuple[Any, ...]]]:
    served = windows(made.stream())
    return {name: [window for window in served if window[0] == name] for name in made.pools}


def test_Q01_the_second_mixture_starts_exactly_where_it_is_declared(hundred: Path):
    def switched(first: int) -> list[dict[str, Any]]:
        shares = [{"a": 1, "b": 0}, {"a": 0, "b": 1}]
        stages = [stage(4, s, batch=10, steps=n) for s, n in zip(shares, (first, 10 - first), strict=True)]
        return everything(world(hundred, {"a": {}, "b": {}}, stages).stream())

    late, early = switched(8), switched(5)
    assert [batch["pool"] for batch in late] == [[0] * 10] * 8 + [[1] * 10] * 2
    assert late[:5] == early[:5]
    assert early[5]["pool"] == [1] * 10


def test_Q02_changing_shares_loses_and_repeats_nothing_and_moves_no_cursor(hundred: Path):
    stages = [
        stage(4, {"a": 1, "b": 1, "c": 0}, steps=60),
        stage(4, {"a": 2, "b": 1, "c": 0}, steps=60),
        stage(4, {"a": 1, "b": 1, "c": 1}, steps=30),
    ]
    named: dict[str, Any] = {"a": {}, "b": {}, "c": {}}
    made = world(hundred, named, stages)
    served = windows(made.stream())[:120]
    assert [sum(w[0] == name for w in served) for name in "ab"] == [70, 50]
    assert len(set(served)) == 120
    alone = {
        name: windows(world(hundred, {name: {}}, [stage(4, {name: 1}, steps=100)]).stream()) for name in "ab"
    }
    for name, count in (("a", 80), ("b", 60), ("c", 10)):
        own = by_pool(made)[name]
        assert len(own) == count
        assert name == "c" or own == alone[name][:count]


@pytest.mark.parametrize("method", ["best_fit", "concat", "none"])
def test_Q05_a_longer_context_goes_on_at_the_token_where_it_stands(tmp_path: Path, method: str):
    write(tmp_path / "a", [100])
    stages = [stage(4, {"a": 1}, steps=10, packing=method), stage(8, {"a": 1}, steps=20, packing=method)]
    served = windows(world(tmp_path, {"a": {}}, stages).stream())
    first = {token for _, _, start, stop in served[:10] for token in range(start, stop)}
    assert len(first) == 40
    seen: list[int] = []
    for _, _, start, stop in served[10:]:
        if len(seen) == 60:
            break
        seen += range(start, stop)
    assert len(set(seen)) == 60
    assert not first & set(seen)


def test_a_cut_block_keeps_its_cuts_in_the_cursor_and_counts_no_drop_twice(tmp_path: Path):
    write(tmp_path / "a", [n % 7 + 9 for n in range(40)])
    rule = {"slicing": {"tail": "drop"}}
    stages = [stage(4, {"a": 1}, steps=5, **rule), stage(8, {"a": 1}, steps=5, **rule)]
    stream = world(tmp_path, {"a": {}}, stages).stream()
    before, after = stream.snapshot(5).pools[0], stream.snapshot(6).pools[0]
    assert [(cut.stage, cut.served) for cut in after.cursor.cuts] == [(0, 5)]
    assert before.dropped == after.dropped != {}


def test_the_same_rule_in_the_next_stage_cuts_nothing(hundred: Path):
    stages = [stage(4, {"a": 1, "b": 1}, steps=7), stage(4, {"a": 9, "b": 1}, batch=3, steps=7)]
    stream = world(hundred, {"a": {}, "b": {}}, stages).stream()
    assert all(not pool.cursor.cuts for pool in stream.snapshot(14).pools)


def test_a_pool_that_a_stage_does_not_draw_is_cut_when_it_is_drawn_again(tmp_path: Path):
    write(tmp_path / "a", [30] * 4)
    write(tmp_path / "b", [30] * 4, first=900)
    stages = [
        stage(4, {"a": 1, "b": 1}, steps=6),
        stage(6, {"a": 0, "b": 1}, steps=6),
        stage(4, {"a": 1, "b": 1}, steps=20),
    ]
    made = world(tmp_path, {"a": {}, "b": {}}, stages)
    stream = made.stream()
    cursors = [[len(p.cursor.cuts) for p in stream.snapshot(step).pools] for step in (6, 7, 14)]
    assert cursors == [[0, 0], [0, 1], [0, 2]]
    tokens = [(w[1], j) for w in by_pool(made)["a"] for j in range(w[2], w[3])]
    assert len(tokens) == len(set(tokens))


def test_F1_window_and_stride_follow_the_context_of_each_stage(tmp_path: Path):
    write(tmp_path / "a", [200] * 20)
    stages = [stage(c, {"a": 1}, steps=3, slicing={"stride": c // 2}) for c in (8, 16, 32)]
    made = world(tmp_path, {"a": {}}, stages)
    assert [made.recipe.rule(f"s{i}", "a").window for i in range(3)] == [8, 16, 32]
    assert [len(batch["input_ids"][0]) for batch in everything(made.stream())] == [8] * 3 + [16] * 3 + [
        32
    ] * 3
    assert max(stop - start for _, _, start, stop in windows(made.stream())[:3]) == 8


def test_debts_are_zero_when_a_stage_begins(tmp_path: Path):
    write(tmp_path / "a", [3, 1, 2] * 20)
    write(tmp_path / "b", [4, 2] * 20, first=700)
    shares = {"a": 1, "b": 2}
    stages = [stage(4, shares, steps=7, packing="none"), stage(4, shares, steps=7, packing="none")]
    named: dict[str, Any] = {"a": {}, "b": {}}
    second = [batch["pool"] for batch in everything(world(tmp_path, named, stages).stream())][7:]
    assert second[0] == everything(world(tmp_path, named, stages).stream())[0]["pool"]
