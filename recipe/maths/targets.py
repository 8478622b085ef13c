"""Shares from now on, so that at the end the whole has the shares it shall have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, kw_only=True, slots=True)
class OutOfReach:
    """A pool that cannot end with what it shall have."""

    index: int
    """Which pool, by its place in what was given."""
    target: Fraction
    """Tokens it shall have at the end."""
    spent: int
    """Tokens it has had."""
    share: Fraction
    """The share it would need from now on; negative where it has had more than it shall have."""
    most: Fraction
    """The largest share it may have from now on."""
    nearest: Fraction
    """The share of the whole, nearest to what was asked for, that it can end with."""


class OutOfReachError(ValueError):
    """Targets that cannot be met: which, and by how much."""

    def __init__(self, pools: Sequence[OutOfReach]) -> None:
        """There is at least one."""
        self.pools = tuple(pools)
        super().__init__(
            "; ".join(
                f"pool {pool.index} has {pool.spent} of {pool.target} and needs a share of {pool.share}, "
                f"in 0..{pool.most}"
                for pool in self.pools
            )
        )


def forward_shares(
    target: Sequence[Fraction],
    spent: Sequence[int],
    remaining: Fraction | int,
    current: Sequence[Fraction],
    max_rise: Fraction | None = None,
) -> list[Fraction]:
    """Shares from now on, such that at the end every pool has its target share of the whole.

    ``spent + share * remaining == target * (sum of spent + remaining)``, exactly; they sum to one.

    Args:
        target: shares of the whole, what was spent included; they sum to one.
        spent: tokens each pool has had.
        remaining: tokens that are still to come; above 0.
        current: shares in force until now.
        max_rise: how many times its current share a pool may have at most, 1 or more; None: no limit. A pool
            without a current share is measured by its target.

    Raises:
        OutOfReachError: a pool has had more than it shall have in the end, or would rise further than it may.
        ValueError: an argument is out of its range.

    >>> target, current = [Fraction(1, 5), Fraction(4, 5)], [Fraction(1, 10), Fraction(9, 10)]
    >>> [str(share) for share in forward_shares(target, [10, 90], 100, current)]
    ['3/10', '7/10']
    """
    if not len(target) == len(spent) == len(current) or sum(target) != 1 or min(target) < 0:
        raise ValueError(f"targets {target} of {len(spent)} pools must be >= 0 and sum to one")
    if remaining <= 0 or min(spent) < 0 or (max_rise is not None and max_rise < 1):
        raise ValueError(f"remaining {remaining} > 0, spent {spent} >= 0, max_rise {max_rise} >= 1")
    whole = sum(spent) + Fraction(remaining)
    shares, beyond = list[Fraction](), list[OutOfReach]()
    for index, (part, had, now) in enumerate(zip(target, spent, current, strict=True)):
        share = (part * whole - had) / remaining
        most = Fraction(1) if max_rise is None else min(Fraction(1), max_rise * (now or part))
        shares.append(share)
        if not 0 <= share <= most:
            nearest = (had + (most if share > most else 0) * remaining) / whole
            beyond.append(
                OutOfReach(
                    index=index, target=part * whole, spent=had, share=share, most=most, nearest=nearest
                )
            )
    if beyond:
        raise OutOfReachError(beyond)
    return shares
