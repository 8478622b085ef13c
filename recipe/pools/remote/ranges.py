"""Which bytes are asked for together: spans that lie close become one run, long runs several requests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

GAP_BYTES = 1 << 14
"""Bytes between two spans that are read through, at most, and no more than the shorter of the two has: they
cost less than another request, and never more than what is wanted."""
REQUEST_BYTES = 4 << 20
"""Bytes of one request at most."""
ALIGNED = 16
"""Runs begin at multiples of it in memory, so that tokens of any width do."""


class Runs(NamedTuple):
    """What spans become: ``file``, ``start``, ``stop``, ``at`` int64[m], where each run's bytes go in memory;
    ``place`` int64[n]: where every span's first byte is found; ``size``: bytes of the memory."""

    file: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    at: NDArray[np.int64]
    place: NDArray[np.int64]
    size: int

    @property
    def num_bytes(self) -> int:
        """Bytes that are read."""
        return int((self.stop - self.start).sum())

    @property
    def num_requests(self) -> int:
        """Requests that it takes."""
        return int((-(-(self.stop - self.start) // REQUEST_BYTES)).sum())

    def requests(self) -> list[tuple[int, int, int, int]]:
        """File, start, stop and place in memory of every request."""
        found = []
        for file, start, stop, at in zip(*(column.tolist() for column in self[:4]), strict=True):
            for first in range(start, stop, REQUEST_BYTES):
                found.append((file, first, min(first + REQUEST_BYTES, stop), at + first - start))
        return found


def runs_of(spans: NDArray[np.int64], gap: int = GAP_BYTES, least: int = 0) -> Runs:
    """Join spans of files that overlap, touch, or lie close.

    Args:
        spans: int64[n, 3]: file, first byte, end; none is empty, in any order.
        gap: bytes nobody asked for that may be read between two spans, at most as many as the shorter has.
        least: the same, however short the spans are.

    >>> runs = runs_of(np.array([[0, 40, 50], [0, 0, 10], [1, 0, 4], [0, 12, 20]]), gap=2)
    >>> [column.tolist() for column in runs[:4]], runs.place.tolist(), runs.size
    ([[0, 0, 1], [0, 40, 0], [20, 50, 4], [0, 32, 48]], [32, 0, 48, 12], 64)
    """
    if not len(spans):
        empty = np.empty(0, np.int64)
        return Runs(empty, empty, empty, empty, empty, 0)
    order = np.lexsort((spans[:, 1], spans[:, 0]))
    file, start, stop = spans[order].T
    # one line for all files, on which the ends seen so far only rise
    width = int(stop.max()) + max(gap, least) + 1
    reach = np.maximum.accumulate(stop + file * width)
    opens = np.ones(len(order), np.bool_)
    size = stop - start
    limit = np.maximum(np.minimum(gap, np.minimum(size[1:], size[:-1])), least)
    opens[1:] = start[1:] + file[1:] * width > reach[:-1] + limit
    firsts = np.flatnonzero(opens)
    lasts = np.append(firsts[1:], len(order)) - 1
    run_file, run_start = file[firsts], start[firsts]
    run_stop = reach[lasts] - run_file * width
    room = -(-(run_stop - run_start) // ALIGNED) * ALIGNED
    at = np.cumsum(room) - room
    run_of = np.cumsum(opens) - 1
    place = np.empty(len(order), np.int64)
    place[order] = at[run_of] + start - run_start[run_of]
    return Runs(run_file, run_start, run_stop, at, place, int(room.sum()))


def used_bytes(spans: NDArray[np.int64]) -> int:
    """Bytes that spans hold together, those of several counted once."""
    return runs_of(spans, gap=0).num_bytes
