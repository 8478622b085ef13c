"""Who may attend to whom, as torch's attention kernels want it said: from ``segment_ids`` alone.

A position sees itself and what came before it in its segment. Padding (-1) sees padding of its own row, so
that no row of a softmax is empty; nobody looks at what comes of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import torch
from torch.nn.attention.flex_attention import BlockMask, create_block_mask

from recipe.errors import RecipeError


def attention_bias(segment_ids: torch.Tensor) -> torch.Tensor:
    """A mask for ``scaled_dot_product_attention`` and other kernels that take one.

    Args:
        segment_ids: int[rows, context].

    Returns:
        bool[rows, 1, context, context]: whether the query (third) may see the key (fourth).

    >>> attention_bias(torch.tensor([[0, 0, 1]]))[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
    """
    same = segment_ids[:, :, None] == segment_ids[:, None, :]
    return same.tril()[:, None]


def block_mask(
    batch: Mapping[str, torch.Tensor], *, block_size: int = 128, compiled: bool = False
) -> BlockMask:
    """A mask for FlexAttention: blocks in which no position may see another are left out.

    Args:
        batch: with ``segment_ids`` int[rows, context], on the device of the model.
        block_size: positions of a side of a block.
        compiled: whether its making is compiled, too: faster where it is made often.
    """
    segments = batch["segment_ids"]
    rows, context = segments.shape

    def visible(row: Any, _head: Any, query: Any, key: Any) -> Any:
        return (query >= key) & (segments[row, query] == segments[row, key])

    return create_block_mask(
        visible,
        B=rows,
        H=None,
        Q_LEN=context,
        KV_LEN=context,
        device=segments.device,
        BLOCK_SIZE=block_size,
        _compile=compiled,
    )


def check_attention(given: str, known: Collection[str]) -> None:
    """Refuse a way to keep documents apart that is none: else they would see each other, unnoticed.

    Raises:
        RecipeError: with the ways there are.
    """
    if given not in known:
        raise RecipeError.single(
            "attention",
            "attention",
            given=given,
            expected=f"one of {', '.join(known)}",
            fix="name the one that the model's attention takes",
        )


class Varlen(NamedTuple):
    """Segments of the flattened rows, for kernels of variable length such as FlashAttention's."""

    cu_seqlens: torch.Tensor
    """int32[segments + 1]: where each begins, and the end; the padding of a row is a segment of its own."""
    max_seqlen: int


def varlen(batch: Mapping[str, torch.Tensor]) -> Varlen:
    """Cumulative lengths of a batch's segments, rows one behind the other.

    >>> varlen({"segment_ids": torch.tensor([[0, 0, 1, -1], [0, 0, 0, 0]])})
    Varlen(cu_seqlens=tensor([0, 2, 3, 4, 8], dtype=torch.int32), max_seqlen=4)
    """
    segments = batch["segment_ids"]
    edges = torch.ones_like(segments, dtype=torch.bool)
    edges[:, 1:] = segments[:, 1:] != segments[:, :-1]
    starts = edges.reshape(-1).nonzero()[:, 0]
    ends = torch.cat([starts, starts.new_tensor([segments.numel()])])
    return Varlen(ends.to(torch.int32), int(ends.diff().max()))
