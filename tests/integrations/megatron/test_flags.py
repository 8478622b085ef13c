"""The flags, under Megatron's own arithmetic."""

from __future__ import annotations

import warnings
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import recipe
from recipe.config import recipe_from_plain
from recipe.integrations.megatron import megatron_flags
from recipe.mixing.curriculum import Curriculum, Stretch
from recipe.run.handover.megatron import _rampup, megatron_launches

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from megatron.core.num_microbatches_calculator import RampupBatchsizeNumMicroBatchesCalculator


def laid_out(sizes: list[int], steps: list[int]) -> list[Stretch]:
    """A stage whose batch has these sizes for so many steps each."""
    stretches, step, sequence = [], 0, 0
    for size, num in zip(sizes, steps, strict=True):
        stretches.append(Stretch(0, step, num, sequence * 16, sequence, size, 16))
        step, sequence = step + num, sequence + size * num
    return stretches


def megatrons(said: str, last: int, num_steps: int) -> list[int]:
    """The batch of every step, as Megatron takes it from its consumed samples."""
    start, increment, samples = map(int, said.split())
    calculator = RampupBatchsizeNumMicroBatchesCalculator(last, 1, 1, False, 1, start, increment, samples)
    consumed, batches = 0, []
    for _ in range(num_steps):
        calculator.update(consumed, True)
        batches.append(calculator.get_current_global_batch_size())
        consumed += batches[-1]
    return batches


@given(st.integers(1, 9), st.integers(1, 5), st.lists(st.integers(1, 12), min_size=2, max_size=6))
def test_a_ramp_that_is_said_gives_every_step_the_batch_of_the_recipe(start, increment, steps):
    sizes = [start + increment * k for k in range(len(steps))]
    said = _rampup(laid_out(sizes, steps))
    assume(said is not None)
    expected = [size for size, num in zip(sizes, steps, strict=True) for _ in range(num)]
    assert megatrons(said, sizes[-1], sum(steps)) == expected


@given(st.integers(1, 9), st.integers(1, 5), st.integers(1, 200), st.integers(1, 5))
def test_every_ramp_of_megatron_that_shows_each_of_its_sizes_is_found_again(start, increment, each, num):
    """What it does at some samples for an increment, the recipe can say, and says in its words."""
    last = start + increment * num
    batches = megatrons(f"{start} {increment} {each * num}", last, each * num + 9)
    sizes = sorted(set(batches))
    assume(len(sizes) == num + 1)
    said = _rampup(laid_out(sizes, [batches.count(size) for size in sizes]))
    assert said is not None and megatrons(said, last, len(batches)) == batches


@pytest.mark.parametrize("sizes", [[4, 2], [2, 3, 5]], ids=["a batch that shrinks", "increments that differ"])
def test_what_is_no_ramp_to_megatron_is_not_said(sizes):
    assert _rampup(laid_out(sizes, [4] * len(sizes))) is None


def settled(root, **changes):
    recipe.write_pool(root / "a", [range(1, 30)] * 40, vocab_size=50, eos=0)
    stage = {"weights": {"a": 1}, "steps": 6}
    plain = {
        "seed": 1,
        "pools": {"a": {"path": str(root / "a")}},
        "stages": {
            "short": stage | {"context": 16, "batch": {"sequences": 4}},
            "long": stage | {"context": 32, "batch": {"sequences": 2}},
        },
        "max_epochs": 99,
    }
    return recipe.make_plan(recipe_from_plain(plain | changes, source="test")).recipe


def test_every_stage_is_a_launch_that_ends_at_its_last_step(tmp_path):
    """Samples where Megatron's division by the batch gives the step, else iterations."""
    made = settled(tmp_path)
    short, long = megatron_flags(made, "short"), megatron_flags(made, "long")
    assert short[:6] == ["--seq-length", "16", "--global-batch-size", "4", "--train-samples", "24"]
    assert long[:6] == ["--seq-length", "32", "--global-batch-size", "2", "--train-iters", "12"]
    with pytest.raises(ValueError, match="none of short, long"):
        megatron_flags(made)


def test_a_model_that_is_split_and_a_micro_batch_are_said(tmp_path):
    made = settled(tmp_path, trainer={"micro_batch_size": 2}, parallel={"tp": 2, "sequence_parallel": True})
    text = " ".join(megatron_flags(made, "short"))
    assert "--micro-batch-size 2 --tensor-model-parallel-size 2 --sequence-parallel" in text


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4, unique=True))
def test_launches_follow_each_other_without_a_gap(sizes):
    """Steps of all launches are the steps of the run, whatever ramp."""
    keys = {16 * 12 * k: size for k, size in enumerate(sizes)}
    stage = {
        "context": 16,
        "tokens": 16 * 12 * 5,
        "chunk": 16 * 12,
        "weights": {"a": 1},
        "batch": {"ramp": keys},
    }
    plain = {"seed": 1, "pools": {"a": {"path": "a"}}, "stages": {"one": stage, "two": stage}}
    made = recipe_from_plain(plain, source="test")
    curriculum = Curriculum.from_recipe(made)
    launches = megatron_launches(made)
    ends = []
    for settings in launches.values():
        found = {setting.option: setting.value for setting in settings}
        samples = found.get("--train-samples")
        ends.append(found.get("--train-iters") or curriculum.step_of_sequence(samples - 1) + 1)
    assert ends[-1] == curriculum.num_steps and all(a < b for a, b in pairwise(ends))
    assert set(ends) <= {stretch.stop_step for stretch in curriculum.stretches}
