"""Weights of the loss: by exact counts, labels of every pool come to its share of the objective."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.maths.deadlines import Race, choose, serve
from recipe.maths.shares import from_weights, loss_weights
from recipe.mixing.plan import make_plan
from recipe.mixing.weighing import weights_between
from tests.mixing.build import World, everything, make, stage, world, write

LENGTHS = [9, 4, 13, 7, 2, 30, 11, 5, 8, 6] * 12


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weighing")
    for number, name in enumerate("abc"):
        write(folder / name, LENGTHS, first=10 + 5000 * number)
    return folder


def streamed(root: Path, *stages: Any, **keys: Any) -> World:
    return world(root, {name: {"max_epochs": 99} for name in "abc"}, stages, **keys)


def percents(parts: list[int]) -> dict[str, str]:
    return {name: f"{part}%" for name, part in zip("abc", parts, strict=True)}


hundred = st.tuples(st.integers(0, 100), st.integers(0, 100)).map(
    lambda cuts: [min(cuts), max(cuts) - min(cuts), 100 - max(cuts)]
)


def sampled_too(sampled: list[int], counted: list[int]) -> list[Fraction]:
    """Shares that sample what is counted."""
    parts = [part or int(want > 0) for part, want in zip(sampled, counted, strict=True)]
    return list(from_weights(dict(zip("abc", parts, strict=True))).values())


@settings(max_examples=80)
@given(hundred, hundred, st.integers(1, 64), st.lists(st.integers(0, 64), min_size=1, max_size=120))
def test_weighted_labels_of_a_pool_are_its_share_of_the_objective_at_every_prefix(
    sampled: list[int], counted: list[int], context: int, sizes: list[int]
):
    """Within a context of its weight, whatever the rows hold: the schedule's bound, times the weight."""
    shares = sampled_too(sampled, counted)
    wanted = [Fraction(part, 100) for part in counted]
    weights = list(
        loss_weights(dict(zip("abc", wanted, strict=True)), dict(zip("abc", shares, strict=True))).values()
    )
    race, debts, labels = Race.from_shares(shares, context), [0] * 3, [0] * 3
    for size in sizes:
        pool = choose(race, debts)
        debts = serve(race, debts, pool, min(size, context))
        labels[pool] += min(size, context)
        for p in range(3):
            assert abs(weights[p] * labels[p] - wanted[p] * sum(labels)) <= weights[p] * context
        whole = sum(weight * count for weight, count in zip(weights, labels, strict=True))
        assert abs(whole - sum(labels)) <= sum(weights) * context, "num_labels is the sum of the weights"


@settings(max_examples=12)
@given(sampled=hundred, counted=hundred, losses=st.lists(st.integers(1, 9), min_size=3, max_size=3))
def test_the_loss_of_a_stream_is_that_of_the_objectives_mixture(root, sampled, counted, losses):
    """Every label of a pool has the pool's own loss: sum(w * loss) / num_labels is sum(objective * loss) but
    for what the schedule is off, a context a pool at most."""
    sampled = [part or int(want > 0) for part, want in zip(sampled, counted, strict=True)]
    told = stage(16, dict(zip("abc", sampled, strict=True)), batch=3, steps=20, objective=percents(counted))
    stream = streamed(root, told, count="labels").stream()
    summed, whole, num_labels = 0.0, 0.0, 0
    for step, batch in stream.batches(read_ahead=0):
        labels = (batch["labels"] != -100).sum(axis=1)
        each = np.array(losses)[batch["pool"]]
        summed += float((batch["loss_weight"].astype(float) * each * labels).sum())
        whole += float((batch["loss_weight"].astype(float) * labels).sum())
        num_labels += stream.num_labels(step)
    weights = [float(weight) for weight in stream.loss_weights(0).values()]
    off = 16 * sum(weight * loss for weight, loss in zip(weights, losses, strict=True))
    target = sum(part / 100 * loss for part, loss in zip(counted, losses, strict=True))
    assert abs(summed - target * num_labels) <= off + 1e-3 * num_labels
    assert abs(whole - num_labels) <= 16 * sum(weights) + 1e-3 * num_labels


