"""The torch dataset under the real DataLoader: workers change nothing, the trainer's step counts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from recipe.errors import RecipeError
from recipe.integrations.torch import StreamDataset
from recipe.run.state import stream_from

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
ARRAYS = ("input_ids", "labels", "position_ids", "segment_ids", "attention_mask", "pool")


def load(dataset: StreamDataset, workers: int = 0, context: str | None = None, ahead: int = 2) -> DataLoader:
    options = {"prefetch_factor": ahead, "multiprocessing_context": context} if workers else {}
    return DataLoader(dataset, batch_size=None, sampler=dataset.sampler(), num_workers=workers, **options)


def read(dataset: StreamDataset, workers: int = 0, context: str | None = None) -> list[tuple[int, list]]:
    return [
        (step, [batch[name].tolist() for name in ARRAYS])
        for step, batch in dataset.follow(load(dataset, workers, context))
    ]


def test_items_are_the_rows_of_the_stream_over_the_same_memory(state):
    dataset, stream = StreamDataset(state), stream_from(state)
    assert len(dataset) == stream.num_steps == 24
    for step in (0, 15, 16, 23):
        batch, item = stream.batch(step), dataset[step]
        assert set(item) == {*batch, "step", "num_labels"}
        for name, array in batch.items():
            assert item[name].numpy().dtype == array.dtype
            assert np.array_equal(item[name].numpy(), array)
    served = dataset.stream().batch(3)
    assert torch.from_numpy(served["labels"]).data_ptr() == served["labels"].ctypes.data


def test_an_item_that_is_kept_is_not_written_over(state):
    dataset = StreamDataset(state)
    kept = [dataset[step] for step in range(16)]
    again = StreamDataset(state)
    for step, item in enumerate(kept):
        assert torch.equal(item["input_ids"], again[step]["input_ids"])


def test_several_items_at_once_are_those_items(state):
    dataset = StreamDataset(state)
    for step, item in zip((3, 1, 20), dataset.__getitems__([3, 1, 20]), strict=True):
        assert torch.equal(item["labels"], dataset[step]["labels"])


def test_the_number_of_labels_is_the_batchs_over_all_ranks(state):
    dataset = StreamDataset(state, dp_rank=1, dp_size=2)
    whole = StreamDataset(state)
    for step in range(24):
        labels = int((whole[step]["labels"] != -100).sum())
        assert dataset.num_labels(step) == int(dataset[step]["num_labels"]) == labels


@pytest.mark.parametrize("size", [1, 2])
def test_micro_batches_are_megatrons(state, size):
    """Micro-batch j of rank r of W holds rows j*mb*W + r*mb of the schedule's order."""
    whole = StreamDataset(state)
    for rank in range(size):
        dataset = StreamDataset(state, dp_rank=rank, dp_size=size, micro_batch=1)
        for step in (0, 20):
            parts = list(dataset.micro_batches(dataset[step]))
            assert [(part.number, part.of) for part in parts] == [(j, 4 // size) for j in range(4 // size)]
            for part in parts:
                row = part.number * size + rank
                assert torch.equal(part.batch["input_ids"], whole[step]["input_ids"][row : row + 1])
                assert int(part.batch["num_labels"]) == whole.num_labels(step)


def test_micro_batches_need_their_size(state):
    dataset = StreamDataset(state)
    with pytest.raises(ValueError, match="micro_batch="):
        dataset.micro_batches(dataset[0])


@pytest.mark.parametrize(("workers", "context"), [(1, "fork"), (2, "fork"), (4, "fork"), (2, "spawn")])
def test_F3_any_number_of_workers_gives_the_same_stream(state, workers, context):
    assert read(StreamDataset(state), workers, context) == read(StreamDataset(state))


@pytest.mark.parametrize("size", [2, 4])
def test_L06_ranks_together_hold_the_global_batch(state, size):
    whole = StreamDataset(state)
    ranks = [StreamDataset(state, dp_rank=rank, dp_size=size) for rank in range(size)]
    for step in (0, 7, 20):
        rows = torch.cat([rank[step]["input_ids"] for rank in ranks])
        assert torch.equal(rows, whole[step]["input_ids"])


@pytest.mark.parametrize(("workers", "ahead"), [(0, 1), (1, 1), (1, 8), (4, 2)])
def test_R05_the_step_is_the_trainers_however_far_the_workers_read_ahead(state, workers, ahead):
    """R05: saved right after step 10, the next batch is step 11."""
    whole = read(StreamDataset(state))
    dataset = StreamDataset(state)
    for step, _ in dataset.follow(load(dataset, workers, "fork" if workers else None, ahead)):
        if step == 10:
            saved = dataset.state_dict()
            break
    resumed = StreamDataset(state)
    resumed.load_state_dict(pickle.loads(pickle.dumps(saved)))
    assert saved["step"] == resumed.step == 11
    assert read(resumed, workers) == whole[11:]


def test_F4_cut_at_every_step_and_cut_again(state):
    whole = read(StreamDataset(state))
    for first in range(0, 24, 5):
        dataset = StreamDataset(state)
        dataset.step = first
        again = StreamDataset(dataset.state_dict()["state"])
        assert again.step == first
        again.step = min(first + 3, 24)
        last = StreamDataset(state)
        last.load_state_dict(again.state_dict())
        assert read(last) == whole[min(first + 3, 24) :]


@pytest.mark.parametrize("workers", [0, 2, 4])
def test_Q01_Q04_a_stage_switch_happens_at_its_step_in_every_worker(state, workers):
    """Q01, Q04: all of one pool before the switch, all of the other from it on."""
    dataset = StreamDataset(state)
    for step, batch in dataset.follow(load(dataset, workers, "fork" if workers else None)):
        assert set(batch["pool"].tolist()) == ({0} if step < 16 else {1})
        assert batch["input_ids"].shape == (4, 32 if step < 16 else 64)


def test_a_step_outside_the_run_is_an_index_error(state):
    dataset = StreamDataset(state)
    for step in (-1, 24):
        with pytest.raises(IndexError, match=f"step {step} is outside"):
            dataset[step]


def test_a_finished_run_has_no_steps_left(state):
    dataset = StreamDataset(state)
    dataset.step = 24
    assert len(dataset.sampler()) == 0
    assert read(dataset) == []
    assert StreamDataset(dataset.state_dict()["state"]).step == 24


def test_L06_ranks_that_do_not_divide_a_later_stage_are_refused_at_once(uneven):
    with pytest.raises(RecipeError, match=r"a number of ranks in \[1, 2\]"):
        StreamDataset(uneven, dp_size=4)
    with pytest.raises(RecipeError, match="micro-batches of 4"):
        StreamDataset(uneven, micro_batch=4)
    assert len(StreamDataset(uneven, dp_size=2)[23]["pool"]) == 1


def test_a_state_of_a_run_that_cannot_be_dealt_is_not_loaded(state, uneven, tmp_path):
    dataset = StreamDataset(state, dp_size=4)
    with pytest.raises(RecipeError, match="4 ranks"):
        dataset.load_state_dict({"format": 1, "step": 0, "state": uneven})
    assert dataset.step == 0
    assert len(dataset) == 24


@pytest.mark.parametrize(("rank", "size"), [(2, 2), (-1, 1), (0, 0)])
def test_there_is_no_such_rank(state, rank, size):
    with pytest.raises(ValueError, match=f"dp_rank {rank} is outside"):
        StreamDataset(state, dp_rank=rank, dp_size=size)


@pytest.mark.parametrize(("workers", "context"), [(0, None), (2, "fork")])
def test_a_run_that_ends_early_ends_where_the_stream_ends(ending, workers, context):
    expected = [step for step, _ in stream_from(ending).batches(0)]
    dataset = StreamDataset(ending)
    assert len(dataset) > len(expected) > 0
    assert [step for step, _ in read(dataset, workers, context)] == expected
    assert len(dataset) == dataset.step == len(expected)
    assert len(dataset.sampler()) == 0
    assert read(StreamDataset(dataset.state_dict()["state"]), workers, context) == []


def test_a_loader_alone_ends_early_too(ending):
    dataset = StreamDataset(ending)
    steps = [int(item["step"]) for item in load(dataset, workers=1, context="fork", ahead=8)]
    assert steps == [step for step, _ in stream_from(ending).batches(0)]


def test_an_early_end_is_met_from_every_step_before_it(ending):
    end = len([step for step, _ in stream_from(ending).batches(0)])
    for first in (0, end - 17, end - 16, end - 15, end - 1, end):
        dataset = StreamDataset(ending)
        dataset.step = max(first, 0)
        assert list(dataset.sampler()) == list(range(max(first, 0), end))


def test_a_step_after_an_early_end_is_an_index_error(ending):
    dataset = StreamDataset(ending)
    with pytest.raises(IndexError, match="the run ended at step"):
        dataset[len(dataset) - 1]
