"""Steps and positions of a run, from the recipe alone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.config import recipe_from_plain
from recipe.config.recipe import Recipe
from recipe.errors import RecipeError
from recipe.mixing.curriculum import Curriculum
from recipe.mixing.opening import settle_with
from tests.mixing.reference import steps_of


def planned(stages: list[dict[str, Any]], **keys: Any) -> Recipe:
    """A settled recipe over a pool that is only a number."""
    named = {f"s{i}": {"weights": {"a": 1}} | stage for i, stage in enumerate(stages)}
    plain = {"seed": 1, "pools": {"a": {"stock": "1B"}}, "stages": named, **keys}
    return settle_with(recipe_from_plain(plain, source="test"), {})


@st.composite
def stages(draw: st.DrawFn) -> list[dict[str, Any]]:
    plain, least = [], 0
    for _ in range(draw(st.integers(1, 4))):
        context = draw(st.integers(1, 9))
        keys = sorted(draw(st.sets(st.integers(1, 400), max_size=3)))
        ramp = {0: draw(st.integers(1, 5))} | {key: draw(st.integers(1, 9)) for key in keys}
        length = draw(st.sampled_from(["steps", "tokens", "until"]))
        amount = draw(st.integers(1, 60))
        least += 60 * 9 * 9 + amount
        plain.append(
            {"context": context, "batch": {"ramp": ramp}, length: least if length == "until" else amount}
        )
    return plain


@settings(max_examples=100)
@given(stages(), st.integers(1, 4))
def test_invariant_2_steps_ramps_and_chunks_are_those_of_the_rules(plain: list[dict[str, Any]], factor: int):
    recipe = planned(plain)
    recipe = planned(
        [{**s, "chunk": st_.chunk * factor} for s, st_ in zip(plain, recipe.stages.values(), strict=True)]
    )
    curriculum = Curriculum.from_recipe(recipe)
    steps = steps_of(recipe)
    assert curriculum.num_steps == len(steps)
    position, done, closed = 0, 0, 0
    for step, (index, batch) in enumerate(steps):
        layout, stretch = curriculum.stages[index], curriculum.stretch(step)
        if step == layout.first_step:
            done, closed = 0, 0
        assert (stretch.stage, stretch.batch) == (index, batch)
        assert curriculum.positions_at(step) == position == layout.first_position + done
        position, done = position + batch * layout.context, done + batch * layout.context
        if done >= (closed + 1) * layout.chunk or step + 1 == layout.stop_step:
            closed += 1
            assert curriculum.chunk_close(step) == step + 1
        else:
            assert curriculum.chunk_close(step) == curriculum.chunk_close(step + 1)
    assert curriculum.positions_at(len(steps)) == position == curriculum.positions


@settings(max_examples=60)
@given(stages())
def test_a_stage_overshoots_by_less_than_a_batch_and_the_next_begins_where_it_stopped(
    plain: list[dict[str, Any]],
):
    curriculum = Curriculum.from_recipe(planned(plain))
    for layout in curriculum.stages:
        last = curriculum.stretch(layout.stop_step - 1)
        assert 0 <= layout.overshoot < last.step_positions
    for one, following in pairwise(curriculum.stages):
        assert following.first_position == one.first_position + one.positions
        assert following.first_step == one.stop_step


def test_a_ramps_size_changes_at_the_first_batch_end_at_or_after_its_key():
    ramp = {"batch": {"ramp": {0: 1, 10: 2, 24: 3}}, "context": 4, "steps": 6}
    curriculum = Curriculum.from_recipe(planned([ramp]))
    assert [curriculum.stretch(step).batch for step in range(6)] == [1, 1, 1, 2, 2, 3]


def test_a_ramps_keys_are_positions_of_the_run_not_of_the_stage():
    ramp = {"batch": {"ramp": {0: 1, 20: 2}}, "context": 4, "steps": 3}
    curriculum = Curriculum.from_recipe(planned([ramp, ramp]))
    assert [curriculum.stretch(step).batch for step in range(6)] == [1, 1, 1, 1, 1, 2]


def test_until_ends_at_the_first_batch_end_at_or_after_a_position_of_the_run():
    two = [
        {"context": 8, "batch": {"sequences": 3}, "steps": 2},
        {"context": 8, "batch": {"sequences": 2}, "until": 100},
    ]
    second = Curriculum.from_recipe(planned(two)).stages[1]
    assert (second.first_position, second.num_steps, second.positions, second.overshoot) == (48, 4, 64, 12)


def test_a_batch_in_tokens_is_a_whole_number_of_sequences():
    curriculum = Curriculum.from_recipe(planned([{"context": 8, "batch": {"tokens": 64}, "steps": 1}]))
    assert curriculum.stretch(0).batch == 8
    with pytest.raises(RecipeError, match=r"64 \(8 sequences\) or 72"):
        planned([{"context": 8, "batch": {"tokens": 70}, "steps": 1}])


def test_a_chunk_below_the_largest_batch_is_refused():
    with pytest.raises(RecipeError, match="largest batch"):
        planned([{"context": 8, "batch": {"ramp": {0: 1, 64: 4}}, "steps": 20, "chunk": 31}])


def test_F1_a_context_above_the_position_table_is_refused():
    with pytest.raises(RecipeError, match=r"1\.\.4096"):
        planned([{"context": 8192, "batch": {"sequences": 1}, "steps": 1}], model={"max_positions": 4096})


def test_steps_outside_the_run_are_refused():
    curriculum = Curriculum.from_recipe(planned([{"context": 8, "batch": {"sequences": 1}, "steps": 2}]))
    for step in (-1, 2):
        with pytest.raises(ValueError, match=r"outside 0\.\.1"):
            curriculum.stretch(step)
