"""Digests of rows: whatever differs is seen, and ranks join in any order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.sequences.digest import FIELDS, row_digests, step_digest, words_of


def batch(rows: int = 4, context: int = 6, *, seed: int = 0) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(seed)
    return {name: chance.integers(-100, 1000, (rows, context)) for name in FIELDS}


def digest(given, step=3, rows=range(4)):
    return step_digest(row_digests(given, step, list(rows)))


@given(cuts=st.lists(st.integers(0, 8), max_size=3), order=st.randoms())
def test_ranks_join_to_the_step_whatever_their_number_and_order(cuts, order):
    whole = batch(8)
    edges = [0, *sorted(cuts), 8]
    parts = [
        row_digests({name: whole[name][a:b] for name in FIELDS}, 3, list(range(a, b)))
        for a, b in pairwise(edges)
    ]
    order.shuffle(parts)
    assert step_digest(np.concatenate(parts)) == digest(whole, rows=range(8))


@given(
    field=st.sampled_from(FIELDS), row=st.integers(0, 3), column=st.integers(0, 5), by=st.integers(1, 2**20)
)
def test_any_number_that_differs_is_seen(field, row, column, by):
    other = {name: array.copy() for name, array in batch().items()}
    other[field][row, column] += by
    assert digest(other) != digest(batch())


def test_step_place_missing_and_repeated_rows_are_seen():
    whole = batch()
    swapped = {name: array[[1, 0, 2, 3]] for name, array in whole.items()}
    fewer = {name: array[:3] for name, array in whole.items()}
    twice = {name: array[[0, 1, 2, 2]] for name, array in whole.items()}
    seen = [digest(whole), digest(whole, step=4), digest(whole, rows=[0, 1, 2, 4]), digest(swapped)]
    seen += [digest(fewer, rows=range(3)), digest(twice)]
    assert len(set(seen)) == len(seen)


def test_the_width_of_the_numbers_does_not_matter():
    narrow = {name: array.astype(np.int32) for name, array in batch().items()}
    mixed = {**narrow, "input_ids": batch()["input_ids"].astype(np.int64)}
    assert digest(narrow) == digest(mixed) == digest(batch())


def test_a_digest_is_the_same_for_ever():
    plain = {name: np.arange(6).reshape(2, 3) + k for k, name in enumerate(FIELDS)}
    assert digest(plain, step=5, rows=[0, 1]) == GOLDEN
    assert step_digest([words_of(GOLDEN)]) == GOLDEN


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"labels": None}, "lacks labels"),
        ({"labels": np.zeros((4, 5), int)}, r"labels is \[4, 5\]"),
        ({"labels": np.zeros((4, 6))}, "float64"),
        ({"labels": np.full((4, 6), 2**31)}, "beyond 32 bits"),
    ],
)
def test_what_is_no_batch_is_refused(change, told):
    given = {name: array for name, array in {**batch(), **change}.items() if array is not None}
    with pytest.raises(ValueError, match=told):
        digest(given)
    with pytest.raises(ValueError, match="below 0"):
        row_digests(batch(), -1, list(range(4)))


def test_tensors_will_do():
    torch = pytest.importorskip("torch")
    assert digest({name: torch.from_numpy(array) for name, array in batch().items()}) == digest(batch())


GOLDEN = "d26906ccf7a33ba3f24eebd14700bf77"
