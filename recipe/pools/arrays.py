"""The arrays of a pool: where documents, units and sections lie among its tokens, and which are special.

Each is loaded when it is first asked for, and kept until the pool is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from recipe.pools.layout import Layout
from recipe.pools.offsets import Offsets

T = TypeVar("T")


class PoolArrays:
    """What lies beside the tokens of a layout."""

    def __init__(self, layout: Layout) -> None:
        """Nothing is loaded."""
        self.layout = layout
        self._opened: dict[str, Any] = {}

    @property
    def offsets(self) -> NDArray[np.int64] | Offsets:
        """int64[num_documents + 1]: first stored token of each document over all parts, then their number."""
        return self._once("offsets", self.layout.load_offsets)

    @property
    def units(self) -> NDArray[np.int64] | None:
        """int64[num_units + 1]: first document of each unit; None when each document is a unit."""
        return self._once("units", self.layout.load_units or _nothing)

    @property
    def sections(self) -> NDArray[np.int64] | None:
        """int64[n]: stored tokens, counted over the pool, at which sections begin, rising, without the starts
        of documents; None where the pool says nothing of sections."""
        return self._once("sections", self.layout.load_sections or _nothing)

    @property
    def needs(self) -> NDArray[np.int64] | None:
        """int64[m, 4]: section ``[a, b)`` needs section ``[c, d)``, stored tokens counted over the pool; see
        `recipe.pools.sections`. None where no section needs another."""
        return self._once("needs", self.layout.load_needs or _nothing)

    @property
    def leads(self) -> NDArray[np.uint32] | None:
        """uint32[documents], by number: special tokens in front of each one's body, BOS among them; None
        where no document has more than BOS there."""
        return self._once("leads", self.layout.load_leads or _nothing)

    @property
    def erased(self) -> NDArray[np.int64]:
        """int64[n]: numbers of the documents that were withdrawn from the pool and erased, rising; they hold
        zeros, and whoever reads the pool leaves them out."""
        return self._once("erased", self.layout.load_erased or _no_documents)

    @property
    def repeats(self) -> NDArray[np.int64] | None:
        """int64[n, 2]: spans of stored tokens, counted over the pool, rising and disjoint, that repeat what
        stands earlier in the same unit; see `recipe.pools.repeats`. None where nobody looked for them."""
        return self._once("repeats", self.layout.load_repeats or _nothing)

    def close(self) -> None:
        """Let go of what is loaded; what is asked for later is loaded again."""
        self._opened = {}

    def _once(self, name: str, load: Callable[[], T]) -> T:
        """What was loaded under this name; two threads may both load it, and either result serves."""
        opened = self._opened  # another thread may close the pool meanwhile
        if name not in opened:
            opened[name] = load()
        loaded: T = opened[name]
        return loaded


def _nothing() -> None:
    """Of a pool that has no such file."""


def _no_documents() -> NDArray[np.int64]:
    return np.empty(0, np.int64)