def test_rows_carry_the_weight_of_their_pool(root: Path):
    """15 % sampled and 10 % counted: two thirds, as the nearest number of 32 bits."""
    told = stage(16, {"a": 85, "b": 15, "c": 0}, batch=4, objective=percents([90, 10, 0]))
    stream = streamed(root, told).stream()
    assert stream.loss_weights(0) == {"a": Fraction(18, 17), "b": Fraction(2, 3), "c": 0}
    for step, batch in stream.batches(read_ahead=0):
        expected = np.array([18 / 17, 2 / 3], np.float32)[batch["pool"]]
        assert batch["loss_weight"].dtype == np.float32
        assert np.array_equal(batch["loss_weight"], expected)
        parts = [stream.batch(step, rank, 2, 1) for rank in (0, 1)]
        assert np.array_equal(np.stack([part["loss_weight"] for part in parts], 1).ravel(), expected)
        assert np.array_equal(stream.rows(step, [3, 0])["loss_weight"], expected[[3, 0]])


def test_an_objective_changes_no_token_and_none_adds_no_key(root: Path):
    first, second = (stage(16, {"a": 3, "b": 2, "c": 0}, batch=3, steps=9) for _ in range(2))
    bare = everything(streamed(root, first, second).stream())
    both = everything(streamed(root, first, second | {"objective": percents([90, 10, 0])}).stream())
    assert "loss_weight" not in bare[0]
    assert [batch.pop("loss_weight") for batch in both][:9] == [[1.0] * 3] * 9, "a stage that has none"
    assert both == bare


def test_every_leg_of_a_ramp_weighs_by_its_own_shares(root: Path):
    """b goes from 0 to 80 % in four steps and always counts as 30 % of the loss."""
    first = stage(16, {"a": 1, "b": 0, "c": 0}, batch=3, steps=5)
    second = stage(
        16, {"a": 1, "b": 4, "c": 0}, batch=3, tokens=960, chunk=96, objective=percents([70, 30, 0])
    )
    second["quota_ramp"] = {"over": 480, "steps": 4}
    told = streamed(root, first, second)
    stream, layout = told.stream(), told.stream().curriculum.stages[1]
    for step in range(5, 25):
        race = layout.legs[layout.leg(step)].race
        share = Fraction(race.parts[1], race.denominator)
        assert stream.loss_weights(step)["b"] == Fraction(3, 10) / share
    steps = [step for step, _ in weights_between(told.recipe, layout, 5, 25)]
    assert steps == [5, 8, 10, 13, 15] == [leg.first_step for leg in layout.legs]
    assert [step for step, _ in weights_between(told.recipe, layout, 9, 14)] == [9, 10, 13]
    assert weights_between(told.recipe, stream.curriculum.stages[0], 0, 5) == []
    assert stream.loss_weights(4) is None
    with pytest.raises(ValueError, match="outside"):
        stream.loss_weights(25)


def test_a_plan_shows_the_weights_and_says_what_is_bought_for_nothing(root: Path):
    told = stage(16, {"a": 80, "b": 15, "c": 5}, objective=percents([90, 10, 0]))
    found = make_plan(make(root, {"a": {}, "b": {}, "c": {}}, [told], on_exhausted="redistribute"))
    rows = found.to_plain()["stages"]["s0"]["pools"]
    assert {name: (row["objective"], row["loss_weight"]) for name, row in rows.items()} == {
        "a": ("9/10", "9/8"),
        "b": ("1/10", "2/3"),
        "c": ("0", "0"),
    }
    worth = 1 / (Fraction(81, 80) + Fraction(1, 15))
    assert found.to_plain()["stages"]["s0"]["effective_share"] == float(worth)
    assert [warning for warning in found.warnings if "objective" in warning] == [
        "stage s0: c: 5.000% of the tokens and nothing of the loss (objective 0%): they are bought without "
        "being learnt from",
        "stage s0: a pool that leaves (on_exhausted: redistribute) takes its part of the objective with it; "
        "the weights of the others stay, and so do the proportions between them",
    ]
    bare = str(make_plan(make(root, {"a": {}}, [stage(16, {"a": 1})])).to_plain())
    assert not any(word in bare for word in ("objective", "loss_weight", "effective"))
