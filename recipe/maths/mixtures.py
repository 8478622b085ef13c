"""Mixtures to try: points of a grid, and draws around a centre, as whole parts of a million.

Draws are computed in decimal arithmetic from hashes, so a seed gives the same mixtures on every
machine and with every version of a numerical library.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from math import comb

from recipe.maths.rounding import largest_remainder

MIXTURE_GRAIN = 10**6
"""Drawn shares are whole parts of this: they can be written as percents with four decimals."""

LEAST_CONCENTRATION = Fraction(1, 10_000)
"""Draws of less are corners all the same."""
MOST_CONCENTRATION = 10**9
"""Draws of more are the centre all the same."""

_DIGITS = Context(prec=50)
_WORD = 1 << 64


def num_grid_points(num_names: int, parts: int, least: int = 0) -> int:
    """How many mixtures :func:`grid_points` gives.

    >>> num_grid_points(3, 10), num_grid_points(3, 10, least=1)
    (66, 36)
    """
    free = parts - num_names * least
    return comb(free + num_names - 1, num_names - 1) if free >= 0 else 0


def grid_points(num_names: int, parts: int, least: int = 0) -> Iterator[tuple[int, ...]]:
    """All ways to share ``parts`` equal parts among names, each with at least ``least``, in order.

    Raises:
        ValueError: no name, or a negative number of parts.

    >>> list(grid_points(2, 2))
    [(0, 2), (1, 1), (2, 0)]
    """
    if num_names < 1 or parts < 0 or least < 0:
        raise ValueError(f"{num_names} names, {parts} parts, at least {least}")
    if num_names == 1:
        if parts >= least:
            yield (parts,)
        return
    for first in range(least, parts - (num_names - 1) * least + 1):
        for rest in grid_points(num_names - 1, parts - first, least):
            yield (first, *rest)


def dirichlet(centre: Sequence[Fraction], concentration: Fraction, seed: int, index: int) -> list[int]:
    """One draw of a Dirichlet distribution, in whole parts of ``MIXTURE_GRAIN`` that sum to it.

    Its mean is ``centre``; the larger the concentration (the sum of its parameters), the nearer
    draws are to it. A part of 0 in the centre stays 0.

    Args:
        centre: shares that sum to one.
        concentration: in ``LEAST_CONCENTRATION..MOST_CONCENTRATION``.
        seed: of all draws; in ``0..2**63-1``.
        index: which draw, from 0: draw 7 is the same however many are drawn.

    Raises:
        ValueError: the centre does not sum to one, or a number is out of its range.

    Source:
        Gamma variates by Marsaglia and Tsang, *A Simple Method for Generating Gamma Variables* (2000),
        normals by Marsaglia's polar method (1964). Mixtures from Dirichlet draws around the stock's own:
        Liu et al., *RegMix: Data Mixture as Regression for Language Model Pre-training* (2024).

    >>> dirichlet([Fraction(1, 2), Fraction(1, 2)], Fraction(10), seed=1, index=0)
    [494907, 505093]
    """
    if sum(centre, Fraction(0)) != 1 or min(centre) < 0:
        raise ValueError(f"a centre of {[*map(str, centre)]}")
    if not LEAST_CONCENTRATION <= concentration <= MOST_CONCENTRATION:
        raise ValueError(f"a concentration outside {float(LEAST_CONCENTRATION)}..{MOST_CONCENTRATION}")
    if not 0 <= seed < 1 << 63 or index < 0:
        raise ValueError(f"seed {seed}, draw {index}")
    gammas = [
        _gamma(_decimal(concentration * share), _Dice(seed, index, place)) if share else Decimal(0)
        for place, share in enumerate(centre)
    ]
    largest = max(gammas)
    parts = [int(_DIGITS.divide(gamma, largest).scaleb(30, _DIGITS)) for gamma in gammas]
    return largest_remainder(parts, sum(parts), MIXTURE_GRAIN)


class _Dice:
    """Numbers strictly between 0 and 1, from hashes of a seed, a draw and a place in it."""

    def __init__(self, seed: int, index: int, place: int) -> None:
        self._place = (seed, index, place)
        self._thrown = 0

    def throw(self) -> Decimal:
        message = struct.pack("<4Q", *self._place, self._thrown)
        self._thrown += 1
        digest = hashlib.blake2b(message, digest_size=8, person=b"recipe-mixture1").digest()
        return _DIGITS.divide(Decimal(2 * int.from_bytes(digest, "little") + 1), Decimal(2 * _WORD))

    def normal(self) -> Decimal:
        """A standard normal number."""
        while True:
            x, y = (_DIGITS.subtract(_DIGITS.multiply(2, self.throw()), 1) for _ in range(2))
            square = _DIGITS.add(_DIGITS.multiply(x, x), _DIGITS.multiply(y, y))
            if 0 < square < 1:
                factor = _DIGITS.divide(_DIGITS.multiply(-2, _DIGITS.ln(square)), square)
                return _DIGITS.multiply(x, _DIGITS.sqrt(factor))


def _gamma(shape: Decimal, dice: _Dice) -> Decimal:
    """A number of the gamma distribution with this shape and scale 1."""
    if shape < 1:
        above = _gamma(_DIGITS.add(shape, 1), dice)
        power = _DIGITS.divide(_DIGITS.ln(dice.throw()), shape)
        return _DIGITS.multiply(above, _DIGITS.exp(power))
    d = _DIGITS.subtract(shape, _DIGITS.divide(Decimal(1), Decimal(3)))
    c = _DIGITS.divide(Decimal(1), _DIGITS.sqrt(_DIGITS.multiply(9, d)))
    while True:
        x = dice.normal()
        root = _DIGITS.add(1, _DIGITS.multiply(c, x))
        if root <= 0:
            continue
        v = _DIGITS.power(root, 3)
        half = _DIGITS.divide(_DIGITS.multiply(x, x), 2)
        free = _DIGITS.add(_DIGITS.subtract(1, v), _DIGITS.ln(v))
        if _DIGITS.ln(dice.throw()) < _DIGITS.add(half, _DIGITS.multiply(d, free)):
            return _DIGITS.multiply(d, v)


def _decimal(value: Fraction) -> Decimal:
    return _DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))
