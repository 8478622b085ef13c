"""The stream as a map-style torch dataset: item ``step`` is this rank's rows of that step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch.utils.data import Dataset, Sampler

from recipe.integrations.torch.place import Item, TrainerPlace


class StreamDataset(TrainerPlace, Dataset[Item]):
    """Rows of one data-parallel rank, a step an item; safe to hand to any number of loader workers.

    Use it with ``batch_size=None`` (an item is a batch already) and its own sampler::

        dataset = StreamDataset(run.state(), dp_rank=rank, dp_size=world)
        loader = DataLoader(dataset, batch_size=None, sampler=dataset.sampler(), num_workers=2)
        for step, batch in dataset.follow(loader):
            train(batch)
            save(model, dataset.state_dict())
    """

    def __getitem__(self, step: int) -> Item:
        """This rank's rows of a step, see :data:`recipe.integrations.torch.place.Item`.

        Raises:
            IndexError: the run has no such step, or ended before it.
        """
        return self.item(step)

    def __getitems__(self, steps: Sequence[int]) -> list[Item]:
        """Several steps at once; only steps of one stage can be stacked."""
        return [self.item(step) for step in steps]

    def sampler(self) -> Sampler[int]:
        """The steps still to be taken, in order, from where the trainer stands when the loader starts."""
        return _StepsLeft(self)


class _StepsLeft(Sampler[int]):
    def __init__(self, place: TrainerPlace) -> None:
        self._place = place

    def __iter__(self) -> Iterator[int]:
        return self._place.steps_left()

    def __len__(self) -> int:
        return len(self._place) - self._place.step
