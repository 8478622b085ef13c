"""Losses by pool, from one vectorised call a batch: on the device, without waiting for it.

What is kept are sums and counts, so that micro-batches, steps and ranks add up as one large batch would.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import torch
import torch.distributed as dist

from recipe.config import Recipe

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

    def total(self) -> tuple[float, int]:
        """Summed loss and number of labels of all pools."""
        return float(self.sums.sum()), int(self.labels.sum())


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
