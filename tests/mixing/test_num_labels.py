"""The labels of a step, which every rank divides by, are those of all ranks and micro-batches together."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.mixing.stream import Stream
from tests.mixing.build import world
from tests.mixing.worlds import Bank, draw_case, passed_over


def divisors(n: int) -> list[int]:
    return [d for d in range(1, n + 1) if n % d == 0]


def labels_of(batch: dict[str, Any]) -> int:
    return int((batch["labels"] != -100).sum())


@settings(max_examples=30)
@given(st.data())
def test_the_labels_of_a_step_are_the_sum_over_its_ranks_and_micro_batches(bank: Bank, data: st.DataObject):
    """For any number of ranks and micro-batches that deal the batch, dealt either way, from any start."""
    case = draw_case(data.draw, bank, stages=2)
    deal = data.draw(st.sampled_from(["order", "balanced"]))
    plain = {key: value for key, value in case.plain.items() if key not in ("pools", "stages")}
    made = world(bank.root, case.plain["pools"], case.plain["stages"], deal=deal, **plain)
    whole, ranks = made.stream(), made.stream()
    for step in data.draw(st.sets(st.integers(0, whole.num_steps - 1), min_size=1, max_size=3)):
        rows = whole.curriculum.stretch(step).batch
        size = data.draw(st.sampled_from(divisors(rows)))
        micro = data.draw(st.sampled_from([None, *divisors(rows // size)]))
        with passed_over():
            parts = [ranks.batch(step, rank, size, micro) for rank in range(size)]
        start = whole.snapshot(data.draw(st.integers(0, step)))
        told = Stream(made.recipe, made.pools, [start]).num_labels(step)
        assert told == whole.num_labels(step) == sum(map(labels_of, parts))
        if micro is not None:
            each = [part["labels"][j : j + micro] for part in parts for j in range(0, rows // size, micro)]
            assert told == sum(int(np.count_nonzero(labels != -100)) for labels in each)
