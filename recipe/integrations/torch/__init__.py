"""The stream for PyTorch: datasets, ranks, micro-batches and attention masks."""

from recipe.integrations.torch.dataset import StreamDataset
from recipe.integrations.torch.iterable import StreamIterable
from recipe.integrations.torch.losses import PoolLosses, losses_by, pool_losses, row_weights, weighted_loss
from recipe.integrations.torch.masks import Varlen, attention_bias, block_mask, varlen
from recipe.integrations.torch.micro import MicroBatch
from recipe.integrations.torch.place import Item, TrainerPlace
from recipe.integrations.torch.ranks import Ranks, ranks_from

__all__ = [
    "Item",
    "MicroBatch",
    "PoolLosses",
    "Ranks",
    "StreamDataset",
    "StreamIterable",
    "TrainerPlace",
    "Varlen",
    "attention_bias",
    "block_mask",
    "losses_by",
    "pool_losses",
    "ranks_from",
    "row_weights",
    "varlen",
    "weighted_loss",
]
