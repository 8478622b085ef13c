"""Where a trainer stands in the stream: what the map-style and the iterable dataset have in common.

No position is kept that workers could disagree about: an item is a function of its step. The only
thing that is counted is the step the *trainer* reached, in the trainer's process.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch.utils.data import get_worker_info

from recipe.errors import RecipeError
from recipe.integrations.torch.micro import MicroBatch, micro_batches
from recipe.integrations.torch.ranks import Ranks, check_ranks
from recipe.integrations.torch.saved import FORMAT, read_saved
from recipe.integrations.torch.transfer import Parcel
from recipe.mixing.curriculum import Curriculum
from recipe.mixing.dealing import check_dealing
from recipe.mixing.snapshot import Snapshot
from recipe.run.state import State, stream_from
from recipe.run.stats import Meter, Stats
from recipe.run.stream import RunStream

_WALKED_STEPS = 16
"""Steps looked ahead where a pool may run dry."""

Item = dict[str, torch.Tensor]
"""This rank's rows of a step, over the memory they were assembled in: ``input_ids, labels`` int64[rows,
context]; ``position_ids, segment_ids`` int32; ``attention_mask`` int8; ``pool`` int64[rows]; ``step`` and
``num_labels`` int64[], the labels of the whole step over all ranks."""


class TrainerPlace:
    """The rows of one data-parallel rank from a state on, and the step that its trainer reached."""

    def __init__(
        self,
        state: bytes,
        *,
        dp_rank: int = 0,
        dp_size: int = 1,
        micro_batch: int | None = None,
        pools_root: str | Path | None = None,
    ) -> None:
        """Open no pool yet; ``state`` is what ``run.state(step)`` gave, on this machine or another.

        Args:
            state: of any step; the trainer stands there.
            dp_rank: of this process among the data-parallel ones; see :func:`ranks_from`.
            dp_size: how many data-parallel ranks there are.
            micro_batch: sequences of a rank that go through the model at once: rows are then dealt as
                Megatron deals them.
            pools_root: where the pools are on this machine.

        Raises:
            RecipeError: a batch of the run, in whatever stage, cannot be dealt to so many ranks; or the
                recipe says ``parallel``, and the world has another number of data-parallel ranks.
            ValueError: there is no such rank.
        """
        if not 0 <= dp_rank < dp_size:
            raise ValueError(f"dp_rank {dp_rank} is outside 0..{dp_size - 1}")
        self._deal = (dp_rank, dp_size, micro_batch)
        self._pools_root = pools_root
        self._opened: tuple[int, RunStream] | None = None
        self._meter: Meter | None = None
        self._state = state
        self.step = self._checked(state).snapshot.step
        """First step that the trainer has not taken."""

    def __len__(self) -> int:
        """Steps of the whole run, those taken included: planned, fewer once it is known to end early.

        That a pool runs dry (``on_exhausted: stop`` or ``redistribute``) is known once a loader has
        come so far.
        """
        stream = self.stream()
        return stream.num_steps if stream.end_step is None else stream.end_step

    def item(self, step: int) -> Item:
        """This rank's rows of a step; nothing is copied.

        Raises:
            IndexError: the run has no such step, or ended before it.
        """
        stream = self.stream()
        try:
            batch = stream.batch(step, *self._deal)
        except ValueError as error:
            if 0 <= step < len(self):
                raise
            raise IndexError(str(error)) from error
        item = {name: torch.from_numpy(array) for name, array in batch.items()}
        # Of NumPy's numbers, which costs a third of torch.tensor.
        item["step"] = torch.from_numpy(np.array(step, np.int64))
        item["num_labels"] = torch.from_numpy(np.array(stream.num_labels(step), np.int64))
        return item if get_worker_info() is None else Parcel(item)

    def num_labels(self, step: int) -> int:
        """Labels of the whole step, over all ranks and micro-batches; no rank asks another."""
        return self.stream().num_labels(step)

    def steps_left(self) -> Iterator[int]:
        """The steps from where the trainer stands to where the run ends, also when a pool runs dry early.

        Where one may, this walks ahead over metadata, so that no worker is asked for a step that
        is not there.
        """
        stream, step = self.stream(), self.step
        if all(stream.recipe.exhaustion(name) == "repeat" for name in stream.pools):
            yield from range(step, stream.num_steps)
            return
        at = stream.snapshot(step)
        while not at.ended and at.step < stream.num_steps:
            first, at = at.step, _ahead(stream, at)
            if at.step == first and not at.ended:  # a step that fails: its worker says why
                yield first
                return
            yield from range(first, at.step)

    def follow(self, loader: Iterable[Item]) -> Iterator[tuple[int, Item]]:
        """The loader's batches with their steps; a batch counts as taken once it is handed out.

        So what ``state_dict`` says inside the loop is the step after the batch in hand, however far
        the workers have read ahead.
        """
        for item in self._metered().follow(loader, lambda item: item):
            step = int(item["step"])
            self.step = step + 1
            yield step, item

    def stats(self) -> Stats:
        """What :meth:`follow` handed to this process's trainer, and how long that waited for the loader."""
        return self._metered().stats()

    def _metered(self) -> Meter:
        if self._meter is None:
            widths = [pool.token_dtype.itemsize for pool in self.stream().ground.pools]
            self._meter = Meter(np.array(widths, np.int64))
        return self._meter

    def micro_batches(self, item: Item) -> Iterator[MicroBatch]:
        """A step's micro-batches of this rank, in the order in which Megatron takes them.

        Raises:
            ValueError: no ``micro_batch`` was given.
        """
        if self._deal[2] is None:
            raise ValueError(
                "micro_batches needs micro_batch=, the sequences that go through the model at once"
            )
        return micro_batches(item, self._deal[2])

    def state_dict(self) -> dict[str, Any]:
        """Where the trainer stands: goes into its checkpoint, and is enough to go on from."""
        state = replace(State.from_bytes(self._state), snapshot=self.stream().snapshot(self.step))
        return {"format": FORMAT, "step": self.step, "state": state.to_bytes()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Stand where ``state_dict`` was taken; the number of ranks and workers may differ.

        Raises:
            ValueError: it is no state; the place stays as it was.
            RecipeError: the state is damaged, or as for a new place.
        """
        saved = read_saved(state)
        self._checked(saved.state)
        self._state = saved.state
        self._opened = None
        self.step = saved.step

    def stream(self) -> RunStream:
        """The stream of this process: a forked or spawned worker opens its own."""
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = (os.getpid(), stream_from(self._state, pools_root=self._pools_root))
        return self._opened[1]

    def _checked(self, state: bytes) -> State:
        """The state, if every batch of its run can be dealt to these ranks, and they can be of this world."""
        place = State.from_bytes(state)
        dp_rank, dp_size, micro_batch = self._deal
        parallel = place.recipe.parallel
        if parallel.num_ranks > 1 and dist.is_available() and dist.is_initialized():
            sizes = {"tp": parallel.tp, "pp": parallel.pp, "cp": parallel.cp}
            check_ranks(Ranks(dp_rank, dp_size), world_size=dist.get_world_size(), **sizes)
        batches = {stretch.batch for stretch in Curriculum.from_recipe(place.recipe).stretches}
        check_dealing(tuple(sorted(batches)), dp_size, micro_batch)
        return place

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the open stream: what travels to a worker."""
        return self.__dict__ | {"_opened": None}


def _ahead(stream: RunStream, at: Snapshot) -> Snapshot:
    """The snapshot some steps on, or where the run ends; ``at`` itself where the next step fails."""
    for steps in (_WALKED_STEPS, 1):
        try:
            return deque(stream.walk(at, min(at.step + steps, stream.num_steps)), maxlen=1).pop()
        except RecipeError:
            continue
    return at
