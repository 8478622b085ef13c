"""The stream for JAX: a data source for Grain, whose item ``i`` is this process's rows of step ``i``.

The source keeps no position; Grain's iterators do, and their state is as exact as the stream. Nothing
here needs Grain or JAX to be installed.
"""

from __future__ import annotations

import operator
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from recipe.config import fingerprint
from recipe.mixing.curriculum import Curriculum
from recipe.mixing.dealing import check_dealing
from recipe.mixing.reader import LOSS_WEIGHT
from recipe.run.state import State, stream_from
from recipe.run.stream import RunStream, steps_there

Item = dict[str, NDArray[Any]]
"""``input_ids, labels, position_ids, segment_ids, attention_mask`` int32[rows, context] (no first axis for
an item of one row), ``pool`` int32[rows], ``loss_weight`` float32[rows] where a stage has an objective;
``step`` and ``num_labels`` int32[], the labels of the whole step over all processes. JAX computes with 32
bits unless told otherwise, so nothing is wider."""


class StreamSource:
    """Rows of one data-parallel process as a ``grain.sources.RandomAccessDataSource``.

    A training loop from where the state stands::

        source = StreamSource(run.state(), dp_rank=jax.process_index(), dp_size=jax.process_count())
        steps = grain.MapDataset.source(source)[source.step:]
        steps = iter(steps.to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=2)))
        for item in steps:
            batch = jax.tree.map(lambda rows: jax.make_array_from_process_local_data(sharding, rows), item)
            train(batch)
            save(model, steps.get_state(), source.state(int(item["step"]) + 1))

    ``steps.get_state()`` goes on with the same source; ``source.state(step)`` also in another number of
    processes, or without Grain. Under tensor or pipeline parallelism the rank is that of the *data* axis of
    the mesh. A stage may change the context, and a ramp the rows: a function under ``jax.jit`` is compiled
    once for every shape, of which a curriculum has few. Grain's workers (``mp_prefetch``) want absl's
    flags parsed: start the program with ``absl.app.run``, or call ``absl.flags.FLAGS.mark_as_parsed()``.
    """

    def __init__(  # noqa: PLR0913 - the trainer's own words
        self,
        state: bytes,
        *,
        dp_rank: int = 0,
        dp_size: int = 1,
        micro_batch: int | None = None,
        batch: bool = True,
        pools_root: str | Path | None = None,
    ) -> None:
        """Open no pool yet; ``state`` is what ``run.state(step)`` gave, on this machine or another.

        Args:
            state: of any step; see :attr:`step`.
            dp_rank: of this process along the data axis.
            dp_size: how many data-parallel processes there are.
            micro_batch: rows are dealt in micro-batches of so many, as Megatron deals them.
            batch: an item is a step; else an item is one row, and a step is as many items as it has rows.
            pools_root: where the pools are on this machine.

        Raises:
            RecipeError: a batch of the run, in whatever stage, cannot be dealt to so many processes.
            ValueError: there is no such rank.
        """
        if not 0 <= dp_rank < dp_size:
            raise ValueError(f"dp_rank {dp_rank} is outside 0..{dp_size - 1}")
        place = State.from_bytes(state)
        batches = {stretch.batch for stretch in Curriculum.from_recipe(place.recipe).stretches}
        check_dealing(tuple(sorted(batches)), dp_size, micro_batch)
        self.step = place.snapshot.step
        """First step that was not consumed when the state was taken."""
        self._deal = (dp_rank, dp_size, micro_batch)
        self._by_step = batch
        self._state = state
        self._pools_root = pools_root
        self._name = f"{place.run} {fingerprint(place.recipe)}"
        self._opened: tuple[int, RunStream] | None = None
        self._num_steps: int | None = None

    def __len__(self) -> int:
        """Items of the whole run, from step 0 on.

        Where a pool may run dry and end the run early, the first call walks there over metadata.
        """
        return self.first_item(self._end)

    def first_item(self, step: int) -> int:
        """The item at which a step begins: the step itself, unless items are rows."""
        sequences = self.stream().curriculum.sequences_at(step)
        return step if self._by_step else sequences // self._deal[1]

    def __getitem__(self, item: SupportsIndex) -> Item:
        """A step's rows of this process, or one row; a function of its number alone.

        Raises:
            IndexError: there is no such item.
            RecipeError: it is of a turn of the run before the state's, which only the run folder has.
        """
        index = operator.index(item)
        if not 0 <= index < len(self):
            raise IndexError(f"item {index} is outside 0..{len(self) - 1}")
        stream, step = self.stream(), index
        if self._by_step:
            rows = stream.batch(step, *self._deal)
        else:
            step = stream.curriculum.step_of_sequence(index * self._deal[1])
            place = index - self.first_item(step)
            rows = {name: array[place] for name, array in stream.batch(step, *self._deal).items()}
        arrays: Item = {name: np.asarray(array, dtype=_dtype(name)) for name, array in rows.items()}
        arrays["step"] = np.asarray(step, dtype=np.int32)
        arrays["num_labels"] = np.asarray(stream.num_labels(step), dtype=np.int32)
        return arrays

    def state(self, step: int) -> bytes:
        """What a checkpoint holds after ``step`` steps: a source made of it stands there."""
        at = self.stream().snapshot(step)
        return replace(State.from_bytes(self._state), snapshot=at).to_bytes()

    def stream(self) -> RunStream:
        """The stream of this process; a worker opens its own."""
        if self._opened is None or self._opened[0] != os.getpid():
            self._opened = (os.getpid(), stream_from(self._state, pools_root=self._pools_root))
        return self._opened[1]

    @property
    def _end(self) -> int:
        if self._num_steps is None:
            self._num_steps = steps_there(self.stream(), self.step)
        return self._num_steps

    def __repr__(self) -> str:
        """Grain compares it when an iterator's state is put back: the same for every state of a course."""
        rank, size, micro_batch = self._deal
        items = "steps" if self._by_step else "rows"
        return f"StreamSource({self._name}, {rank}/{size}, micro_batch={micro_batch}, {items})"

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the open stream: what travels to a worker."""
        return self.__dict__ | {"_opened": None}


def _dtype(name: str) -> type[Any]:
    """Numbers as JAX has them: of 32 bits, whole but for weights."""
    return np.float32 if name == LOSS_WEIGHT else np.int32
