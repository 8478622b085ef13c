"""Items for torch, in process and from workers, beside the loader that people write themselves.

In process against the NumPy roofline; through a DataLoader against windows of mapped files under the same
DataLoader: ids and labels in one tensor, drawn beforehand, without a mixture, a sampler's draws, packing or
isolation, where an item of ours holds five arrays.

A loader has processes of its own as workers, so that with workers the ratio by the clock counts.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from recipe.integrations.torch import StreamDataset
from recipe.run.start import start_run
from tests.benchmarks.batches import TOKENS
from tests.benchmarks.figures import Figure
from tests.benchmarks.material import Material, Roofline, material
from tests.benchmarks.paired import Paired, compare

CONTEXT, BATCH = 2048, 8


class Windows(Dataset[torch.Tensor]):
    """Windows of mapped files, cast one by one: ids and labels are views of it."""

    def __init__(self, of: Material) -> None:
        """Map what the roofline maps, at the same windows."""
        self._plan = Roofline(of.pools, CONTEXT, BATCH)._plan

    def __len__(self) -> int:
        """As many as anybody asks for."""
        return 1 << 40

    def __getitem__(self, index: int) -> torch.Tensor:
        """One window and the token after it."""
        part, start = self._plan[index % len(self._plan)]
        return torch.from_numpy(part[start : start + CONTEXT + 1].astype(np.int64))


def by_hand(of: Material, workers: int) -> Iterator[Any]:
    """Batches of windows, collated by torch."""
    sampler = range(1 << 40)
    yield from DataLoader(Windows(of), batch_size=BATCH, sampler=sampler, num_workers=workers)


def ours(dataset: StreamDataset, workers: int) -> Iterator[Any]:
    """Items of the stream, as a trainer takes them."""
    loader = DataLoader(dataset, batch_size=None, sampler=dataset.sampler(), num_workers=workers)
    for _, item in dataset.follow(loader):
        yield item


def positions(batches: Iterator[Any]) -> Callable[[], int]:
    """One batch a call, held until the next is there."""
    held = [next(batches)]

    def read() -> int:
        held[0] = next(batches)
        return BATCH * CONTEXT

    return read


def measure(scratch: Path) -> Iterator[Figure]:
    """In process, and with 0 and 2 workers."""
    of = material(scratch)
    warnings.filterwarnings("ignore", message="This DataLoader will create")
    torch.set_num_threads(1)
    recipe = of.recipe(context=CONTEXT, batch=BATCH, tokens=TOKENS)
    with start_run(recipe, scratch / f"run-{time.time_ns()}") as run:
        state = run.state()
    dataset = StreamDataset(state)
    items = (dataset[step] for step in range(len(dataset)))
    pair = compare(positions(items), Roofline(of.pools, CONTEXT, BATCH))
    yield _figure("in process", pair, "cpu", ">= 0.75", "tokens a cpu second, NumPy roofline")
    for workers in (0, 2):
        theirs, mine = positions(by_hand(of, workers)), positions(ours(StreamDataset(state), workers))
        clock = "wall" if workers else "cpu"
        pair = _slowly(compare(mine, theirs, seconds=0.1 if workers else 0.4))
        what = f"tokens {'by the clock' if workers else 'a cpu second'}, a loader written by hand"
        yield _figure(f"loader, {workers} workers", pair, clock, ">= 1", what)


def _slowly(pair: Paired) -> Paired:
    """What was prefetched before a slice began is the first slice's only."""
    return replace(pair, ours=pair.ours[1:], base=pair.base[1:])


def _figure(name: str, pair: Paired, clock: str, goal: str, against: str) -> Figure:
    found = pair.ratios(clock)
    spread = (min(found), max(found))
    return Figure(
        name=f"torch, {name}",
        value=pair.ratio(clock),
        unit="x",
        goal=goal,
        spread=spread,
        against=against,
        beside=pair.rates(),
    )
