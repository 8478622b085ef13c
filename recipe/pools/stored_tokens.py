"""Stored tokens of a pool, by part or by place in the pool: mapped from files here, or read from a store."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.pools.layout import Layout
from recipe.pools.mapped import map_array

_STRETCH_TOKENS = 1 << 22
"""Tokens that a scan looks at together."""


class StoredTokens:
    """The token files of a layout, each opened when something in it is asked for."""

    def __init__(self, layout: Layout) -> None:
        """Nothing is opened."""
        self.layout = layout
        self._parts: list[NDArray[Any] | None] = [None] * len(layout.part_names)

    @property
    def opened(self) -> list[int]:
        """Parts that are mapped, by number."""
        return [index for index, tokens in enumerate(self._parts) if tokens is not None]

    def part(self, index: int) -> NDArray[Any]:
        """All tokens of a part whose file lies on this machine, mapped."""
        tokens = self._parts[index]
        if tokens is None:
            # two threads may both map the part; either map serves
            if self.layout.load_part is not None:
                tokens = self.layout.load_part(index)
            else:
                tokens = map_array(self.layout.part_path(index), self.layout.token_dtype, self._count(index))
            self._parts[index] = tokens
        return tokens

    def span(self, index: int, start: int, stop: int) -> NDArray[Any]:
        """Tokens ``start..stop`` of a part."""
        if self.layout.remote is None:
            return self.part(index)[start:stop]
        dtype = self.layout.token_dtype
        name, width = self.layout.file_name(index), dtype.itemsize
        return np.frombuffer(self.layout.remote.read(name, start * width, stop * width), dtype)

    def gather(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """The tokens at places counted over the pool."""
        dtype, offsets = self.layout.token_dtype, self.layout.part_offsets
        if not len(positions):
            return np.empty(0, dtype=dtype)
        parts = np.searchsorted(offsets, positions, side="right") - 1
        if self.layout.remote is not None:
            width = dtype.itemsize
            starts = (positions - offsets[parts]) * width
            names = [self.layout.file_name(index) for index in range(len(self._parts))]
            memory, runs = self.layout.remote.gather(names, np.stack([parts, starts, starts + width], axis=1))
            gathered: NDArray[Any] = memory.view(dtype)[runs.place // width]
            return gathered
        order = np.argsort(parts, kind="stable")
        found, cuts = np.unique(parts[order], return_index=True)
        tokens = np.empty(len(positions), dtype=dtype)
        for index, members in zip(found.tolist(), np.split(order, cuts[1:]), strict=True):
            tokens[members] = self.part(index)[positions[members] - offsets[index]]
        return tokens

    def stretches(self) -> Iterator[tuple[int, int, NDArray[Any]]]:
        """All tokens, in pieces: part, first token in it, tokens."""
        for index in range(len(self._parts)):
            count = self._count(index)
            for start in range(0, count, _STRETCH_TOKENS):
                yield index, start, self.span(index, start, min(start + _STRETCH_TOKENS, count))

    def close(self) -> None:
        """Let go of mapped files; what is asked for later is mapped again."""
        self._parts = [None] * len(self._parts)

    def _count(self, index: int) -> int:
        return int(self.layout.part_offsets[index + 1] - self.layout.part_offsets[index])
