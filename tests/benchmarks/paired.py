"""Two things timed in turn, so that what disturbs the machine disturbs both."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

Work = Callable[[], int]
"""Does a little, and returns how much it did."""


@dataclass(frozen=True)
class Slice:
    """Units of work a second: of processor time, and by the clock."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Paired:
    """Slices of ours, each with the mean of the baseline's slices before and after it."""

    ours: tuple[Slice, ...]
    base: tuple[Slice, ...]

    def ratios(self, clock: str = "cpu") -> list[float]:
        """How much faster ours was than its baseline, slice by slice."""
        return [getattr(a, clock) / getattr(b, clock) for a, b in zip(self.ours, self.base, strict=True)]

    def ratio(self, clock: str = "cpu") -> float:
        """The median of the ratios."""
        return median(self.ratios(clock))

    def spread(self) -> tuple[float, float]:
        """The smallest and the largest ratio of processor time."""
        return min(self.ratios()), max(self.ratios())

    def rates(self) -> dict[str, float]:
        """Median rates of both, for the record."""
        return {
            "ours a cpu second": median(one.cpu for one in self.ours),
            "baseline a cpu second": median(one.cpu for one in self.base),
            "ratio by the clock": self.ratio("wall"),
        }


def timed(work: Work, seconds: float) -> Slice:
    """Repeat work until it took so many seconds of processor time."""
    done = 0
    cpu, wall = time.process_time(), time.perf_counter()
    while (took := time.process_time() - cpu) < seconds:
        done += work()
    return Slice(done / took, done / (time.perf_counter() - wall))


def compare(ours: Work, base: Work, *, seconds: float = 0.4, slices: int = 9) -> Paired:
    """Slices in turn: base, ours, base, ours … base; one of each before, unmeasured."""
    for work in (base, ours):
        timed(work, seconds / 2)
    gc.collect()
    mine, theirs = [], [timed(base, seconds)]
    for _ in range(slices):
        mine.append(timed(ours, seconds))
        theirs.append(timed(base, seconds))
    around = [Slice((a.cpu + b.cpu) / 2, (a.wall + b.wall) / 2) for a, b in pairwise(theirs)]
    return Paired(tuple(mine), tuple(around))
