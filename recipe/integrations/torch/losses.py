"""Losses by pool, from one vectorised call a batch: on the device, without waiting for it.

What is kept are sums and counts, so that micro-batches, steps and ranks add up as one large batch would.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import torch
import torch.distributed as dist

from recipe.config import Recipe
from recipe.mixing.reader import LOSS_WEIGHT

IGNORED = -100


class PoolLosses(NamedTuple):
    """Summed losses and numbers of labels by pool; two of them add up with :meth:`plus`."""

    sums: torch.Tensor
    """float64[pools], in the recipe's order."""
    labels: torch.Tensor
    """int64[pools]."""

    def plus(self, other: PoolLosses) -> PoolLosses:
        """Of both together."""
        return PoolLosses(self.sums + other.sums, self.labels + other.labels)

    def over_ranks(self, group: dist.ProcessGroup | None = None) -> PoolLosses:
        """Of all ranks of a data-parallel group: one all-reduce. Replicas of rows must not be in it twice."""
        both = torch.stack([self.sums, self.labels.to(torch.float64)])
        dist.all_reduce(both, group=group)
        return PoolLosses(both[0], both[1].round().to(torch.int64))

    def means(self, recipe: Recipe) -> dict[str, float]:
        """Mean loss of every pool, and of every pool group, that had a label; waits for the device."""
        sums, labels = self.sums.tolist(), self.labels.tolist()
        pools = {name: (sums[k], labels[k]) for k, name in enumerate(recipe.pools)}
        both = {name: pair for name, pair in pools.items() if pair[1]}
        for name, group in recipe.groups.items():
            members = [pools[pool] for pool in group.pools]
            both[name] = (sum(pair[0] for pair in members), sum(pair[1] for pair in members))
        return {name: total / count for name, (total, count) in both.items() if count}

    def weighted_mean(self, weights: Sequence[Fraction | float]) -> float:
        """Mean loss of the labels, each with its pool's weight: ``sum(w * loss) / sum(w)``.

        Of labels of one leg it is the mean of the objective's mixture, for any number of steps and ranks
        that were added up; waits for the device.

        Args:
            weights: by pool in the recipe's order, as ``stream.loss_weights(step).values()``.

        Raises:
            ValueError: no label has a weight above 0.
        """
        counted = zip(weights, self.sums.tolist(), self.labels.tolist(), strict=True)
        both = [(float(weight) * total, float(weight) * count) for weight, total, count in counted]
        if not (whole := math.fsum(count for _, count in both)):
            raise ValueError("no label has a weight above 0: there is no mean")
        return math.fsum(total for total, _ in both) / whole

    def total(self) -> tuple[float, int]:
        """Summed loss and number of labels of all pools."""
        return float(self.sums.sum()), int(self.labels.sum())


def row_weights(batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """What the labels of each row count in the loss, float32[rows]: ones where the recipe has no objective.

    >>> row_weights({"pool": torch.tensor([1, 0])}).tolist()
    [1.0, 1.0]
    """
    if LOSS_WEIGHT in batch:
        return batch[LOSS_WEIGHT]
    return torch.ones(batch["pool"].shape, dtype=torch.float32, device=batch["pool"].device)


def weighted_loss(
    token_losses: torch.Tensor,
    batch: Mapping[str, torch.Tensor],
    num_labels: int | torch.Tensor | None = None,
) -> torch.Tensor:
    """The part of a step's loss that some of its rows are: ``sum(weight * loss) / num_labels``.

    Added up over the micro-batches and ranks of a step it is the step's loss; nobody is asked for a sum.
    (Where gradients are *averaged* over ranks, multiply it by the number of ranks.) A label's weight is the
    same in every batch of a leg, whatever else is in the batch, and by exact counts the weights of a leg's
    labels come to ``num_labels`` of all its steps, within the schedule's drift: the gradient is in
    expectation that of a run that samples the objective. Labels of weight 0 are in ``num_labels`` too.

    Args:
        token_losses: float[rows, context] with ``reduction="none"``; what stands where there is no label is
            not looked at.
        batch: rows of a step: ``labels``, ``pool``, ``num_labels``, and ``loss_weight`` where there is one.
        num_labels: of the whole step over all ranks and micro-batches; default: the batch's.

    >>> batch = {"labels": torch.tensor([[5, -100], [7, 8]]), "pool": torch.tensor([1, 0])}
    >>> batch |= {"loss_weight": torch.tensor([0.5, 1.25]), "num_labels": torch.tensor(3)}
    >>> round(float(weighted_loss(torch.tensor([[1.0, 9.0], [2.0, 4.0]]), batch)), 4)
    2.6667
    """
    counted = torch.where(batch["labels"] != IGNORED, token_losses, 0)
    each = counted.sum(dim=1, dtype=torch.float32) * row_weights(batch)
    whole = batch["num_labels"] if num_labels is None else num_labels
    return each.sum() / (max(whole, 1) if isinstance(whole, int) else whole.clamp(min=1))


def pool_losses(token_losses: torch.Tensor, batch: Mapping[str, torch.Tensor], num_pools: int) -> PoolLosses:
    """Losses of a batch by the pool of each row.

    Args:
        token_losses: float[rows, context], of the logits at each position (``reduction="none"``); what stands
            where there is no label is not looked at.
        batch: with ``labels`` int[rows, context] (-100: none) and ``pool`` int[rows].
        num_pools: of the recipe.

    >>> batch = {"labels": torch.tensor([[5, -100], [7, 8]]), "pool": torch.tensor([1, 0])}
    >>> found = pool_losses(torch.tensor([[1.0, 9.0], [2.0, 4.0]]), batch, 3)
    >>> found.sums.tolist(), found.labels.tolist()
    ([6.0, 1.0, 0.0], [2, 1, 0])
    """
    return losses_by(token_losses, batch["labels"], batch["pool"][:, None], num_pools)


def losses_by(
    token_losses: torch.Tensor, labels: torch.Tensor, keys: torch.Tensor, num_keys: int
) -> PoolLosses:
    """Losses by any key of a position: its pool, its document's language, its place in the row.

    Args:
        token_losses: float[rows, context].
        labels: int[rows, context]; -100 is none.
        keys: int, of a shape that broadcasts to [rows, context]; below zero is left out.
        num_keys: how many there are.

    Returns:
        By key, in place of pools.
    """
    keys = keys.expand(labels.shape)
    counted = (labels != IGNORED) & (keys >= 0)
    places = torch.where(counted, keys, num_keys).reshape(-1).to(torch.int64)
    weights = torch.where(counted, token_losses.detach(), 0).reshape(-1).to(torch.float64)
    sums = torch.zeros(num_keys + 1, dtype=torch.float64, device=labels.device).index_add_(0, places, weights)
    ones = torch.zeros(num_keys + 1, dtype=torch.int64, device=labels.device)
    ones.index_add_(0, places, torch.ones_like(places))
    return PoolLosses(sums[:-1], ones[:-1])
