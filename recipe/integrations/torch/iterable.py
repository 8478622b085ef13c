"""The stream as an iterable torch dataset, with the state that torchdata's loader keeps for its workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from torch.utils.data import IterableDataset, get_worker_info

from recipe.integrations.torch.place import Item, TrainerPlace
from recipe.integrations.torch.saved import FORMAT
from recipe.run.state import State


class StreamIterable(TrainerPlace, IterableDataset[Item]):
    """Rows of one data-parallel rank, step after step, from where the trainer stands.

    Worker w of n serves every n-th step, from the w-th on: the loader takes from its workers in turn, so any
    number of them gives the same stream. Use ``batch_size=None``. Two ways to save:

    - ``follow(loader)`` with ``dataset.state_dict()``, under any loader: the number of workers and ranks
      may differ when it is loaded;
    - torchdata's ``StatefulDataLoader`` with its own ``state_dict()``: it must be loaded with as many
      workers (the loader asks for that), and the number of ranks may not change.

    Either is the step that the trainer took last, however far the workers have read ahead.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        """As :class:`TrainerPlace`."""
        super().__init__(*args, **options)
        self._next: int | None = None
        """In a worker: the step that it serves next."""
        self._begun = False

    def __iter__(self) -> Iterator[Item]:
        """This worker's steps, from where the trainer, or the worker before it, stands.

        A worker that persists and is started again does not know what the trainer took: its first item is a
        ValueError.
        """
        info = get_worker_info()
        if info is None:
            return self._all()
        again, self._begun = self._begun, True
        if again:
            return _refused()
        if self._next is None:
            self._next = self.step + info.id
        return self._every(info.num_workers)

    def _all(self) -> Iterator[Item]:
        for step in self.steps_left():
            item = self.item(step)
            self.step = step + 1
            yield item

    def _every(self, workers: int) -> Iterator[Item]:
        """The steps that this worker serves, as far as the run goes."""
        assert self._next is not None
        for step in islice(self.steps_left(), self._next - self.step, None, workers):
            item = self.item(step)
            self._next = step + workers
            yield item

    def state_dict(self) -> dict[str, Any]:
        """Where the trainer stands; in a worker, where that worker does."""
        if get_worker_info() is None:
            return super().state_dict()
        step = self.step if self._next is None else self._next
        nearest = replace(State.from_bytes(self._state), snapshot=self.stream().known(step))
        return {"format": FORMAT, "step": step, "state": nearest.to_bytes(), "worker": True}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Stand where ``state_dict`` was taken.

        Raises:
            ValueError: it is no state; the place stays as it was.
        """
        super().load_state_dict(state)
        self._next = self.step if state.get("worker") else None


def _refused() -> Iterator[Item]:
    """Refuse at the first item: a worker that fails before it dies without a word."""
    raise ValueError(
        "a loader with persistent workers is started again, and they do not know which step the trainer took "
        "last: use persistent_workers=False, or StreamDataset with its sampler"
    )
    yield
