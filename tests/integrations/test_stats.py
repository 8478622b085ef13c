"""What the trainer's process took, told by the stream and the datasets."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader

from recipe.integrations.torch import StreamDataset
from recipe.run.state import stream_from

torch.set_num_threads(1)


def test_a_stream_tells_what_it_handed_out(state):
    stream = stream_from(state)
    batches = [batch for _, batch in stream.batches(0, stop=5)]
    stats = stream.stats()
    tokens = sum(int(batch["attention_mask"].sum()) for batch in batches)
    assert (stats.total.steps, stats.total.tokens) == (5, tokens)
    width = stream.ground.pools[0].token_dtype.itemsize
    assert stats.total.bytes_read == tokens * width
    assert stats.last == stats.total and stats.total.waited_ms >= 0 and stats.queue_depth == 0
    assert stream.stats().last.steps == 0 and stream.stats().total == stats.total


def test_batches_ready_behind_the_one_taken_are_the_queue(state):
    stream = stream_from(state)
    batches = stream.batches(0, stop=9, read_ahead=2)
    seen = []
    for _ in batches:
        seen.append(stream.stats().queue_depth)
    assert seen[-1] == 0 and all(0 <= depth <= 3 for depth in seen)
    assert [stream.stats().queue_depth for _ in stream.batches(0, stop=4, read_ahead=0)] == [0] * 4


@pytest.mark.parametrize("workers", [0, 2])
def test_a_dataset_tells_what_its_loader_handed_to_the_trainer(state, workers):
    dataset = StreamDataset(state)
    loader = DataLoader(
        dataset,
        batch_size=None,
        sampler=dataset.sampler(),
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
    )
    tokens = 0
    for step, item in dataset.follow(loader):
        tokens += int(item["attention_mask"].sum())
        if step == 6:
            break
    stats = dataset.stats()
    assert (stats.total.steps, stats.total.tokens, stats.queue_depth) == (7, tokens, None)
    assert stats.total.waited_ms > 0
