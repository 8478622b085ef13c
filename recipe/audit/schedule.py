"""The audit's own schedule: the same rule as the stream's, written apart so that it can disagree.

Shares are ``parts / whole``; an *excess* is what a pool was served beyond its share, in 1/whole
tokens. A pool may be drawn when a full sequence more leaves it at most ``(1 - 1/m)`` contexts
ahead, with ``m = max(1, 2k - 2)`` for k pools drawn. Of those the pool is drawn that first falls
``(1 - 1/m)`` contexts behind if others are served instead. After Tijdeman, "The chairman
assignment problem", 1980.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.audit.state import Malformed
from recipe.maths.kernels import kernel
from recipe.maths.rounding import owed

_LIMB = 31


@dataclass(frozen=True, slots=True)
class Contest:
    """Shares of one leg and the context of its sequences."""

    parts: tuple[int, ...]
    context: int
    carried: bool = False
    """Whether pools came into the leg ahead of their share or behind it, from the leg before."""

    @property
    def whole(self) -> int:
        """The denominator of the shares."""
        return sum(self.parts)

    @property
    def drawn(self) -> tuple[int, ...]:
        """Pools with a share above zero."""
        return tuple(pool for pool, part in enumerate(self.parts) if part)

    @property
    def scale(self) -> int:
        """m."""
        return max(1, 2 * len(self.drawn) - 2)

    @property
    def slack(self) -> int:
        """(m - 1) contexts, in 1/whole tokens: m times the furthest a pool runs ahead of its share."""
        return (self.scale - 1) * self.whole * self.context

    @property
    def bound(self) -> int:
        """The furthest a pool may be from its share, in 1/whole tokens: below one context, or below two."""
        return 2 * self.whole * self.context - 1 if self.carried else self.slack // self.scale

    def leave(self, pool: int) -> Contest:
        """The contest among the others, who begin anew."""
        parts = tuple(0 if p == pool else part for p, part in enumerate(self.parts))
        return Contest(parts, self.context)

    def without(self, pools: Sequence[int]) -> Contest:
        """The same contest, where some pools left it before."""
        return replace(self, parts=tuple(0 if p in pools else part for p, part in enumerate(self.parts)))

    def within_bound(self, excess: int) -> bool:
        """Whether a pool is as near to its share as the rule promises."""
        return abs(excess) <= self.bound


def drawn_next(contest: Contest, excess: Sequence[int]) -> int:
    """The pool that serves the next sequence, or -1 when none may (never from a true state).

    >>> contest, excess, picks = Contest((1, 3), 10), [0, 0], []
    >>> for _ in range(8):
    ...     picks.append(pool := drawn_next(contest, excess))
    ...     excess = [e - part * 10 + 40 * (p == pool) for p, (e, part) in enumerate(zip(excess, (1, 3)))]
    >>> picks
    [1, 0, 1, 1, 1, 0, 1, 1]
    """
    m, slack, whole = contest.scale, contest.slack, contest.whole
    best = -1
    for pool in contest.drawn:
        part = contest.parts[pool]
        if m * (excess[pool] + contest.context * (whole - part)) > slack:
            continue
        if best < 0 or (m * excess[pool] + slack) * contest.parts[best] < (m * excess[best] + slack) * part:
            best = pool
    return best


def carry(before: Contest, after: Contest, excess: Sequence[int], counted: int) -> list[int]:
    """What pools are ahead or behind when other shares begin, in 1/after.whole tokens.

    Whole tokens go on: those served less those owed by the old shares. All begin anew where a pool that
    had a share has none any more.

    Raises:
        Malformed: what a pool served in the old leg would be no whole number of tokens.

    >>> carry(Contest((1, 2), 10), Contest((1, 1), 10), [-10, 10], 10)
    [-6, 6]
    """
    if set(before.drawn) - set(after.drawn):
        return [0] * len(excess)
    ahead = []
    due = owed(before.parts, before.whole, counted)
    for over, part, tokens in zip(excess, before.parts, due, strict=True):
        served, rest = divmod(over + part * counted, before.whole)
        if rest:
            raise Malformed("snapshot.pools.debt", f"debts after {counted} tokens", list(excess))
        ahead.append(after.whole * (served - tokens))
    return ahead


class Ready(NamedTuple):
    """Sequences of the open blocks of all pools, end to end: pool p has ``at[p]..stop[p] - 1`` left."""

    counted: NDArray[np.int64]
    at: NDArray[np.int64]
    stop: NDArray[np.int64]


class Drawn(NamedTuple):
    """What a stretch of the schedule came to; ``waiting`` is the pool that has no sequence ready, or -1."""

    excess: list[int]
    furthest: list[int]
    sequences: int
    counted: int
    waiting: int


def draw(contest: Contest, excess: Sequence[int], ready: Ready, most: int) -> Drawn:
    """Draw up to ``most`` sequences; ``ready.at`` moves on in place.

    Raises:
        ValueError: no pool may be drawn: the state was never reached by the rule.
    """
    if 4 * contest.scale * contest.whole * contest.context >= 1 << 60 or max(map(abs, excess)) >= 1 << 60:
        drawn = _draw_plainly(contest, excess, ready, most)
    else:
        constants = (contest.whole, contest.context, contest.scale, contest.slack)
        now, furthest = np.array(excess, np.int64), np.zeros(len(excess), np.int64)
        state = (np.array(contest.parts, np.int64), now, furthest)
        sequences, counted, waiting = _draw(constants, state, ready, most)
        drawn = Drawn(now.tolist(), furthest.tolist(), int(sequences), int(counted), int(waiting))
    if drawn.waiting < -1:
        raise ValueError(f"no pool may be drawn: shares {contest.parts}, debts {list(drawn.excess)}")
    return drawn


def _draw_plainly(contest: Contest, excess: Sequence[int], ready: Ready, most: int) -> Drawn:
    """The same on Python integers, of any size."""
    now, furthest = list(excess), [0] * len(excess)
    total = done = 0
    while done < most:
        pool = drawn_next(contest, now)
        if pool < 0 or ready.at[pool] == ready.stop[pool]:
            return Drawn(now, furthest, done, total, pool if pool >= 0 else -2)
        tokens = int(ready.counted[ready.at[pool]])
        ready.at[pool] += 1
        now = [e - part * tokens for e, part in zip(now, contest.parts, strict=True)]
        now[pool] += contest.whole * tokens
        furthest = [max(f, abs(e)) for f, e in zip(furthest, now, strict=True)]
        total, done = total + tokens, done + 1
    return Drawn(now, furthest, done, total, -1)


@kernel
def _sooner(x: int, a: int, y: int, b: int) -> bool:
    """x / a < y / b exactly, for whole numbers below 2**61: products are compared limb by limb."""
    mask = (1 << _LIMB) - 1
    left = _product(x, b)
    right = _product(y, a)
    if left[0] != right[0]:
        return left[0] < right[0]
    if left[1] != right[1]:
        return left[1] < right[1]
    return (left[2] & mask) < (right[2] & mask)


@kernel
def _product(x: int, y: int) -> tuple[int, int, int]:
    """x * y in limbs of 31 bits, the highest first."""
    mask = (1 << _LIMB) - 1
    x1, x0, y1, y0 = x >> _LIMB, x & mask, y >> _LIMB, y & mask
    low = x0 * y0
    middle = x1 * y0 + x0 * y1 + (low >> _LIMB)
    return x1 * y1 + (middle >> _LIMB), middle & mask, low & mask


@kernel
def _draw(
    constants: tuple[int, int, int, int],
    state: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    ready: Ready,
    most: int,
) -> tuple[int, int, int]:
    whole, context, scale, slack = constants
    parts, excess, furthest = state
    total = 0
    for done in range(most):
        best = -1
        for pool in range(len(parts)):
            part = parts[pool]
            if part == 0 or scale * (excess[pool] + context * (whole - part)) > slack:
                continue
            if best < 0 or _sooner(
                scale * excess[pool] + slack, part, scale * excess[best] + slack, parts[best]
            ):
                best = pool
        if best < 0:
            return done, total, -2
        if ready.at[best] == ready.stop[best]:
            return done, total, best
        tokens = ready.counted[ready.at[best]]
        ready.at[best] += 1
        excess[best] += whole * tokens
        for pool in range(len(parts)):
            excess[pool] -= parts[pool] * tokens
            furthest[pool] = max(furthest[pool], abs(excess[pool]))
        total += tokens
    return most, total, -1
