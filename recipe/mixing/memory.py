"""Snapshots met on the way: the nearest one before a step is where a walk to it begins."""

from __future__ import annotations

import threading
from bisect import bisect_right, insort

from recipe.mixing.snapshot import Snapshot

SNAPSHOT_SEQUENCES = 1 << 16
"""Sequences walked between two snapshots that are kept."""


class Memory:
    """Known snapshots of one stream, by step; safe to share between threads."""

    def __init__(self, start: Snapshot) -> None:
        """Begin with one snapshot."""
        self._by_step = {start.step: start}
        self._steps = [start.step]
        self._lock = threading.Lock()

    def add(self, snapshot: Snapshot) -> None:
        """Keep a snapshot."""
        with self._lock:
            if snapshot.step not in self._by_step:
                insort(self._steps, snapshot.step)
            self._by_step[snapshot.step] = snapshot

    def pass_by(self, snapshot: Snapshot) -> None:
        """Keep a snapshot if it ends the run, or if none before it is near."""
        if snapshot.ended or snapshot.sequences - self.before(snapshot.step).sequences >= SNAPSHOT_SEQUENCES:
            self.add(snapshot)

    def before(self, step: int) -> Snapshot:
        """The last snapshot at or before a step.

        Raises:
            ValueError: none is known.
        """
        with self._lock:
            at = bisect_right(self._steps, step)
            if at == 0:
                raise ValueError(f"no snapshot at or before step {step}: the first one is {self._steps[0]}")
            return self._by_step[self._steps[at - 1]]

    @property
    def end_step(self) -> int | None:
        """The step at which a pool that ran dry ended the run, if a walk came that far."""
        with self._lock:
            last = self._by_step[self._steps[-1]]
            return last.step if last.ended else None
