"""Items on their way from a loader's worker: one block of shared memory each, not one a tensor.

torch hands every tensor of another process over as a file descriptor of its own, over a connection that is
made for it. Here a batch travels as one tensor of bytes and is cut into the same tensors, over that memory,
where it arrives.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch

_ALIGNED = 64
"""Bytes to whose multiple every tensor begins."""

Layout = tuple[tuple[str, torch.dtype, tuple[int, ...], int], ...]
"""Of every tensor: name, dtype, shape, first byte."""


class Parcel(dict[str, torch.Tensor]):
    """An item in a worker; a plain dict where it arrives."""


def _sent(item: Parcel) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Everything in one piece of shared memory, which torch then hands over."""
    layout, end = list[tuple[str, torch.dtype, tuple[int, ...], int]](), 0
    for name, value in item.items():
        layout.append((name, value.dtype, tuple(value.shape), end))
        end += -(-value.nbytes // _ALIGNED) * _ALIGNED
    # Shared from the start: torch would otherwise copy it once more.
    memory = torch.UntypedStorage._new_shared(end)  # type: ignore[no-untyped-call]
    block = torch.empty(0, dtype=torch.uint8).set_(memory)
    for (_, _, _, first), value in zip(layout, item.values(), strict=True):
        if value.nbytes:
            block[first : first + value.nbytes].copy_(value.contiguous().reshape(-1).view(torch.uint8))
    return _received, (block, tuple(layout))


def _received(block: torch.Tensor, layout: Layout) -> dict[str, torch.Tensor]:
    """The item's tensors over the memory that came."""
    return {
        name: block[first : first + math.prod(shape) * dtype.itemsize].view(dtype).view(shape)
        for name, dtype, shape, first in layout
    }


ForkingPickler.register(Parcel, _sent)
