"""Which rows are computed again, and how the work is shared out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from recipe.audit.segments import Segment

SECONDS = 60
POSITIONS_PER_SECOND = 500_000_000
"""A core computes about as many again."""
OPENING = 64 << 20
"""Positions' worth of work to open the blocks that a row starts in, at most."""


@dataclass(frozen=True, slots=True)
class Depth:
    """How much of a run is computed again."""

    full: bool
    sample: float | int | None
    workers: int
    seed: int


def chosen(segments: Sequence[Segment], depth: Depth) -> list[Segment]:
    """The segments to compute again, in order: all, or a seeded choice that always holds the last one."""
    number = _wanted(segments, depth)
    if number >= len(segments):
        return list(segments)
    draw = random.Random(f"audit {depth.seed}")
    picks = {len(segments) - 1, *draw.sample(range(len(segments) - 1), number - 1)}
    return [segments[pick] for pick in sorted(picks)]


def _wanted(segments: Sequence[Segment], depth: Depth) -> int:
    if depth.full or not segments:
        return len(segments)
    if isinstance(depth.sample, float):
        return max(1, round(depth.sample * len(segments)))
    if depth.sample is not None:
        return min(depth.sample, len(segments))
    most = SECONDS * POSITIONS_PER_SECOND * depth.workers
    total = sum(segment.positions for segment in segments)
    if total <= most:
        return len(segments)
    mean = total // len(segments)
    return max(1, most // (mean + min(OPENING, mean)))


def slices(segments: Sequence[Segment], workers: int) -> list[list[Segment]]:
    """Neighbours stay together: they share blocks. Several slices a worker, so that none is idle long."""
    if workers == 1 or len(segments) < 2:
        return [list(segments)]
    size = -(-len(segments) // (4 * workers))
    return [list(segments[begin : begin + size]) for begin in range(0, len(segments), size)]
