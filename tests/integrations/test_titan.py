"""A trainer in the manner of torchtitan: model, optimizer and loader in one distributed checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed.checkpoint as dcp

from recipe.integrations.titan import StreamLoader
from recipe.integrations.torch import StreamDataset, ranks_from
from recipe.integrations.training.model import GPT, GPTConfig, token_losses
from tests.integrations.ranks import on_ranks

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


def _trained(
    rank: int, state: bytes, folder: str, until: tuple[int, ...], late: bool
) -> dict[str, torch.Tensor]:
    """Steps up to each of ``until``, saved there and taken up again by new objects."""
    weights: dict[str, list[Any]] = {}
    for place, stop in enumerate(until):
        model = GPT(GPTConfig(vocab_size=100, layers=1, heads=2, width=16))
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, foreach=False)
        loader = StreamLoader(StreamDataset(state, **ranks_from()._asdict()))
        if place:
            _load(model, optimizer, loader, Path(folder) / str(until[place - 1]))
        step = loader.dataset.step
        for inputs, labels in loader:
            logits = model(inputs["input"], inputs["positions"], inputs["segments"])
            (token_losses(logits, labels).sum() / inputs["num_labels"]).backward()
            for weight in model.parameters():
                torch.distributed.all_reduce(weight.grad)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if step == stop:
                break
        what = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "loader": loader.state_dict(),
        }
        saved = (dcp.async_save if late else dcp.save)(what, checkpoint_id=str(Path(folder) / str(stop)))
        if late:
            saved.result()
        weights = {name: weight.tolist() for name, weight in model.state_dict().items()}
    return weights


def _load(model: Any, optimizer: Any, loader: StreamLoader, path: Path) -> None:
    for weight in model.parameters():  # so that the optimizer has a state to load into
        weight.grad = torch.zeros_like(weight)
    optimizer.step()
    what = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
    dcp.load(what, checkpoint_id=str(path))
    model.load_state_dict(what["model"])
    optimizer.load_state_dict(what["optimizer"])
    loader.load_state_dict(what["loader"])


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("size", [1, 2])
def test_a_distributed_checkpoint_goes_on_to_the_same_bits(state, tmp_path, size, late):
    whole = on_ranks(_trained, size, state, str(tmp_path / "whole"), (20,), False)
    cut = on_ranks(_trained, size, state, str(tmp_path / "cut"), (5, 6, 17, 20), late)
    assert cut == whole


@pytest.mark.parametrize("workers", [0, 2])
def test_pairs_are_the_streams_rows(state, workers):
    dataset = StreamDataset(state)
    pairs = list(StreamLoader(StreamDataset(state), num_workers=workers))
    assert len(pairs) == 24
    for step, (inputs, labels) in enumerate(pairs):
        assert torch.equal(inputs["input"], dataset[step]["input_ids"])
        assert torch.equal(labels, dataset[step]["labels"])
        assert torch.equal(inputs["segments"], dataset[step]["segment_ids"])


def test_a_checkpoint_without_it_is_refused(state):
    with pytest.raises(ValueError, match="without the stream's state"):
        StreamLoader(StreamDataset(state)).load_state_dict({})
