"""Steps, positions and chunks, laid out a second time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.audit.layout import lay_out, stage_at
from recipe.config import recipe_from_plain
from recipe.errors import RecipeError
from recipe.mixing.curriculum import Curriculum


def of(stages):
    return recipe_from_plain({"seed": 1, "pools": {"a": {"stock": 10**9}}, "stages": stages}, source="test")


def stage(**more):
    return {"context": 8, "weights": {"a": 1}, "batch": {"sequences": 2}, "chunk": 40, **more}


def test_a_stage_ends_at_the_first_batch_end_at_or_after_its_length():
    first, second = lay_out(of({"x": stage(tokens=50), "y": stage(until=100)}))
    assert (first.first_step, first.stop_step, first.stop_position) == (0, 4, 64)
    assert (second.first_step, second.stop_step, second.stop_position) == (4, 7, 112)


def test_a_ramp_changes_at_the_first_batch_end_at_or_after_its_key():
    (layout,) = lay_out(of({"x": stage(steps=6, batch={"ramp": {0: 1, 20: 3}})}))
    assert [layout.positions_at(step) for step in range(7)] == [0, 8, 16, 24, 48, 72, 96]


def test_chunks_close_at_the_first_batch_end_that_fills_them():
    (layout,) = lay_out(of({"x": stage(tokens=100, chunk=40)}))
    assert [layout.close_of(chunk) for chunk in range(3)] == [3, 5, 7]
    assert layout.whole_steps(1, 5) == 3


stages = st.dictionaries(
    st.sampled_from("xyz"),
    st.builds(
        lambda context, length, batch, chunk: {
            "context": context,
            "weights": {"a": 1},
            "batch": batch,
            **length,
            "chunk": chunk,
        },
        st.integers(1, 9),
        st.one_of(
            st.builds(lambda n: {"tokens": n}, st.integers(1, 900)),
            st.builds(lambda n: {"steps": n}, st.integers(1, 40)),
            st.builds(lambda n: {"until": n}, st.integers(1, 2000)),
        ),
        st.one_of(
            st.builds(lambda n: {"sequences": n}, st.integers(1, 9)),
            st.builds(
                lambda sizes, key: {"ramp": {0: sizes[0], key: sizes[1], key + 300: sizes[2]}},
                st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9)),
                st.integers(1, 900),
            ),
        ),
        st.integers(1, 400),
    ),
    min_size=1,
)


@given(stages)
def test_it_agrees_with_the_layout_of_the_stream(plain):
    try:
        recipe = of(plain)
        curriculum = Curriculum.from_recipe(recipe)
    except RecipeError:
        return
    layouts = lay_out(recipe)
    assert layouts[-1].stop_step == curriculum.num_steps
    assert layouts[-1].stop_position == curriculum.positions
    for step in range(0, curriculum.num_steps, 1 + curriculum.num_steps // 40):
        here = stage_at(layouts, step)
        layout, stretch = layouts[here], curriculum.stretch(step)
        assert here == stretch.stage and layout.positions_at(step) == curriculum.positions_at(step)
        chunk = (layout.positions_at(step) - layout.first_position) // layout.chunk
        assert layout.close_of(chunk) == curriculum.chunk_close(step)
        assert layout.closed_by(step) == chunk
        assert layout.closed_by(layout.close_of(chunk)) == chunk + 1


@pytest.mark.parametrize(
    ("quotas", "parts"), [({"a": "61.6%", "b": "38.4%"}, (77, 48)), ({"a": "0%", "b": "100%"}, (0, 1))]
)
def test_shares_are_the_smallest_whole_parts(quotas, parts):
    plain = {"seed": 1, "pools": {"a": {"stock": 1}, "b": {"stock": 1}}}
    stages = {"x": {"steps": 1, "context": 8, "batch": {"sequences": 1}, "chunk": 8, "quotas": quotas}}
    recipe = recipe_from_plain({**plain, "stages": stages}, source="test")
    assert [leg.parts for leg in lay_out(recipe)[0].legs] == [parts]
