"""How items come from workers: as one block, cut into the tensors they were."""

from __future__ import annotations

import copy
import pickle
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
from torch.utils.data import DataLoader

from recipe.integrations.torch import StreamDataset
from recipe.integrations.torch.transfer import Parcel

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")


@pytest.mark.parametrize("context", ["fork", "spawn"])
@pytest.mark.parametrize("strategy", ["file_descriptor", "file_system"])
def test_an_item_from_a_worker_is_one_block_of_memory_and_the_same_tensors(state, context, strategy):
    before = torch.multiprocessing.get_sharing_strategy()
    torch.multiprocessing.set_sharing_strategy(strategy)
    dataset = StreamDataset(state)
    options = {"num_workers": 2, "multiprocessing_context": context}
    try:
        for step, item in dataset.follow(DataLoader(dataset, None, sampler=dataset.sampler(), **options)):
            assert type(item) is dict
            assert len({value.untyped_storage().data_ptr() for value in item.values()}) == 1
            for name, value in dataset[step].items():
                assert item[name].dtype == value.dtype and torch.equal(item[name], value)
    finally:
        torch.multiprocessing.set_sharing_strategy(before)


def test_items_that_are_kept_stay_as_they_came(state):
    dataset = StreamDataset(state)
    options = {"num_workers": 2, "multiprocessing_context": "fork", "prefetch_factor": 1}
    kept = list(DataLoader(dataset, None, sampler=dataset.sampler(), **options))
    assert all(torch.equal(kept[step]["labels"], dataset[step]["labels"]) for step in range(24))


def test_a_parcel_is_a_dict_to_everybody_else():
    item = Parcel(a=torch.arange(3), none=torch.empty(0, 2), turned=torch.arange(6).view(2, 3).T)
    assert list(copy.copy(item)) == list(item)
    assert torch.equal(pickle.loads(pickle.dumps(item))["a"], item["a"])
    sent = pickle.loads(bytes(ForkingPickler.dumps(item)))
    assert all(torch.equal(sent[name], item[name]) for name in item)
    assert sent["turned"].is_contiguous()


def test_memory_goes_back_to_the_worker_once_nothing_holds_it(state):
    dataset = StreamDataset(state)
    options = {"num_workers": 2, "multiprocessing_context": "fork", "prefetch_factor": 1}
    loader = DataLoader(dataset, None, sampler=dataset.sampler(), **options)
    places = [item["labels"].untyped_storage().data_ptr() for item in loader]
    assert len(places) == 24
    assert len(set(places)) <= 12  # three a worker and stage: on its way, in hand, not yet given back


def test_memory_is_not_filled_anew_while_a_view_or_an_array_over_it_is_held(state):
    dataset = StreamDataset(state)
    options = {"num_workers": 2, "multiprocessing_context": "fork", "prefetch_factor": 1}
    loader = DataLoader(dataset, None, sampler=dataset.sampler(), **options)
    views = [(item["labels"][1, 2:9], item["input_ids"][0].numpy()) for item in loader]
    for step, (labels, ids) in enumerate(views):
        assert labels.tolist() == dataset[step]["labels"][1, 2:9].tolist()
        assert ids.tolist() == dataset[step]["input_ids"][0].tolist()


def travelled(**tensors):
    return pickle.loads(bytes(ForkingPickler.dumps(Parcel(tensors))))


def test_memory_is_that_of_the_largest_item_so_far():
    for rows in (2, 500, 3):
        item = travelled(a=torch.arange(rows), b=torch.ones(rows, 3, dtype=torch.bool))
        assert item["a"].tolist() == list(range(rows))
        assert item["b"].all() and item["b"].shape == (rows, 3)


def test_memory_is_free_only_once_the_item_in_it_came():
    first, second = (bytes(ForkingPickler.dumps(Parcel(a=torch.tensor([k])))) for k in range(2))
    held = pickle.loads(second)
    third = travelled(a=torch.tensor([2]))
    assert [int(item["a"]) for item in (pickle.loads(first), held, third)] == [0, 1, 2]


def test_what_is_sent_on_to_a_further_process_is_a_copy():
    assert not travelled(a=torch.arange(3))["a"].is_shared()
