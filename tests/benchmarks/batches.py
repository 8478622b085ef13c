"""Batches: packed, isolated, four arrays and the mask, in one thread, against the NumPy roofline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.figures import Figure
from tests.benchmarks.material import Material, Roofline, material
from tests.benchmarks.opened import anonymous_mb
from tests.benchmarks.paired import compare

SETTINGS = [(2048, 8), (2048, 64), (4096, 8), (4096, 64)]
TOKENS = 200_000_000_000
WARM_TOKENS = 1_000_000_000


class Reading:
    """A loop over batches that holds each one until the next is there, as a trainer does."""

    def __init__(self, of: Material, context: int, batch: int, read_ahead: int = 0) -> None:
        """Open a stream long enough for any number of slices."""
        stream = of.stream(context=context, batch=batch, tokens=TOKENS)
        self._batches = stream.batches(read_ahead=read_ahead)
        _, self._held = next(self._batches)

    def __call__(self) -> int:
        """One batch; returns its positions."""
        _, self._held = next(self._batches)
        return int(self._held["input_ids"].size)


def measure(scratch: Path) -> Iterator[Figure]:
    """One figure a setting."""
    of = material(scratch)
    for context, batch in SETTINGS:
        pair = compare(Reading(of, context, batch), Roofline(of.pools, context, batch), slices=15)
        yield Figure(
            name=f"batches {batch} x {context}",
            value=pair.ratio(),
            unit="x",
            goal=">= 0.8",
            spread=pair.spread(),
            against="tokens a cpu second, NumPy roofline",
            beside=pair.rates(),
        )
    yield growth(of)


def growth(of: Material) -> Figure:
    """Memory of a stream, read once and read on."""
    reading = Reading(of, 2048, 8)
    read = 0
    while read < WARM_TOKENS:
        read += reading()
    before = anonymous_mb()
    while read < 5 * WARM_TOKENS:
        read += reading()
    return Figure(
        name="memory after five times the tokens",
        value=anonymous_mb() - before,
        unit="MB more",
        goal="<= 16",
        beside={"MB before": before, "G tokens": read / 1e9},
    )
