"""Which rows are computed again, how the work is shared out, and what a choice of rows can find."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import perm

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
    sample: Fraction | float | int | None
    workers: int
    seed: int
    foreseen: bool = False
    """Whether the seed was given, so that somebody may have known it."""


@dataclass(frozen=True, slots=True)
class Detection:
    """What a random choice of rows finds at least, if some rows are wrong: exact, not estimated."""

    rows: int
    """Rows that could be computed again."""
    computed: int
    one: Fraction
    """Probability that one wrong row is found, wherever it is."""
    several: int
    """One in a hundred rows, rounded up."""
    of_several: Fraction
    """Probability that at least one of so many is found, wherever they are."""


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
    if isinstance(depth.sample, int):
        return min(depth.sample, len(segments))
    if depth.sample is not None:
        return max(1, round(Fraction(str(depth.sample)) * len(segments)))
    most = SECONDS * POSITIONS_PER_SECOND * depth.workers
    total = sum(segment.positions for segment in segments)
    if total <= most:
        return len(segments)
    mean = total // len(segments)
    return max(1, most // (mean + min(OPENING, mean)))


def detection(segments: Sequence[Segment], picked: Sequence[Segment]) -> Detection | None:
    """What choosing ``picked`` of ``segments`` finds; None where there is nothing to compute."""
    if not segments:
        return None
    sizes = [len(segment.stops) for segment in segments]
    rows = sum(sizes)
    several = -(-rows // 100)
    return Detection(
        rows,
        sum(len(segment.stops) for segment in picked),
        found_at_least(sizes, len(picked), 1),
        several,
        found_at_least(sizes, len(picked), several),
    )


def found_at_least(sizes: Sequence[int], picked: int, wrong: int) -> Fraction:
    """Probability that computing ``picked`` pieces again meets at least one of ``wrong`` rows.

    The last piece is always computed, the others are drawn without replacement. The wrong rows lie where
    that is worst for the draw: in as few pieces as hold them, none of them the last. With j such
    pieces among the n - 1 others, all are missed with probability C(n-1-j, m-1) / C(n-1, m-1), which
    is P(n-m, j) / P(n-1, j) in falling factorials.

    Args:
        sizes: rows of each piece.
        picked: pieces that are computed, the last one among them.
        wrong: rows that are wrong; at least 1.

    >>> found_at_least([1, 1, 1, 1, 1], 3, 1), found_at_least([1, 1, 1, 1, 1], 3, 2)
    (Fraction(1, 2), Fraction(5, 6))
    >>> found_at_least([3, 1, 1, 1, 2], 3, 3), found_at_least([1, 1], 1, 2)
    (Fraction(1, 2), Fraction(1, 1))
    """
    others, drawn = len(sizes) - 1, picked - 1
    if drawn >= others:
        return Fraction(1)
    held = pieces = 0
    for size in sorted(sizes[:-1], reverse=True):
        held, pieces = held + size, pieces + 1
        if held >= wrong:
            return 1 - Fraction(perm(others - drawn, pieces), perm(others, pieces))
    return Fraction(1)


def slices(segments: Sequence[Segment], workers: int) -> list[list[Segment]]:
    """Neighbours stay together: they share blocks. Several slices a worker, so that none is idle long."""
    if workers == 1 or len(segments) < 2:
        return [list(segments)]
    size = -(-len(segments) // (4 * workers))
    return [list(segments[begin : begin + size]) for begin in range(0, len(segments), size)]
