"""Several processes over gloo: the rows of the ranks are the batch's, and so is what is learnt from them."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from recipe.integrations.torch import StreamDataset, pool_losses, ranks_from
from recipe.integrations.training.model import GPT, GPTConfig, token_losses
from tests.integrations.ranks import on_ranks

CONFIG = GPTConfig(vocab_size=100, layers=1, heads=2, width=16)


def _rows(rank: int, state: bytes, steps: tuple[int, ...]) -> list[Any]:
    dataset = StreamDataset(state, **ranks_from()._asdict())
    return [dataset[step]["input_ids"].tolist() for step in steps]


@pytest.mark.parametrize("size", [2, 4])
def test_L06_ranks_together_hold_the_batch_and_open_no_file_of_the_run(state, tmp_path, size):
    hidden = tmp_path / "run"
    hidden.rename(tmp_path / "elsewhere")
    found = on_ranks(_rows, size, state, (0, 7, 20))
    whole = StreamDataset(state)
    for place, step in enumerate((0, 7, 20)):
        assert [row for rank in found for row in rank[place]] == whole[step]["input_ids"].tolist()
    assert not hidden.exists()


def _trained(rank: int, saved: bytes, steps: int, micro_batch: int) -> bytes:
    """Train some steps from a checkpoint; the losses by step, and the next checkpoint."""
    content = pickle.loads(saved)
    torch.manual_seed(0)
    model = DistributedDataParallel(GPT(CONFIG))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    dataset = StreamDataset(content["state"], micro_batch=micro_batch, **ranks_from()._asdict())
    if "model" in content:
        model.module.load_state_dict(content["model"])
        dataset.load_state_dict(content["data"])
    losses = []
    loader = torch.utils.data.DataLoader(dataset, batch_size=None, sampler=dataset.sampler())
    for step, item in dataset.follow(loader):
        total = pool_losses(torch.zeros(item["labels"].shape), item, 2)
        for part in dataset.micro_batches(item):
            batch = part.batch
            found = token_losses(
                model(batch["input_ids"], batch["position_ids"], batch["segment_ids"]), batch["labels"]
            )
            # Gradients are averaged over ranks: the sum over the step's labels times the ranks is the mean.
            (found.sum() / dataset.num_labels(step) * dist.get_world_size()).backward()
            told = pool_losses(found, batch, 2)
            total = told if part.number == 0 else total.plus(told)
        optimizer.step()
        optimizer.zero_grad()
        summed, labels = total.over_ranks().total()
        assert labels == dataset.num_labels(step)
        losses.append(summed / labels)
        if len(losses) == steps:
            break
    return pickle.dumps(
        {
            "state": content["state"],
            "model": model.module.state_dict(),
            "data": dataset.state_dict(),
            "losses": losses,
        }
    )


def test_two_ranks_with_micro_batches_learn_what_one_does(state):
    """Mean losses and weights, to rounding; the number of labels needs no word between the ranks."""
    begin = pickle.dumps({"state": state})
    one = pickle.loads(on_ranks(_trained, 1, begin, 20, 4)[0])
    two = [pickle.loads(told) for told in on_ranks(_trained, 2, begin, 20, 1)]
    assert one["losses"] == pytest.approx(two[0]["losses"], rel=1e-4) and two[0]["losses"] == two[1]["losses"]
    for name, weight in one["model"].items():
        assert torch.allclose(weight, two[0]["model"][name], atol=1e-4)


def test_a_checkpoint_goes_on_under_another_number_of_ranks(state):
    """Elastic: 2 ranks, then 1, then 4, by one checkpoint; the losses are the unbroken run's."""
    begin = pickle.dumps({"state": state})
    whole = pickle.loads(on_ranks(_trained, 1, begin, 18, 1)[0])["losses"]
    losses, saved = [], begin
    for ranks in (2, 1, 4):
        saved = on_ranks(_trained, ranks, saved, 6, 1)[0]
        losses += pickle.loads(saved)["losses"]
    assert losses == pytest.approx(whole, rel=1e-3)


def test_at_equal_ranks_a_cut_training_ends_at_the_same_bits(state):
    begin = pickle.dumps({"state": state})
    whole = pickle.loads(on_ranks(_trained, 2, begin, 12, 2)[0])["model"]
    saved = begin
    for steps in (5, 1, 6):
        saved = on_ranks(_trained, 2, saved, steps, 2)[0]
    ends = pickle.loads(saved)["model"]
    assert all(torch.equal(ends[name], whole[name]) for name in whole)


def test_replicas_of_a_rank_are_counted_once(state):
    """Under tensor parallelism two processes of four share rows: their labels count once, not twice."""
    environment = [{"RANK": str(rank), "WORLD_SIZE": "4"} for rank in range(4)]
    places = [ranks_from(own, tp=2) for own in environment]
    unique = {place: StreamDataset(state, **place._asdict()) for place in places}
    assert len(unique) == 2
    for step in (0, 17):
        total = sum(int((data[step]["labels"] != -100).sum()) for data in unique.values())
        assert total == next(iter(unique.values())).num_labels(step)
