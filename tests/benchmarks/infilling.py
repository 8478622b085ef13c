"""Batches whose pieces are filled in the middle, against the same windows left as they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from recipe.mixing.stream import Stream
from tests.benchmarks.batches import TOKENS
from tests.benchmarks.figures import Figure
from tests.benchmarks.material import material
from tests.benchmarks.paired import compare

CONTEXT, BATCH = 4096, 16
MARKERS = {"prefix": 1, "middle": 2, "suffix": 3}
WALKED = 64
"""Steps walked at once."""


class Serving:
    """A loop over the batches of a stream."""

    def __init__(self, stream: Stream) -> None:
        """Nothing is read ahead: one thread."""
        self._batches = stream.batches(read_ahead=0)

    def __call__(self) -> int:
        """One batch; returns its positions."""
        _, held = next(self._batches)
        return int(held["input_ids"].size)


class Walking:
    """A loop over the stream's metadata."""

    def __init__(self, stream: Stream) -> None:
        """From the first step."""
        self._stream, self._at = stream, stream.snapshot(0)

    def __call__(self) -> int:
        """Some steps; returns their positions."""
        for at in self._stream.walk(self._at, self._at.step + WALKED):
            self._at = at
        return WALKED * BATCH * CONTEXT


def measure(scratch: Path) -> Iterator[Figure]:
    """Serving at two rates, and walking at the larger one."""
    of = material(scratch)

    def stream(rate: str | None) -> Stream:
        pool: dict[str, Any] = {"slicing": {"window": CONTEXT - len(MARKERS)}}
        if rate is not None:
            pool["transform"] = {"fim": {"rate": rate, "spm": "50%", **MARKERS}}
        return of.stream(context=CONTEXT, batch=BATCH, tokens=TOKENS, pool=pool)

    for name, loop, rate, goal in (
        ("batches", Serving, "50%", ">= 0.8"),
        ("batches", Serving, "100%", ""),
        ("metadata", Walking, "100%", ""),
    ):
        pair = compare(loop(stream(rate)), loop(stream(None)), slices=11)
        yield Figure(
            name=f"{name}, {rate} filled in the middle",
            value=pair.ratio(),
            unit="x",
            goal=goal,
            spread=pair.spread(),
            against="positions a cpu second, the same windows without a transform",
            beside=pair.rates(),
        )
