"""Ramps of quotas: shares that go over from one stage's to the next one's in equal steps of their own."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from recipe.mixing.plan import make_plan
from recipe.mixing.stream import Stream
from tests.mixing.build import everything, make, stage, world, write

LENGTHS = [9, 4, 13, 7, 2, 30, 11, 5, 8, 6] * 12


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two pools that are read several times."""
    write(tmp_path / "a", LENGTHS)
    write(tmp_path / "b", LENGTHS, first=5000)
    return tmp_path


def ramped(root: Path, over: int = 480, steps: int = 4, **more: object) -> Stream:
    """100:0 in the first stage, 20:80 in the second, in steps between."""
    first = stage(16, {"a": 1, "b": 0}, batch=3, steps=5)
    second = stage(16, {"a": 1, "b": 4}, batch=3, tokens=960, chunk=96)
    second["quota_ramp"] = {"over": over, "steps": steps}
    return world(root, {"a": {"max_epochs": 9}, "b": {"max_epochs": 9}}, [first, second], **more).stream()


def test_step_j_of_n_has_the_shares_of_its_middle(root: Path):
    legs = ramped(root).curriculum.stages[1].legs
    shares = [Fraction(leg.race.parts[0], leg.race.denominator) for leg in legs]
    assert shares == [1 - Fraction(4, 5) * Fraction(2 * j + 1, 8) for j in range(4)] + [Fraction(1, 5)]
    assert [leg.planned_from for leg in legs] == [0, 120, 240, 360, 480]
    assert [leg.first_step for leg in legs] == [5, 8, 10, 13, 15], "the first batch end at or after it"


def test_what_is_planned_adds_up_over_all_legs(root: Path):
    layout = ramped(root).curriculum.stages[1]
    whole = layout.planned(0, 960)
    assert sum(whole) == 960
    ramp = sum(120 * (1 - Fraction(4, 5) * Fraction(2 * j + 1, 8)) for j in range(4))
    assert abs(whole[0] - (ramp + 480 * Fraction(1, 5))) < 5, "each leg rounds its own"
    for cut in range(0, 961, 37):
        halves = zip(layout.planned(0, cut), layout.planned(cut, 960), strict=True)
        assert [a + b for a, b in halves] == whole
    assert sum(layout.mean_shares) == 1
    assert abs(layout.mean_shares[0] * 960 - whole[0]) < 5


def test_shares_follow_the_ramp_and_nothing_bursts(root: Path):
    """What a pool was served never leaves the sum of what its legs owed it by two contexts."""
    stream = ramped(root)
    layout = stream.curriculum.stages[1]
    owed, before = [Fraction(0)] * 2, stream.snapshot(5)
    for step in range(5, 25):
        after = stream.snapshot(step + 1)
        race = layout.legs[layout.leg(step)].race
        served = sum(pool.spent for pool in after.pools)
        served -= sum(pool.spent for pool in stream.snapshot(step).pools)
        now = [Fraction(part, race.denominator) for part in race.parts]
        owed = [due + share * served for due, share in zip(owed, now, strict=True)]
        for pool, start, due in zip(after.pools, before.pools, owed, strict=True):
            assert abs(pool.spent - start.spent - due) < 32
    total = sum(pool.spent - start.spent for pool, start in zip(after.pools, before.pools, strict=True))
    assert sum(owed) == total


def test_a_ramp_is_resumed_at_every_step(root: Path):
    stream = ramped(root)
    whole = everything(stream)
    for step in range(stream.num_steps + 1):
        snapshot = stream.snapshot(step)
        again = Stream(stream.recipe, dict(zip(stream.pools, stream.ground.pools, strict=True)), [snapshot])
        assert everything(again, step) == whole[step:], step
        assert again.snapshot(stream.num_steps) == stream.snapshot(stream.num_steps)


def test_the_chunk_changes_no_batch_of_a_ramp(root: Path):
    stages = [
        stage(16, {"a": 1, "b": 0}, batch=3, steps=5),
        stage(16, {"a": 1, "b": 4}, batch=3, tokens=960, quota_ramp={"over": 480, "steps": 4}),
    ]
    pools = {"a": {"max_epochs": 9}, "b": {"max_epochs": 9}}
    one, *others = (
        everything(world(root, pools, [stages[0], {**stages[1], "chunk": chunk}]).stream())
        for chunk in (48, 100, 960)
    )
    assert all(other == one for other in others)


def test_more_steps_than_batches_are_as_many_legs_as_batches(root: Path):
    """Legs that no batch lies in are passed over, straight to the one that holds."""
    stream = ramped(root, over=96, steps=50)
    assert len(everything(stream)) == 25
    legs = stream.curriculum.stages[1].legs
    assert [stream.curriculum.stages[1].leg(step) for step in (5, 6, 7)] == [0, 25, 50]
    assert len(legs) == 51


def test_a_plan_asks_for_what_the_ramp_comes_to(root: Path):
    """With no padding at all the need is the mean share of the length."""
    first = stage(16, {"a": 1, "b": 0}, batch=3, steps=5)
    second = stage(16, {"a": 1, "b": 4}, batch=3, tokens=960, quota_ramp={"over": 960, "steps": 8})
    recipe = make(root, {"a": {"max_epochs": 9}, "b": {"max_epochs": 9}}, [first, second], count="positions")
    estimated, exact = make_plan(recipe), make_plan(recipe, exact=True)
    for name in ("a", "b"):
        planned = estimated.stages["s1"].pools[name]
        assert planned.share == estimated.stages["s1"].layout.mean_shares["ab".index(name)]
        assert abs(planned.need - exact.stages["s1"].pools[name].need) <= 32
