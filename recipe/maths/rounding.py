"""Whole tokens from exact shares: largest-remainder rounding."""

from __future__ import annotations

from collections.abc import Sequence


def largest_remainder(parts: Sequence[int], denominator: int, total: int) -> list[int]:
    """Whole numbers nearest to ``total * part / denominator`` that sum to ``total``.

    Each is the exact value rounded down; what is left over goes one by one to the largest
    remainders, ties in order. ``total`` may be negative (each value then rounds down too).

    Args:
        parts: numerators, in ``0..denominator``, that sum to ``denominator``.
        denominator: the common denominator; at least 1.
        total: what is shared out.

    Raises:
        ValueError: the parts do not sum to the denominator, or one is negative.

    Source:
        Hamilton's method of apportionment (Balinski and Young, *Fair Representation*, 1982).

    >>> largest_remainder([1, 1, 1], 3, 100)
    [34, 33, 33]
    >>> largest_remainder([1] * 8, 8, 15)
    [2, 2, 2, 2, 2, 2, 2, 1]
    """
    if denominator < 1 or sum(parts) != denominator or min(parts) < 0:
        raise ValueError(f"parts {list(parts)} must be >= 0 and sum to {denominator}")
    return round_to_sum([part * total for part in parts], denominator)


def round_to_sum(numerators: Sequence[int], denominator: int) -> list[int]:
    """Whole numbers nearest to ``numerator / denominator`` with the same (whole) sum.

    Used for debts, which are negative as often as positive and sum to zero.

    Raises:
        ValueError: the sum of the fractions is no whole number.

    >>> round_to_sum([5, -2, -3], 4)
    [1, 0, -1]
    """
    total, rest = divmod(sum(numerators), denominator)
    if rest:
        raise ValueError(f"{list(numerators)} over {denominator} do not sum to a whole number")
    floors = [numerator // denominator for numerator in numerators]
    remainders = [numerator % denominator for numerator in numerators]
    by_remainder = sorted(range(len(numerators)), key=lambda i: (-remainders[i], i))
    for i in by_remainder[: total - sum(floors)]:
        floors[i] += 1
    return floors


def owed(parts: Sequence[int], denominator: int, counted: int) -> list[int]:
    """Tokens owed to each pool once ``counted`` tokens were served: a function of ``counted`` alone.

    What a chunk owes is the difference of two of these, so chunks sum to the whole exactly.

    >>> [owed([1, 1, 1], 3, n) for n in (100, 200, 300)]
    [[34, 33, 33], [67, 67, 66], [100, 100, 100]]
    """
    return largest_remainder(parts, denominator, counted)


def allotments(parts: Sequence[int], denominator: int, start: int, stop: int) -> list[int]:
    """Tokens planned for each pool between two counts; they sum to ``stop - start``.

    >>> allotments([1, 1, 1], 3, 100, 200)
    [33, 34, 33]
    """
    before, after = owed(parts, denominator, start), owed(parts, denominator, stop)
    return [b - a for a, b in zip(before, after, strict=True)]
