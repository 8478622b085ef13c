"""Which pool serves the next sequence: shares kept within one context at every moment.

After Tijdeman's chairman assignment (R. Tijdeman, "The chairman assignment problem", Discrete
Mathematics 32, 1980), for items of unequal size: among the pools that may serve another sequence
without running too far ahead, the one that would fall behind first is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from recipe.maths.rounding import owed


@dataclass(frozen=True, slots=True)
class Race:
    """The constants of one leg: exact shares and the size of a sequence.

    ``parts[p] / denominator`` is pool p's share; a pool with part 0 takes no part.
    """

    parts: tuple[int, ...]
    denominator: int
    context: int

    @classmethod
    def from_shares(cls, shares: Sequence[Fraction], context: int) -> Race:
        """The race of exact shares that sum to one.

        Raises:
            ValueError: the shares do not sum to one.

        >>> Race.from_shares([Fraction(77, 125), Fraction(48, 125)], 8)
        Race(parts=(77, 48), denominator=125, context=8)
        """
        denominator = lcm(*(share.denominator for share in shares))
        parts = tuple(int(share * denominator) for share in shares)
        if sum(parts) != denominator or min(parts) < 0:
            raise ValueError(f"shares {list(map(str, shares))} must be >= 0 and sum to 1")
        return cls(parts, denominator, context)

    @property
    def num_drawn(self) -> int:
        """Pools with a share above zero (k)."""
        return sum(part > 0 for part in self.parts)

    @property
    def scale(self) -> int:
        """m = max(1, 2k − 2)."""
        return max(1, 2 * self.num_drawn - 2)

    @property
    def head_start(self) -> int:
        """H = (2k − 3)·D·T, and 0 for one pool: the furthest ahead a pool may run, scaled by m."""
        return max(0, 2 * self.num_drawn - 3) * self.denominator * self.context

    def without(self, pool: int) -> Race:
        """The race when a pool has left: the others keep their proportions exactly.

        Raises:
            ValueError: nobody would be left.
        """
        if self.denominator == self.parts[pool]:
            raise ValueError("no pool with a share above zero is left")
        parts = tuple(0 if p == pool else part for p, part in enumerate(self.parts))
        return Race(parts, self.denominator - self.parts[pool], self.context)


def choose(race: Race, debts: Sequence[int]) -> int:
    """The pool that serves the next sequence.

    Args:
        race: shares and context.
        debts: per pool D·spent − part·counted, in 1/D tokens; they sum to 0.

    Returns:
        index of the pool: of the eligible ones the earliest deadline, ties in order.

    >>> race, debts, picks = Race((1, 3), 4, 10), [0, 0], []
    >>> for _ in range(8):
    ...     picks.append(choose(race, debts))
    ...     debts = serve(race, debts, picks[-1], 10)
    >>> picks
    [1, 0, 1, 1, 1, 0, 1, 1]
    """
    m, head_start, denominator = race.scale, race.head_start, race.denominator
    best, best_deadline = -1, Fraction(0)
    for pool, part in enumerate(race.parts):
        if part == 0 or m * (debts[pool] + race.context * (denominator - part)) > head_start:
            continue
        deadline = Fraction(m * debts[pool] + head_start, part)
        if best < 0 or deadline < best_deadline:
            best, best_deadline = pool, deadline
    assert best >= 0, f"nobody is eligible: {race} {list(debts)}"
    return best


def serve(race: Race, debts: Sequence[int], pool: int, counted: int) -> list[int]:
    """The debts after ``pool`` served a sequence that held ``counted`` counted tokens."""
    after = [debt - part * counted for debt, part in zip(debts, race.parts, strict=True)]
    after[pool] += race.denominator * counted
    return after


def carry(old: Race, new: Race, debts: Sequence[int], counted: int) -> list[int]:
    """The debts with which a leg of other shares begins: no burst, and no pool starved.

    What a pool was served less what it was owed, in whole tokens, goes on, so a pool whose share is
    tiny keeps its claim however often shares change. Where a pool leaves, nobody owes anything.

    Args:
        old: shares of the leg that ends.
        new: shares of the leg that begins, for the same pools.
        debts: at its end, in 1/old.denominator tokens.
        counted: tokens the old leg counted.

    Returns:
        debts in 1/new.denominator tokens; they sum to 0.

    >>> carry(Race((1, 2), 3, 10), Race((1, 1), 2, 10), [-10, 10], 10)
    [-6, 6]
    >>> carry(Race((1, 2), 3, 10), Race((0, 1), 1, 10), [-10, 10], 10)
    [0, 0]
    """
    if any(before and not after for before, after in zip(old.parts, new.parts, strict=True)):
        return [0] * len(debts)
    due = owed(old.parts, old.denominator, counted)
    carried = []
    for debt, part, tokens in zip(debts, old.parts, due, strict=True):
        served, rest = divmod(debt + part * counted, old.denominator)
        assert rest == 0, f"no debt of this leg: {debt} of {old} at {counted}"
        carried.append((served - tokens) * new.denominator)
    return carried


def drift_bound(race: Race) -> Fraction:
    """Largest distance of any pool from its share, in tokens: (1 − 1/(2k−2))·T, below one context.

    >>> drift_bound(Race((1, 1), 2, 8))
    Fraction(4, 1)
    """
    if race.num_drawn == 1:
        return Fraction(0)
    return (1 - Fraction(1, 2 * race.num_drawn - 2)) * race.context
