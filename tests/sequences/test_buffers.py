"""Memory that is used again is never memory that somebody still reads."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recipe.mixing.stream import Stream
from tests.mixing.build import stage, world, write

HOLDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "the batch": lambda b: b,
    "a copy of the mapping": lambda b: dict(b),
    "one array": lambda b: b["labels"],
    "a slice": lambda b: b["input_ids"][1:, 2:],
    "a row": lambda b: b["segment_ids"][0],
    "a view of a view": lambda b: b["position_ids"].reshape(-1)[::2].view(np.uint32),
    "a transposed array": lambda b: b["attention_mask"].T,
    "a memoryview": lambda b: memoryview(b["input_ids"]),
    "a shallow copy": lambda b: copy.copy(b),
}


def content(held: Any) -> list[Any]:
    if isinstance(held, dict):
        return [np.array(array).tolist() for array in held.values()]
    return [np.array(held).tolist()]


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Stream:
    root = tmp_path_factory.mktemp("buffers")
    write(root / "a", [8] * 400, eos=True)
    return world(root, {"a": {}}, [stage(9, {"a": 1}, batch=4, steps=90)]).stream()


@pytest.mark.parametrize("name", HOLDS)
def test_what_is_held_is_never_overwritten(stream: Stream, name: str):
    held, right = [], []
    for _, batch in stream.batches(stop=12, read_ahead=0):
        held.append(HOLDS[name](batch))
        right.append(content(held[-1]))
        del batch
    assert [content(one) for one in held] == right


def test_an_iterator_over_rows_holds_its_batch(stream: Stream):
    batches = stream.batches(stop=14, read_ahead=0)
    _, batch = next(batches)
    right = batch["labels"].tolist()
    rows = iter(batch["labels"])
    del batch
    for _ in batches:
        pass
    assert [row.tolist() for row in rows] == right


@pytest.mark.parametrize("whole", [True, False])
def test_a_tensor_made_of_a_batch_is_never_overwritten(stream: Stream, whole: bool):
    torch = pytest.importorskip("torch")
    held, right = [], []
    for _, batch in stream.batches(stop=12):
        tensor = torch.from_numpy(batch["input_ids"] if whole else batch["input_ids"][1:3])
        held.append(tensor[1:] if whole else tensor)
        right.append(held[-1].tolist())
        del batch, tensor
    assert [tensor.tolist() for tensor in held] == right


def test_memory_is_used_again_once_nobody_holds_it(stream: Stream):
    places = set()
    for _, batch in stream.batches(stop=60, read_ahead=0):
        places.add(batch["input_ids"].ctypes.data)
        del batch
    assert len(places) < 12


def test_a_pickled_batch_is_a_batch(stream: Stream):
    batch = stream.batch(3)
    assert content(pickle.loads(pickle.dumps(batch))) == content(batch)


def test_threads_that_share_a_stream_never_share_memory(stream: Stream):
    right = {step: stream.batch(step)["input_ids"].tolist() for step in range(30)}
    wrong: list[int] = []

    def read(first: int) -> None:
        for step in [*range(first, 30), *range(first)]:
            batch = stream.batch(step)
            if batch["input_ids"].tolist() != right[step]:
                wrong.append(step)

    threads = [threading.Thread(target=read, args=(first,)) for first in (0, 7, 15, 22)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_two_iterators_of_one_stream_do_not_disturb_each_other(stream: Stream):
    pairs = zip(stream.batches(stop=20), stream.batches(stop=20), strict=True)
    assert all(content(a) == content(b) for (_, a), (_, b) in pairs)


def test_a_batch_written_into_by_its_holder_spoils_no_other(tmp_path: Path):
    write(tmp_path / "a", [4] * 40)
    made = world(tmp_path, {"a": {}}, [stage(4, {"a": 1}, batch=2, steps=16)])
    right = [batch["input_ids"].tolist() for _, batch in made.stream().batches(read_ahead=0)]
    got = []
    for _, batch in made.stream().batches(read_ahead=0):
        got.append(batch["input_ids"].tolist())
        for array in batch.values():
            array[:] = 99
    assert got == right
