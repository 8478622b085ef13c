"""Items on their way from a loader's worker: in shared memory that goes back and forth.

torch makes shared memory for every tensor of another process, and hands it over as a file descriptor over a
connection that is made for it. Here a worker has a few slabs of shared memory, each handed over once. An item
is copied into one that is free, and only its number is sent; where it arrives it is cut into the same
tensors, over that memory. The slab is free again once nobody there holds any of them; a process that is
forked from there and goes on reading an item it found has to copy it, as it holds nothing here.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

_ALIGNED = 64
"""Bytes to whose multiple every tensor begins; the first so many of a slab say whether it is lent."""

Layout = tuple[tuple[str, torch.dtype, tuple[int, ...]], ...]
"""Of every tensor: name, dtype, shape."""


class Parcel(dict[str, torch.Tensor]):
    """An item in a worker; a plain dict where it arrives."""


class _Slab:
    """Shared memory for one item at a time, in the process that made it or in the one that it was lent to."""

    def __init__(self, block: torch.Tensor) -> None:
        """``block`` uint8[bytes], in shared memory."""
        self.block = block
        self.memory: NDArray[np.uint8] = block.numpy()
        self.layout: Layout = ()
        self._parts: list[tuple[str, torch.dtype, tuple[int, ...], tuple[int, ...], int]] = []
        self._came = False
        self._unheld = self._references()

    @property
    def is_lent(self) -> bool:
        """Whether the process that it was sent to has not given it back."""
        return bool(self.memory[0])

    def lend(self) -> None:
        """It is sent now."""
        self.memory[0] = 1

    def give_back(self) -> None:
        """Free it, if its item came here and none of the tensors is held any more."""
        if self._came and self._references() == self._unheld:
            self._came = False  # the next item may be on its way as soon as it is free
            self.memory[0] = 0

    def lay_out(self, layout: Layout) -> None:
        """What the next items consist of."""
        self.layout, self._parts, first = layout, [], _ALIGNED
        for name, dtype, shape in layout:
            size = torch.Size(shape).numel()
            strides = torch.empty(shape, dtype=dtype, device="meta").stride()
            self._parts.append((name, dtype, shape, strides, first // dtype.itemsize))
            first += _whole(size * dtype.itemsize)

    def take(self) -> dict[str, torch.Tensor]:
        """The item that came."""
        self._came = True
        return self.item()

    def item(self) -> dict[str, torch.Tensor]:
        """The tensors over this memory; whoever holds one holds it.

        It is not shared memory to torch: what is sent on to a further process is copied, as it may be filled
        anew here while it is held there.
        """
        base = torch.from_numpy(self.memory)
        of = {dtype: base.view(dtype) for dtype in {part[1] for part in self._parts}}
        return {
            name: of[dtype].as_strided(shape, strides, first)
            for name, dtype, shape, strides, first in self._parts
        }

    def _references(self) -> int:
        """References to the memory: storage of a tensor is one, however many views it has."""
        return sys.getrefcount(self.memory)


_made: tuple[int, list[_Slab]] = (0, [])
"""This process, and the slabs that it made: a forked one makes its own."""
_lent: dict[int, dict[int, _Slab]] = {}
"""By the process that sends them and their number, slabs of other processes."""


def _sent(item: Parcel) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The item, copied into a slab; with the slab itself, or what it holds, only where that is new."""
    layout = tuple((name, value.dtype, tuple(value.shape)) for name, value in item.items())
    number, slab = _free(_ALIGNED + sum(_whole(value.nbytes) for value in item.values()))
    is_new, is_other = not slab.layout, slab.layout != layout
    if is_other:
        slab.lay_out(layout)
    slab.lend()
    for value, there in zip(item.values(), slab.item().values(), strict=True):
        there.copy_(value)
    return _received, (os.getpid(), number, slab.block if is_new else None, layout if is_other else None)


def _free(size: int) -> tuple[int, _Slab]:
    """A slab of this process that nobody has, and its number."""
    global _made
    if _made[0] != os.getpid():
        _made = (os.getpid(), [])
    slabs = _made[1]
    number = next((number for number, slab in enumerate(slabs) if not slab.is_lent), len(slabs))
    if number == len(slabs):
        slabs.append(_new(size))
    elif len(slabs[number].memory) < size:
        slabs[number] = _new(size)
    return number, slabs[number]


def _new(size: int) -> _Slab:
    # Shared from the start: torch would otherwise copy it once more.
    memory = torch.UntypedStorage._new_shared(size)  # type: ignore[no-untyped-call]
    return _Slab(torch.empty(0, dtype=torch.uint8).set_(memory))


def _received(
    sender: int, number: int, block: torch.Tensor | None, layout: Layout | None
) -> dict[str, torch.Tensor]:
    """The item's tensors over a slab; those that nobody holds any more go back to the sender."""
    if sender not in _lent:
        _forget({sender, *(child.pid or 0 for child in multiprocessing.active_children())})
    slabs = _lent.setdefault(sender, {})
    if block is not None:
        slabs[number] = _Slab(block)
    for slab in slabs.values():
        slab.give_back()
    if layout is not None:
        slabs[number].lay_out(layout)
    return slabs[number].take()


def _forget(but: Iterable[int]) -> None:
    """Let go of the slabs of workers that are gone; tensors that are held keep their memory."""
    for sender in {*_lent} - {*but}:
        del _lent[sender]


def _whole(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


ForkingPickler.register(Parcel, _sent)
