"""Legs: stretches of constant shares inside a stage."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from recipe.config.model import QuotaRamp
from recipe.maths.shares import ramped


class Leg(NamedTuple):
    """A stretch of a stage in which every pool has the same share."""

    start: Fraction
    """Position of the stage: the leg begins at the first batch end at or after it; the first at 0."""
    shares: dict[str, Fraction]
    """The exact share of every pool, in the order of the pools; they sum to one."""


def ramp_legs(
    ramp: QuotaRamp, before: Mapping[str, Fraction], shares: Mapping[str, Fraction]
) -> tuple[Leg, ...]:
    """The legs of a stage with a ramp: its steps, then the rest of the stage.

    A leg that starts no later than the batch end at which the one before begins never holds.

    Args:
        ramp: over how many positions, in how many steps.
        before: the shares that the stage before ended with.
        shares: the stage's own shares.

    >>> legs = ramp_legs(QuotaRamp(over=100, steps=2), {"a": Fraction(0)}, {"a": Fraction(1)})
    >>> [(str(leg.start), str(leg.shares["a"])) for leg in legs]
    [('0', '1/4'), ('50', '3/4'), ('100', '1')]
    """
    on_the_way = ramped(before, shares, ramp.steps)
    starts = [Fraction(ramp.over * step, ramp.steps) for step in range(ramp.steps)]
    legs = [Leg(start, step) for start, step in zip(starts, on_the_way, strict=True)]
    return (*legs, Leg(Fraction(ramp.over), dict(shares)))
