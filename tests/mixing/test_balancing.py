"""Rows of a batch dealt so that micro-batches cost the same: never another batch, never less even."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe as product
from recipe.config import recipe_from_plain
from recipe.errors import RecipeError
from recipe.mixing.balancing import balance, balanced_order
from recipe.mixing.dealing import dealt_rows
from tests.mixing.build import World, stage, world, write
from tests.mixing.worlds import Bank, draw_case


@st.composite
def deals(draw: st.DrawFn) -> tuple[np.ndarray, int, int | None]:
    size, micro, count = draw(st.integers(1, 6)), draw(st.integers(1, 5)), draw(st.integers(1, 4))
    batch = size * micro * count
    costs = draw(st.lists(st.integers(0, 2**48), min_size=batch, max_size=batch))
    return np.array(costs, np.int64), size, draw(st.sampled_from([micro, None]))


def sums(costs: np.ndarray, order: np.ndarray, size: int, micro: int | None) -> list[int]:
    """Of every micro-batch of every rank, from the rows that it is dealt."""
    rows = [order[dealt_rows(len(costs), rank, size, micro)] for rank in range(size)]
    each = len(rows[0]) if micro is None else micro
    return [int(costs[rank].reshape(-1, each)[j].sum()) for rank in rows for j in range(len(rank) // each)]


@given(deals())
def test_every_row_once_and_the_largest_micro_batch_never_larger(deal: tuple[np.ndarray, int, int | None]):
    costs, size, micro = deal
    order = balanced_order(costs, size, micro)
    assert sorted(order.tolist()) == list(range(len(costs)))
    was, becomes = (sums(costs, o, size, micro) for o in (np.arange(len(costs)), order))
    assert max(becomes) <= max(was)
    assert sum(becomes) == sum(was)
    assert np.array_equal(order, balanced_order(costs.copy(), size, micro))


@given(deals())
def test_the_balance_is_the_largest_sum_over_the_mean(deal: tuple[np.ndarray, int, int | None]):
    costs, size, micro = deal
    order = balanced_order(costs, size, micro)
    right = sums(costs, order, size, micro)
    total = sum(right)
    even = balance(costs, order, len(right))
    assert even == (Fraction(max(right) * len(right), total) if total else 1)


def test_most_of_the_unevenness_of_packed_rows_goes():
    chance = np.random.default_rng(3)
    lengths = np.minimum(chance.lognormal(6.5, 1.3, 20_000).astype(int) + 1, 8192)
    costs = np.array([int((part**2).sum()) for part in np.array_split(lengths, 512)])
    was = balance(costs, np.arange(512), 128)
    now = balance(costs, balanced_order(costs, 16, 4), 128)
    assert now - 1 < (was - 1) / 2


def test_micro_batches_of_one_row_are_processed_beside_similar_ones():
    costs = np.array([1, 100, 2, 99])
    assert balanced_order(costs, 2, 1).tolist() == [1, 3, 0, 2]


def test_a_batch_that_cannot_be_dealt_is_refused():
    with pytest.raises(RecipeError, match="dp_size"):
        balanced_order(np.ones(9, np.int64), 2)


@pytest.fixture(scope="module")
def twin(tmp_path_factory: pytest.TempPathFactory) -> dict[str, World]:
    """The same stream, dealt either way."""
    root = tmp_path_factory.mktemp("twin")
    write(root / "a", [n * n % 31 + 1 for n in range(500)], eos=True)
    stages = [stage(32, {"a": 1}, batch=24, steps=3)]
    return {deal: world(root, {"a": {}}, stages, max_epochs=99, deal=deal) for deal in ("order", "balanced")}


@pytest.mark.parametrize(("size", "micro"), [(1, None), (4, None), (4, 3), (2, 4), (24, 1), (3, 1)])
def test_invariant_6_all_ranks_together_hold_the_batch_of_the_schedule(
    twin: dict[str, World], size: int, micro: int | None
):
    stream, right = twin["balanced"].stream(), twin["order"].stream().batch(2)
    parts = [twin["balanced"].stream().batch(2, rank, size, micro) for rank in range(size)]
    places = np.concatenate([part["rows"] for part in parts])
    assert sorted(places.tolist()) == list(range(24))
    for key in right:
        together = np.concatenate([part[key] for part in parts])
        assert np.array_equal(together, right[key][places])
    order = stream.order(2, size, micro)
    assert np.concatenate([order[dealt_rows(24, r, size, micro)] for r in range(size)]).tolist() == (
        places.tolist()
    )
    even = stream.balance(2, size, micro)
    assert 1 <= even.dealt <= even.scheduled


def test_it_gets_more_even_and_the_record_stays(twin: dict[str, World]):
    balanced, ordered = twin["balanced"].stream(), twin["order"].stream()
    assert all(balanced.balance(s, 4, 3).dealt < balanced.balance(s, 4, 3).scheduled for s in range(3))
    assert all(ordered.balance(s, 4, 3).dealt == ordered.balance(s, 4, 3).scheduled for s in range(3))
    assert balanced.snapshot(3) == ordered.snapshot(3)
    assert balanced.provenance(1, 5) == ordered.provenance(1, 5)
    assert balanced.num_labels(1) == ordered.num_labels(1)


def test_rows_on_request_without_balancing(twin: dict[str, World]):
    stream = twin["order"].stream()
    assert stream.batch(0, 1, 4, 3, rows=True)["rows"].tolist() == [3, 4, 5, 15, 16, 17]
    assert "rows" not in stream.batch(0)
    assert [b["rows"].tolist() for _, b in stream.batches(1, 0, 4, 3, rows=True)] == [
        [0, 1, 2, 12, 13, 14]
    ] * 2


@settings(max_examples=30)
@given(st.data())
def test_provenance_refers_to_rows_of_the_schedule(bank: Bank, data: st.DataObject):
    case = draw_case(data.draw, bank)
    plain = {key: value for key, value in case.plain.items() if key not in ("pools", "stages")}
    made = world(bank.root, case.plain["pools"], case.plain["stages"], **plain, deal="balanced")
    stream, step = made.stream(), 0
    try:
        size = stream.curriculum.stretch(step).batch
        parts = [stream.batch(step, rank, size) for rank in range(size)]
    except RecipeError:
        return
    for part in parts:
        for index, row in enumerate(part["rows"].tolist()):
            for piece in stream.provenance(step, row):
                tokens = case.sources[piece.pool].docs[piece.document].tokens[piece.start : piece.stop]
                held = part["input_ids"][index, piece.column : piece.column + len(tokens)]
                assert held.tolist() == tokens


def test_a_run_is_dealt_balanced_from_its_state_and_its_digests_agree(tmp_path: Path):
    write(tmp_path / "pools" / "a", [n * n % 31 + 1 for n in range(300)], eos=True)
    plain = {
        "seed": 1,
        "pools_root": str(tmp_path / "pools"),
        "pools": {"a": {"path": "a"}},
        "deal": "balanced",
        "stages": {"s": stage(32, {"a": 1}, batch=8, steps=3)},
    }
    recipe = recipe_from_plain(plain, source="test")
    with product.start_run(recipe, tmp_path / "run") as run:
        state = run.state(0)
        stream = run.stream()
        with product.BatchDigests(tmp_path / "run") as digests:
            for rank in range(2):
                for step, batch in stream.batches(dp_rank=rank, dp_size=2, micro_batch=2):
                    digests.add(step, batch, dp_rank=rank, dp_size=2, micro_batch=2)
        run.checkpoint(3, uri="x")
        even = stream.balance(0, 2, 2)
    assert even.dealt < even.scheduled
    apart = product.stream_from(state, pools_root=tmp_path / "pools")
    assert np.array_equal(apart.order(1, 2, 2), stream.order(1, 2, 2))
    assert product.audit_run(tmp_path / "run").ok
