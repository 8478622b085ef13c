"""Losses by pool, group and tag: one vectorised call that a plain reference agrees with."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import recipe
from recipe.config import recipe_from_plain
from recipe.integrations.torch import (
    PoolLosses,
    StreamDataset,
    losses_by,
    pool_losses,
    row_weights,
    weighted_loss,
)
from recipe.integrations.torch.tags import UNTAGGED, TagKeys
from tests.integrations.conftest import PLAIN, WEIGHTED, started
from tests.integrations.ranks import on_ranks

torch.set_num_threads(1)


def plainly(losses, labels, keys, num):
    """Sums and counts, a position at a time."""
    sums, counts = [0.0] * num, [0] * num
    for row in range(len(labels)):
        for at in range(len(labels[row])):
            if labels[row][at] != -100 and keys[row][at] >= 0:
                sums[keys[row][at]] += float(losses[row][at])
                counts[keys[row][at]] += 1
    return sums, counts


@given(data=st.data(), rows=st.integers(1, 5), context=st.integers(1, 7), num=st.integers(1, 4))
@settings(max_examples=60)
def test_one_call_is_the_plain_loop(data, rows, context, num):
    dice = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    labels = torch.from_numpy(np.where(dice.random((rows, context)) < 0.4, -100, 5))
    losses = torch.from_numpy(dice.integers(0, 99, (rows, context)) / 4)
    losses[labels == -100] = float("nan")
    keys = torch.from_numpy(dice.integers(-1, num, (rows, context)))
    found = losses_by(losses, labels, keys, num)
    assert (found.sums.tolist(), found.labels.tolist()) == plainly(losses, labels, keys, num)


def test_pools_sum_to_the_batch_and_micro_batches_to_the_step(state):
    dataset = StreamDataset(state, micro_batch=2)
    for step in (3, 18):
        item = dataset[step]
        losses = torch.randint(0, 50, item["labels"].shape).double()
        whole = pool_losses(losses, item, 2)
        counted = item["labels"] != -100
        assert whole.total() == (float(losses[counted].sum()), int(item["num_labels"]))
        parts = [
            pool_losses(losses[rows], {key: item[key][rows] for key in ("labels", "pool")}, 2)
            for rows in (slice(0, 2), slice(2, 4))
        ]
        both = parts[0].plus(parts[1])
        assert torch.equal(both.sums, whole.sums) and torch.equal(both.labels, whole.labels)


def test_means_are_of_pools_and_their_groups():
    plain = PLAIN | {"groups": {"all": ["a", "b"]}}
    batch = {"labels": torch.tensor([[1, -100], [2, 3]]), "pool": torch.tensor([0, 1])}
    found = pool_losses(torch.tensor([[1.0, 9.0], [3.0, 5.0]]), batch, 2)
    assert found.means(recipe_from_plain(plain, source="test")) == {"a": 1.0, "b": 4.0, "all": 3.0}


def _of_rank(rank: int, state: bytes) -> tuple[list[float], list[int]]:
    item = StreamDataset(state, dp_rank=rank, dp_size=2)[2]
    found = pool_losses(item["input_ids"].double(), item, 2).over_ranks()
    return found.sums.tolist(), found.labels.tolist()


def test_ranks_sum_to_the_global_batch_with_one_reduction(state):
    """Every row is in one rank: nothing is counted twice."""
    item = StreamDataset(state)[2]
    whole = pool_losses(item["input_ids"].double(), item, 2)
    assert on_ranks(_of_rank, 2, state) == [(whole.sums.tolist(), whole.labels.tolist())] * 2


@pytest.fixture
def tagged(tmp_path):
    """The state of a run whose pool a has languages for all but every third document."""
    dice = np.random.default_rng(3)
    documents = [dice.integers(0, 99, size=n) for n in dice.integers(1, 60, size=60)]
    tags = [None if n % 3 == 0 else {"lang": "en" if n % 3 == 1 else "zh"} for n in range(60)]
    recipe.write_pool(tmp_path / "pools" / "a", documents, tags=tags, vocab_size=100, eos=99)
    recipe.write_pool(tmp_path / "pools" / "b", documents, vocab_size=100, eos=99)
    plain = PLAIN | {"pools_root": str(tmp_path)}
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        return run.state()


@pytest.mark.parametrize("deal", [(0, 1, None), (1, 2, None), (1, 2, 1)])
def test_every_position_has_the_tag_of_its_document(tagged, deal):
    """Against provenance, a row at a time."""
    dataset = StreamDataset(tagged, dp_rank=deal[0], dp_size=deal[1], micro_batch=deal[2])
    stream = dataset.stream()
    tags = TagKeys(stream, "lang")
    for step in (0, 5, 17):
        batch = stream.batch(step, *deal, rows=True)
        torched = {name: torch.from_numpy(array) for name, array in batch.items() if name != "rows"}
        keys = tags.keys(step, torched, deal)
        for k, row in enumerate(batch["rows"].tolist()):
            for piece in stream.provenance(step, row):
                number = int(piece.document)
                known = piece.pool == "a" and number % 3
                expected = {1: "en", 2: "zh"}[number % 3] if known else UNTAGGED
                stretch = keys[k, piece.column : piece.column + piece.stop - piece.start]
                assert {tags.values[key] for key in stretch.tolist()} == {expected}
        assert torch.equal(keys >= 0, torched["segment_ids"] >= 0)


def test_tags_sum_to_the_batch(tagged):
    dataset = StreamDataset(tagged)
    item, tags = dataset[4], TagKeys(dataset.stream(), "lang", ("zh", "en"))
    found = tags.losses(item["input_ids"].double(), item, 4)
    assert tags.values == (UNTAGGED, "zh", "en") and found.labels.min() > 0
    assert found.total() == pool_losses(item["input_ids"].double(), item, 2).total()


def test_rows_that_are_one_segment_are_not_told_apart_by_document(tmp_path):
    stages = {k: v | {"packing": {"attention": "sequence"}} for k, v in PLAIN["stages"].items()}
    dataset = StreamDataset(started(tmp_path, stages=stages))
    with pytest.raises(ValueError, match="attention: sequence"):
        TagKeys(dataset.stream(), "lang").keys(0, dataset[0])


def test_weighted_losses_of_micro_batches_and_ranks_add_up_to_the_steps(tmp_path):
    state = started(tmp_path, stages=WEIGHTED)
    whole, ranks = (
        StreamDataset(state),
        [StreamDataset(state, dp_rank=r, dp_size=2, micro_batch=1) for r in (0, 1)],
    )
    for step in (0, 7):
        item = whole[step]
        weights, counted = torch.tensor([1.6, 0.4])[item["pool"]], item["labels"] != -100
        assert torch.equal(row_weights(item), weights)
        by_hand = (item["input_ids"] * counted * weights[:, None]).sum() / int(counted.sum())
        loss = weighted_loss(item["input_ids"].float(), item)
        assert torch.allclose(loss, by_hand)
        parts = [part.batch for rank in ranks for part in rank.micro_batches(rank[step])]
        each = [weighted_loss(part["input_ids"].float(), part) for part in parts]
        assert len(each) == 4 and torch.allclose(sum(each), loss)


def test_without_an_objective_it_is_the_mean_and_what_has_no_label_is_not_looked_at(state):
    item = StreamDataset(state)[3]
    counted = item["labels"] != -100
    losses = torch.where(counted, item["input_ids"].float(), float("nan"))
    assert torch.allclose(weighted_loss(losses, item), losses[counted].mean())
    assert torch.equal(row_weights(item), torch.ones(4))
    losses.requires_grad_()
    weighted_loss(losses, item).backward()
    assert torch.equal(losses.grad, counted / counted.sum())


def test_a_batch_without_labels_has_no_loss():
    batch = {"labels": torch.full((1, 2), -100), "pool": torch.tensor([0]), "num_labels": torch.tensor(0)}
    assert float(weighted_loss(torch.ones(1, 2), batch)) == 0.0


def test_the_weighted_mean_of_a_leg_is_the_mean_of_the_objectives_mixture():
    """Mean losses 2 and 5 of 30 and 10 labels; counted half and half: weights 2/3 and 2."""
    found = PoolLosses(torch.tensor([60.0, 50.0]), torch.tensor([30, 10]))
    assert found.weighted_mean([Fraction(2, 3), Fraction(2)]) == pytest.approx(3.5)
    assert found.weighted_mean([1, 0]) == 2.0
    with pytest.raises(ValueError, match="above 0"):
        found.weighted_mean([0, 0])
