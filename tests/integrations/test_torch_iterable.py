"""The iterable dataset under torch's loader and torchdata's, which keeps the state of its workers."""

from __future__ import annotations

import pickle
from collections.abc import Iterable

import pytest
import torch
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

from recipe.integrations.torch import Item, StreamDataset, StreamIterable

pytestmark = pytest.mark.filterwarnings(
    "ignore:This DataLoader will create:UserWarning",
    "ignore:Length of IterableDataset:UserWarning",
    "ignore:'set_vital' is deprecated:UserWarning",  # torchdata asks torch
)


def load(dataset: StreamIterable, workers: int = 0, **options: object) -> DataLoader:
    context = {"multiprocessing_context": "fork"} if workers else {}
    return DataLoader(dataset, batch_size=None, num_workers=workers, **{**context, **options})


def stateful(dataset: StreamIterable, workers: int = 0, **options: object) -> StatefulDataLoader:
    context = {"multiprocessing_context": "fork"} if workers else {}
    return StatefulDataLoader(dataset, batch_size=None, num_workers=workers, **{**context, **options})


def told(items: Iterable[Item]) -> list[tuple[int, list[list[int]]]]:
    return [(int(item["step"]), item["input_ids"].tolist()) for item in items]


def whole(state: bytes) -> list[tuple[int, list[list[int]]]]:
    dataset = StreamDataset(state)
    return told(dataset[step] for step in range(len(dataset)))


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_F3_workers_take_steps_in_turn(state, workers):
    assert told(load(StreamIterable(state), workers)) == whole(state)


@pytest.mark.parametrize("options", [{"prefetch_factor": 5}, {"multiprocessing_context": "spawn"}])
def test_F3_the_way_of_loading_changes_nothing(state, options):
    assert told(load(StreamIterable(state), 2, **options)) == whole(state)


@pytest.mark.parametrize("workers", [0, 2])
def test_the_run_ends_where_a_pool_runs_dry(ending, workers):
    dataset = StreamDataset(ending)
    expected = [step for step, _ in dataset.follow(DataLoader(dataset, None, sampler=dataset.sampler()))]
    assert [step for step, _ in told(load(StreamIterable(ending), workers))] == expected


@pytest.mark.parametrize(("workers", "then"), [(0, 2), (2, 0), (2, 3)])
def test_F4_saved_by_the_trainer_any_number_of_workers_goes_on(state, workers, then):
    dataset = StreamIterable(state)
    for step, _ in dataset.follow(load(dataset, workers)):
        if step == 9:
            saved = pickle.dumps(dataset.state_dict())
            break
    resumed = StreamIterable(state)
    resumed.load_state_dict(pickle.loads(saved))
    assert told(load(resumed, then)) == whole(state)[10:]


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_F4_torchdatas_loader_goes_on_from_every_step(state, workers):
    """And once more from what it says after going on."""
    expected = whole(state)
    for cut in range(0, 24, 1 if workers == 0 else 7):
        loader = stateful(StreamIterable(state), workers)
        served = iter(loader)
        first = [next(served) for _ in range(cut)]
        saved = pickle.dumps(loader.state_dict())
        again = stateful(StreamIterable(state), workers)
        again.load_state_dict(pickle.loads(saved))
        then = iter(again)
        second = [next(then) for _ in range(min(3, 24 - cut))]
        last = stateful(StreamIterable(state), workers)
        last.load_state_dict(pickle.loads(pickle.dumps(again.state_dict())))
        assert told(first) + told(second) + told(last) == expected


def test_R05_torchdatas_state_is_the_trainers_however_far_workers_read_ahead(state):
    loader = stateful(StreamIterable(state), 2, prefetch_factor=8)
    served = iter(loader)
    for _ in range(5):
        next(served)
    again = stateful(StreamIterable(state), 2)
    again.load_state_dict(loader.state_dict())
    assert int(next(iter(again))["step"]) == 5


def test_workers_that_persist_are_not_started_again_on_what_they_do_not_know(state):
    loader = load(StreamIterable(state), 1, persistent_workers=True)
    next(iter(loader))
    with pytest.raises(ValueError, match="persistent_workers=False"):
        next(iter(loader))


def test_the_map_style_dataset_goes_on_under_workers_that_persist(state):
    dataset = StreamDataset(state)
    options = {"persistent_workers": True, "multiprocessing_context": "fork"}
    loader = DataLoader(dataset, None, sampler=dataset.sampler(), num_workers=2, **options)
    first = next(dataset.follow(loader))
    assert [first[0], *(step for step, _ in dataset.follow(loader))] == list(range(24))


@pytest.mark.parametrize("workers", [0, 4])
def test_Q01_Q04_a_change_of_mixture_comes_at_its_step_not_when_it_is_read_ahead(state, workers):
    """Pool a up to step 15, pool b from 16 on, whoever reads how far ahead."""
    loader = load(StreamIterable(state), workers, **({"prefetch_factor": 4} if workers else {}))
    pools = [sorted(set(item["pool"].tolist())) for item in loader]
    assert pools == [[0]] * 16 + [[1]] * 8


def test_items_come_from_workers_as_they_are_here(state):
    for theirs, ours in zip(load(StreamIterable(state), 2), load(StreamIterable(state)), strict=True):
        assert {k: (v.dtype, v.shape) for k, v in theirs.items()} == {
            k: (v.dtype, v.shape) for k, v in ours.items()
        }
        assert all(torch.equal(theirs[name], ours[name]) for name in ours)
