"""What a few repetitions say of a mean: its spread, and a two-sided interval by Student's t.

Values are exact (``Fraction``), so that a difference of 0.01 is 0.01; only the spread and the
interval, which a person reads, are floats. Below three repetitions no spread is known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

FEWEST = 3
"""Repetitions from which on a spread is stated."""
LEVEL = 0.95
"""How often the interval holds the true mean."""
_TINY = 1e-300
_TERMS = 100_000


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of repetitions and what is known of its uncertainty."""

    count: int
    mean: Fraction
    spread: float | None = None
    """Sample standard deviation; None: not known, there are too few repetitions."""
    half_width: float | None = None
    """The interval is the mean less, and plus, this."""


def estimate(values: Sequence[Fraction]) -> Estimate:
    """The mean of repetitions with its interval at ``LEVEL``.

    Raises:
        ValueError: no value.

    >>> three = estimate([Fraction(1), Fraction(2), Fraction(3)])
    >>> three.mean, three.spread, round(three.half_width or 0, 6)
    (Fraction(2, 1), 1.0, 2.484138)
    >>> estimate([Fraction(1), Fraction(2)])
    Estimate(count=2, mean=Fraction(3, 2), spread=None, half_width=None)
    """
    if not values:
        raise ValueError("no values to take the mean of")
    count, mean = len(values), _mean(values)
    if count < FEWEST:
        return Estimate(count, mean)
    spread = _root(_variance(values))
    return Estimate(count, mean, spread, t_quantile(LEVEL, count - 1) * spread / math.sqrt(count))


def paired_difference(values: Sequence[Fraction], others: Sequence[Fraction]) -> Estimate:
    """How much larger ``values`` are than ``others``, where the k-th of both share their chance.

    Raises:
        ValueError: not as many of both.
    """
    return estimate([a - b for a, b in zip(values, others, strict=True)])


def independent_difference(values: Sequence[Fraction], others: Sequence[Fraction]) -> Estimate:
    """How much larger the mean of ``values`` is than that of ``others``; ``spread`` stays unstated.

    Raises:
        ValueError: no value on one side.

    Source:
        B. L. Welch, "The generalization of 'Student's' problem when several different population
        variances are involved", Biometrika 34, 1947.
    """
    if not values or not others:
        raise ValueError("no values to take the mean of")
    mean, count = _mean(values) - _mean(others), min(len(values), len(others))
    if count < FEWEST:
        return Estimate(count, mean)
    parts = [(_variance(side) / len(side), len(side) - 1) for side in (values, others)]
    error = sum(part for part, _ in parts)
    if not error:
        return Estimate(count, mean, None, 0.0)
    degrees = float(error**2 / sum(part**2 / free for part, free in parts))
    return Estimate(count, mean, None, t_quantile(LEVEL, degrees) * _root(Fraction(error)))


def t_quantile(level: float, degrees: float) -> float:
    """The t that a Student variable stays within, on both sides of 0, with probability ``level``.

    Args:
        level: 0 < level < 1.
        degrees: of freedom, at least 1; need not be whole.

    Raises:
        ValueError: an argument is out of its range.

    >>> round(t_quantile(0.95, 2), 9), round(t_quantile(0.95, 30), 9)
    (4.30265273, 2.042272456)
    """
    if not 0 < level < 1 or not degrees >= 1:
        raise ValueError(f"level {level}, degrees {degrees}: 0 < level < 1 and degrees >= 1 are needed")
    low, high = 0.0, 1.0  # of y = t**2 / (degrees + t**2), whose distribution is a beta one
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if beta_part(middle, 0.5, degrees / 2) < level else (low, middle)
    return math.sqrt(degrees * high / (1 - high))


def beta_part(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), for 0 <= x <= 1.

    Source:
        NIST Digital Library of Mathematical Functions, 8.17.22 (the continued fraction) and 8.17.4
        (the reflection), evaluated by Lentz's method.

    >>> [round(beta_part(x, 2, 3), 12) for x in (0, 0.5, 1)]
    [0.0, 0.6875, 1.0]
    """
    if x in (0, 1):
        return float(x)
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_part(1 - x, b, a)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(logarithm + a * math.log(x) + b * math.log1p(-x)) / a
    return front / _continued_fraction(x, a, b)


def _continued_fraction(x: float, a: float, b: float) -> float:
    """1 + d1/(1 + d2/(1 + …)) of DLMF 8.17.22."""
    value, over, under = 1.0, 1.0, 0.0
    for term in range(1, _TERMS):
        m = term // 2
        if term % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        under = 1 / ((1 + d * under) or _TINY)
        over = (1 + d / over) or _TINY
        value *= over * under
        if abs(over * under - 1) < 1e-15:
            return value
    raise AssertionError(f"no convergence at {x}, {a}, {b}")


def _mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def _variance(values: Sequence[Fraction]) -> Fraction:
    mean = _mean(values)
    return sum(((value - mean) ** 2 for value in values), Fraction(0)) / (len(values) - 1)


def _root(value: Fraction) -> float:
    """Square root of a fraction that may be beyond what a float can hold."""
    try:
        return math.sqrt(value)
    except OverflowError:
        return math.inf
