"""A loader for trainers in the manner of torchtitan: stateful, saved with everything else by DCP.

Such a trainer takes pairs (inputs, labels) from a loader that has ``state_dict`` and ``load_state_dict``, and
puts it beside model and optimizer into ``torch.distributed.checkpoint``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.distributed.checkpoint.stateful import Stateful
from torch.utils.data import DataLoader

from recipe.integrations.torch.dataset import StreamDataset

Pair = tuple[dict[str, torch.Tensor], torch.Tensor]


class StreamLoader(Stateful):
    """Pairs of a rank, step after step; a pair counts as taken once it is handed out.

    The state is the run's, not a rank's: every rank saves the same bytes, and any number of ranks loads them.

    Source:
        torchtitan, ``components/dataloader.py`` (``BaseDataLoader``) and ``train.py`` (``batch_generator``).
    """

    def __init__(self, dataset: StreamDataset, **options: Any) -> None:
        """Over a dataset of this rank; ``options`` are ``DataLoader``'s, such as ``num_workers``."""
        self.dataset = dataset
        self._options = options

    def __iter__(self) -> Iterator[Pair]:
        """``({"input", "positions", "segments", …}, labels)`` from where the trainer stands.

        ``input`` and labels int64[rows, context]; ``positions``, ``segments`` int32; ``num_labels`` int64[],
        of the step over all ranks.
        """
        loader = DataLoader(self.dataset, batch_size=None, sampler=self.dataset.sampler(), **self._options)
        for _, item in self.dataset.follow(loader):
            labels = item.pop("labels")
            names = {"input_ids": "input", "position_ids": "positions", "segment_ids": "segments"}
            yield {names.get(name, name): array for name, array in item.items()}, labels

    def state_dict(self) -> dict[str, Any]:
        """Where the trainer stands."""
        return self.dataset.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Stand there; an empty state is a checkpoint that was written without this loader."""
        if not state_dict:
            raise ValueError("a checkpoint without the stream's state: open the run at its step instead")
        self.dataset.load_state_dict(state_dict)
