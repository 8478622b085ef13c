"""Micro-batches of a step: what goes through the model at once when gradients are accumulated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import torch


class MicroBatch(NamedTuple):
    """Some rows of a rank's step, over the same memory."""

    number: int
    """Which of the step's micro-batches this is, from 0."""
    of: int
    """How many the step has: the optimizer steps after the last one. A ramp changes it between steps."""
    batch: dict[str, torch.Tensor]
    """As the step's item, of fewer rows; ``num_labels`` is still the whole step's, over all ranks, so that
    the sum of token losses over it, added up over micro-batches and ranks, is the step's mean loss."""


def micro_batches(item: Mapping[str, torch.Tensor], micro_batch: int) -> Iterator[MicroBatch]:
    """Cut a step's rows, which were dealt with the same ``micro_batch``, in order.

    Raises:
        ValueError: the rows are no whole number of micro-batches.
    """
    rows = len(item["pool"])
    if micro_batch < 1 or rows % micro_batch:
        raise ValueError(f"{rows} rows are no whole number of micro-batches of {micro_batch}")
    for number in range(rows // micro_batch):
        here = slice(number * micro_batch, (number + 1) * micro_batch)
        batch = {name: array[here] if array.dim() else array for name, array in item.items()}
        yield MicroBatch(number, rows // micro_batch, batch)
