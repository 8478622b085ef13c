"""Policies: what decides on new shares while a run goes on, from the losses of its pools.

A policy is called with a view of the run and answers with shares for the pools that have one; a pool without
a share stays without. It keeps nothing itself: what it wants to remember goes into the answer and comes back
with the next view. Answers are exact, in whole 10**-9, so that they can be written down.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import exp, isfinite, log, sqrt
from typing import Any, Protocol

from recipe.maths.shares import SHARE_GRAIN, from_weights, parse_weight, to_grain

Number = int | float | str
"""A parameter as a recipe may write it; text is read exactly."""


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """What a policy sees of a run, at a batch end."""

    step: int
    """Steps consumed."""
    positions: int
    """Positions consumed."""
    pools: tuple[str, ...]
    shares: tuple[Fraction, ...]
    """Shares in force, in the order of the pools."""
    losses: Mapping[str, float]
    """Mean loss of a pool since the last decision, or on its validation set; pools may be missing."""
    spent: Mapping[str, int]
    """Counted tokens that each pool has served."""
    memory: Mapping[str, Any] = field(default_factory=dict)
    """What the last answer wanted to remember; empty at first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What a policy decided."""

    shares: Mapping[str, Fraction]
    """Of every pool, exact; they sum to one."""
    memory: Mapping[str, Any] = field(default_factory=dict)
    """Plain values, fit for JSON."""


class Policy(Protocol):
    """Decides on shares: a pure function of the view."""

    def __call__(self, view: View) -> Answer:
        """New shares, and what to remember."""
        ...


@dataclass(frozen=True, kw_only=True)
class DynamicLoading:
    """Dynamic batch loading: more of the pools that are furthest above their reference loss.

    ``share ∝ share in force * exp(max(loss - reference, 0))``

    Source:
        Xia, Gao, Zeng and Chen, *Sheared LLaMA: Accelerating Language Model Pre-training via Structured
        Pruning* (2023), algorithm 1.

    >>> policy = DynamicLoading(reference={"web": 2, "code": "1.5"})
    >>> half = (Fraction(1, 2), Fraction(1, 2))
    >>> view = View(step=9, positions=9000, pools=("web", "code"), shares=half, spent={"web": 10, "code": 10},
    ...             losses={"web": 2 + log(2), "code": 1.2})
    >>> [str(share) for share in policy(view).shares.values()]     # (2, 1) / 3
    ['666666667/1000000000', '333333333/1000000000']
    """

    reference: Mapping[str, Number]
    """Loss that each pool is to reach."""
    floor: Number = "0.000001"
    """Least share of a pool that has one."""

    def __call__(self, view: View) -> Answer:
        """Shares by how far each loss is above its reference.

        Raises:
            ValueError: a pool with a share has no loss, or no reference loss.
        """
        drawn = drawn_pools(view)
        losses = finite(drawn, view.losses, "loss")
        reference = finite(drawn, self.reference, "reference loss")
        excess = {pool: max(losses[pool] - reference[pool], 0.0) for pool in drawn}
        most = max(excess.values())
        weights = {pool: float(share) * exp(excess[pool] - most) for pool, share in drawn.items()}
        return Answer(shares=exact_shares(weights, view.pools, parse_weight(self.floor)))


@dataclass(frozen=True, kw_only=True)
class OnlineMixing:
    """Online data mixing: a bandit whose arms are the pools and whose reward is the loss.

    A pool that is read and still has a high loss has more to teach. Rewards are smoothed and weighted by
    importance, ``R = a * R + (1 - a) * loss / share``; with K pools and the exploration rate
    ``E(t) = min(1 / K, sqrt(ln K / (K * t)))`` of decision t, ``share = (1 - K * E(t)) * exp(E(t - 1) * R) /
    sum of exp(E(t - 1) * R) + E(t)``. While E is 1 / K all pools have the same share. The recipe's shares are
    those of decision 1, so the first answer is that of decision 2. A pool without a loss keeps its reward,
    which is 0 before it has had one: it then counts as one that teaches nothing.

    Source:
        Albalak, Pan, Raffel and Wang, *Efficient Online Data Mixing For Language Model Pre-Training* (2023),
        algorithm 1; after Exp3 of Auer, Cesa-Bianchi, Freund and Schapire, *The Nonstochastic Multiarmed
        Bandit Problem* (2002).

    >>> policy = OnlineMixing(smoothing=0)
    >>> half = (Fraction(1, 2), Fraction(1, 2))
    >>> view = View(step=9, positions=9000, pools=("web", "code"), shares=half, spent={"web": 10, "code": 10},
    ...             losses={"web": 4.0, "code": 2.0})
    >>> answer = policy(view)     # R = 8 and 4, E(1) = 0.5, E(2) = 0.41628: 0.16745 * 0.88080 + 0.41628
    >>> [round(float(share), 4) for share in answer.shares.values()]
    [0.5638, 0.4362]
    >>> answer.memory
    {'decision': 2, 'rewards': {'web': '8.0', 'code': '4.0'}}
    """

    smoothing: Number = "0.9"
    """Part of the earlier reward in the new one, 0 or more and below 1."""
    floor: Number = "0.000001"
    """Least share of a pool that has one; below the exploration rate it has no effect."""

    def __call__(self, view: View) -> Answer:
        """Shares by smoothed, importance-weighted losses; a pool without a loss keeps its reward, 0 at first.

        Raises:
            ValueError: a loss is not finite, or the smoothing out of its range.
        """
        smoothing = float(parse_weight(self.smoothing))
        if not 0 <= smoothing < 1:
            raise ValueError(f"smoothing {self.smoothing} is not in 0..1")
        drawn = drawn_pools(view)
        losses = finite([pool for pool in drawn if pool in view.losses], view.losses, "loss")
        rewards = {pool: float(reward) for pool, reward in dict(view.memory.get("rewards", {})).items()}
        for pool, loss in losses.items():
            reward = loss / float(drawn[pool])
            rewards[pool] = smoothing * rewards.get(pool, 0.0) + (1 - smoothing) * reward
        decision = int(view.memory.get("decision", 1)) + 1
        shares = _bandit_shares({pool: rewards.get(pool, 0.0) for pool in drawn}, decision)
        return Answer(
            shares=exact_shares(shares, view.pools, parse_weight(self.floor)),
            memory={
                "decision": decision,
                "rewards": {pool: repr(reward) for pool, reward in rewards.items()},
            },
        )


def _bandit_shares(rewards: Mapping[str, float], decision: int) -> dict[str, float]:
    arms = len(rewards)
    before, rate = (min(1 / arms, sqrt(log(arms) / (arms * turn))) for turn in (decision - 1, decision))
    most = max(rewards.values())
    powers = {pool: exp(before * (reward - most)) for pool, reward in rewards.items()}
    whole = sum(powers.values())
    return {pool: (1 - arms * rate) * power / whole + rate for pool, power in powers.items()}


POLICIES = (DynamicLoading, OnlineMixing)
"""Those that a recipe may name without further ado."""


def drawn_pools(view: View) -> dict[str, Fraction]:
    """The pools that have a share, with it."""
    return {pool: share for pool, share in zip(view.pools, view.shares, strict=True) if share > 0}


def finite(pools: Iterable[str], given: Mapping[str, Number], what: str) -> dict[str, float]:
    """A finite number of every pool.

    Raises:
        ValueError: a pool has none; the message names it.
    """
    pools = list(pools)
    if missing := [pool for pool in pools if pool not in given]:
        raise ValueError(f"no {what} of {', '.join(missing)}")
    numbers = {pool: float(given[pool]) for pool in pools}
    if wrong := [pool for pool in pools if not isfinite(numbers[pool])]:
        raise ValueError(f"{what} of {wrong[0]}: {numbers[wrong[0]]} is not finite")
    return numbers


def exact_shares(weights: Mapping[str, float], pools: Iterable[str], floor: Fraction) -> dict[str, Fraction]:
    """Exact shares in proportion to weights, none below the floor; pools without a weight have none.

    What pools at the floor get more, the others give in proportion.

    Args:
        weights: of the pools that take part; at least one above 0.
        pools: all pools, in the order of the result.
        floor: least share, at least 10**-9.

    Raises:
        ValueError: no weight is above 0, or the floor is below 10**-9 or more than all pools can have.

    >>> shares = exact_shares({"a": 3.0, "b": 1.0, "c": 0.0}, "abcd", Fraction(1, 100))
    >>> [str(share) for share in shares.values()]
    ['297/400', '99/400', '1/100', '0']
    """
    if not Fraction(1, SHARE_GRAIN) <= floor <= Fraction(1, len(weights)):
        raise ValueError(f"floor {floor} is not in 10**-9..1/{len(weights)}")
    shares = from_weights({pool: Fraction(weight) for pool, weight in weights.items()})
    low = set[str]()
    while below := {pool for pool, share in shares.items() if share < floor} - low:
        low |= below
        left = 1 - floor * len(low)
        rest = sum((Fraction(weights[pool]) for pool in shares if pool not in low), Fraction(0))
        shares = {pool: floor if pool in low else Fraction(weights[pool]) * left / rest for pool in shares}
    return {pool: Fraction(0) for pool in pools} | to_grain(shares)
