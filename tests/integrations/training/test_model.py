"""Isolation, shown by a real model over real batches."""

from __future__ import annotations

import pytest
import torch

from recipe.integrations.torch import StreamDataset
from recipe.integrations.training.model import GPT, GPTConfig, token_losses
from tests.integrations.conftest import started

CONFIG = GPTConfig(vocab_size=100, layers=2, heads=2, width=16)


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> dict[str, torch.Tensor]:
    """A packed batch: several documents a row."""
    item = StreamDataset(started(tmp_path_factory.mktemp("packed")))[18]
    assert item["segment_ids"].max() >= 1
    return item


@pytest.fixture(scope="module")
def model() -> GPT:
    torch.set_num_threads(1)
    return GPT(CONFIG, seed=1).eval()


def logits(model: GPT, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    with torch.no_grad():
        return model(batch["input_ids"], batch["position_ids"], batch["segment_ids"])


def test_C2_another_document_beside_it_changes_no_bit_of_a_documents_logits(model, batch):
    before = logits(model, batch)
    for row, segments in enumerate(batch["segment_ids"]):
        for changed in segments[segments >= 0].unique().tolist():
            here = (batch["segment_ids"] == changed) & (torch.arange(len(segments.new_zeros(4))) == row)[
                :, None
            ]
            ids = torch.where(here, (batch["input_ids"] + 7) % 99, batch["input_ids"])
            after = logits(model, {**batch, "input_ids": ids})
            assert torch.equal(after[~here], before[~here])
            assert not torch.equal(after[here], before[here])


def test_C2_a_rows_loss_is_the_sum_of_its_documents_losses_alone(model, batch):
    losses = token_losses(logits(model, batch), batch["labels"])
    for row, segments in enumerate(batch["segment_ids"]):
        alone = 0.0
        for segment in segments[segments >= 0].unique():
            part = {
                name: batch[name][row][segments == segment][None]
                for name in ("input_ids", "position_ids", "labels")
            }
            given = {**part, "segment_ids": torch.zeros_like(part["input_ids"])}
            alone += float(token_losses(logits(model, given), part["labels"]).double().sum())
        assert float(losses[row].double().sum()) == pytest.approx(alone, rel=1e-6)


def test_a_model_looks_back_and_never_ahead(model, batch):
    ids = batch["input_ids"].clone()
    ids[:, 20:] = (ids[:, 20:] + 3) % 99
    assert torch.equal(logits(model, {**batch, "input_ids": ids})[:, :20], logits(model, batch)[:, :20])


def test_padding_is_looked_at_by_nobody_and_gives_no_nan(model, batch):
    assert torch.isfinite(logits(model, batch)).all()


def test_the_same_seed_gives_the_same_weights_whatever_torch_drew_before():
    torch.manual_seed(5)
    one = GPT(CONFIG, seed=3).state_dict()
    torch.manual_seed(6)
    two, other = GPT(CONFIG, seed=3).state_dict(), GPT(CONFIG, seed=4).state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not torch.equal(one["embedding.weight"], other["embedding.weight"])


@pytest.mark.parametrize("shape", [{"width": 10, "heads": 3}, {"layers": 0}, {"width": 6, "heads": 2}])
def test_a_shape_that_is_none_is_refused(shape):
    with pytest.raises(ValueError, match=r"width|layers"):
        GPTConfig(vocab_size=9, **shape)
