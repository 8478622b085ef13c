"""Lengths of stages against a walk batch by batch."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.config import Stage, Stretch, stage_spans


def stage(name="s", context=10, **keys):
    return Stage.model_validate({"name": name, "context": context, "weights": {"a": 1}, **keys})


def walked(stages):
    """The same, one batch at a time."""
    at, result = 0, {}
    for one in stages:
        start, steps, largest = at, 0, 0
        while (
            (one.tokens is not None and at - start < one.tokens)
            or (one.until is not None and at < one.until)
            or (one.steps is not None and steps < one.steps)
        ):
            sequences = next(size for position, size in reversed(one.ramp) if position <= at)
            at, steps, largest = at + sequences * one.context, steps + 1, max(largest, sequences)
        result[one.name] = (start, at, steps, largest)
    return result


RAMPS = st.dictionaries(st.integers(1, 900), st.integers(1, 9), max_size=4).flatmap(
    lambda later: st.integers(1, 9).map(lambda first: {0: first, **dict(sorted(later.items()))})
)
LENGTHS = st.one_of(
    st.integers(1, 500).map(lambda n: {"tokens": n}), st.integers(1, 30).map(lambda n: {"steps": n})
)


@given(st.lists(st.tuples(LENGTHS, RAMPS, st.integers(1, 12)), min_size=1, max_size=4))
def test_spans_agree_with_a_walk(specs):
    stages = [
        stage(str(n), context, batch={"ramp": ramp}, **length)
        for n, (length, ramp, context) in enumerate(specs)
    ]
    spans = stage_spans(stages)
    assert {name: (s.start, s.stop, s.steps, s.largest_batch) for name, s in spans.items()} == walked(stages)


def test_until_counts_from_the_start_of_the_run():
    spans = stage_spans(
        [stage("a", tokens=95, batch={"sequences": 1}), stage("b", until=200, batch={"sequences": 3})]
    )
    assert (spans["a"].stop, spans["a"].overshoot) == (100, 5)
    assert (spans["b"].stated, spans["b"].stop, spans["b"].steps, spans["b"].overshoot) == (100, 220, 4, 20)


def test_a_size_changes_at_the_first_batch_end_at_or_after_its_key():
    spans = stage_spans([stage(tokens=200, batch={"ramp": {0: 3, 50: 5}})])
    assert spans["s"].stretches == (Stretch(2, 3), Stretch(3, 5))


@pytest.mark.parametrize(("key", "first"), [(60, 2), (61, 3)])
def test_a_key_at_a_batch_end_changes_the_next_batch(key, first):
    assert stage_spans([stage(tokens=200, batch={"ramp": {0: 3, key: 5}})])["s"].stretches[0] == Stretch(
        first, 3
    )
