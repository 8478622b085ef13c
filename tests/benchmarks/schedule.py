"""The exact schedule with many pools: time a sequence, and the plain integers beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from recipe.maths.deadlines import Race, choose, serve
from recipe.mixing.schedule import Queue, fits_int64, schedule
from tests.benchmarks.figures import Figure
from tests.benchmarks.paired import compare

CONTEXT, READY = 2048, 4096


def race_of(num_pools: int) -> Race:
    """Shares that differ by three orders of magnitude, in whole millionths."""
    weights = np.random.default_rng(num_pools).lognormal(0, 1.5, num_pools)
    parts = np.maximum(1, np.rint(weights / weights.sum() * 1_000_000)).astype(int).tolist()
    return Race.from_shares([Fraction(part, sum(parts)) for part in parts], CONTEXT)


def plain_seconds(race: Race, counted: np.ndarray, num: int) -> float:
    """Seconds a sequence of the rule on Python integers."""
    debts, began = [0] * len(race.parts), time.process_time()
    for k in range(num):
        debts = serve(race, debts, choose(race, debts), int(counted[k]))
    return (time.process_time() - began) / num


class Serving:
    """The compiled schedule over queues that never run dry."""

    def __init__(self, race: Race, num: int) -> None:
        """Sequences of half a context and more."""
        pools = len(race.parts)
        self.counted = np.random.default_rng(1).integers(CONTEXT // 2, CONTEXT + 1, pools * READY)
        self._race, self._num, self._debts = race, num, [0] * pools
        self._begins = np.arange(pools, dtype=np.int64) * READY

    def __call__(self) -> int:
        """Some sequences; returns how many."""
        queue = Queue(self.counted, self._begins, np.zeros_like(self._begins), self._begins * 0 + READY)
        served, self._debts = schedule(self._race, self._debts, queue, self._num)
        return len(served.pools)


class Scanning:
    """The least that looks at every pool: an argmin a sequence."""

    def __init__(self, num_pools: int) -> None:
        """All at zero."""
        self._deadlines = np.zeros(num_pools, np.int64)

    def __call__(self) -> int:
        """Some sequences; returns how many."""
        for k in range(256):
            self._deadlines[int(self._deadlines.argmin())] += k
        return 256


def measure(_scratch: Path) -> Iterator[Figure]:
    """One figure a number of pools."""
    for num_pools in (10, 100, 1000):
        race = race_of(num_pools)
        assert fits_int64(race)
        serving = Serving(race, min(READY, 200_000 // num_pools))
        pair = compare(serving, Scanning(num_pools), seconds=0.1, slices=5)
        plain = plain_seconds(race, serving.counted, max(20, 20_000 // num_pools))
        yield Figure(
            name=f"schedule of {num_pools} pools",
            value=1e9 / pair.rates()["ours a cpu second"],
            unit="ns/sequence",
            against=f"{pair.ratio():.2g} x a NumPy argmin over the pools",
            beside={"plain integers, ns": 1e9 * plain},
        )
