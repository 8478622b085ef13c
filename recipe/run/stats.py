"""What a trainer's process took from its stream: steps, tokens, bytes, and how long it waited for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """What was handed to the trainer of one process, over some time."""

    steps: int = 0
    tokens: int = 0
    """Positions that hold a token: all but padding."""
    bytes_read: int = 0
    """Bytes that these tokens take in their pools' files. The files are mapped: what the system really
    fetched may be less (its cache) or more (whole pages, reading ahead). Marks count, stored or not."""
    waited_ms: float = 0.0
    """Milliseconds that the trainer's process waited for its batches."""

    def minus(self, other: Served) -> Served:
        """What came after the other."""
        return Served(
            **{each.name: getattr(self, each.name) - getattr(other, each.name) for each in fields(self)}
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Stats:
    """What was served, in this process alone."""

    last: Served
    """Since this was asked before."""
    total: Served
    """Since the stream was opened."""
    queue_depth: int | None
    """Batches that stood ready behind the one taken last; None where another loader holds them."""


class Meter:
    """Counts what is handed out; a few whole numbers a step."""

    def __init__(self, widths: NDArray[np.int64]) -> None:
        """``widths`` int64[pools]: bytes of a token in the files of every pool."""
        self._widths = widths
        self._same = int(widths[0]) if len(np.unique(widths)) == 1 else None
        self._whole = [0, 0, 0]
        self._seconds = 0.0
        self._told = Served()
        self._depth: int | None = None

    def follow(
        self, items: Iterable[T], batch_of: Callable[[T], Any], depth: Callable[[], int] | None = None
    ) -> Iterator[T]:
        """The items, as they are; the time until each is there is the time waited.

        Args:
            items: what is handed out.
            batch_of: of an item, the mapping with ``pool`` and ``attention_mask``.
            depth: batches that stand ready, asked after each.
        """
        iterator = iter(items)
        try:
            while True:
                began = time.perf_counter()
                try:
                    item = next(iterator)
                except StopIteration:
                    return
                waited = time.perf_counter() - began
                self._depth = None if depth is None else depth()
                self.took(batch_of(item), waited)
                yield item
        finally:
            close = getattr(iterator, "close", None)
            if close is not None:
                close()

    def took(self, batch: Any, seconds: float) -> None:
        """One batch more."""
        mask = np.asarray(batch["attention_mask"])
        mask = mask.view(np.bool_) if mask.dtype == np.int8 else mask  # counted several times as fast
        tokens = int(np.count_nonzero(mask))
        if self._same is not None:
            size = tokens * self._same
        else:
            of_rows = self._widths[np.asarray(batch["pool"])]
            size = sum(int(w) * int(np.count_nonzero(mask[of_rows == w])) for w in np.unique(of_rows))
        self._whole[0] += 1
        self._whole[1] += tokens
        self._whole[2] += size
        self._seconds += seconds

    def stats(self) -> Stats:
        """What was served so far, and since this was asked before."""
        steps, tokens, size = self._whole
        total, told = (
            Served(steps=steps, tokens=tokens, bytes_read=size, waited_ms=1000 * self._seconds),
            self._told,
        )
        self._told = total
        return Stats(last=total.minus(told), total=total, queue_depth=self._depth)
