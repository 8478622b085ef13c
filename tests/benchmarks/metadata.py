"""Metadata: order, slicing, packing, schedule and accounts, on one core, without reading a token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.batches import TOKENS
from tests.benchmarks.figures import Figure
from tests.benchmarks.material import Material, Roofline, material
from tests.benchmarks.paired import compare


class Walking:
    """A walk over a stream, a few ten thousand sequences at a time."""

    def __init__(self, of: Material, context: int) -> None:
        """Stand at the beginning."""
        stream = of.stream(context=context, batch=64, tokens=TOKENS)
        self._walk = stream.walk(stream.snapshot(0), stream.num_steps)
        self._positions = 0

    def __call__(self) -> int:
        """On to the next snapshot; returns the positions walked."""
        before, self._positions = self._positions, next(self._walk).positions
        return self._positions - before


def measure(scratch: Path) -> Iterator[Figure]:
    """Tokens a second of a walk, with the roofline of copying beside it."""
    of = material(scratch)
    for context in (2048, 4096):
        pair = compare(Walking(of, context), Roofline(of.pools, context, 8), slices=7)
        rates = pair.rates()
        yield Figure(
            name=f"metadata, context {context}",
            value=rates["ours a cpu second"] / 1e9,
            unit="G tokens/s",
            goal=">= 1",
            against=f"{pair.ratio():.1f} x the NumPy roofline of copying",
            beside={"roofline G tokens/s": rates["baseline a cpu second"] / 1e9},
        )
