"""Pieces of work: rows whose numbers can be computed again from one snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from recipe.audit.account import Plain
from recipe.audit.chain import Entry
from recipe.audit.state import PoolState
from recipe.audit.terms import Terms


@dataclass(frozen=True, slots=True)
class Anew:
    """Pools whose reading goes on elsewhere from a turn on: where follows from their contents."""

    terms: Terms
    """Under which they were read."""
    pools: Mapping[str, PoolState]
    """By name from the turn on, what it was before."""
    grown: Mapping[str, str] = field(default_factory=dict)
    """Fingerprint of those that have more documents now, before they had."""
    next_epoch: frozenset[str] = frozenset()
    """Those that go on at their next epoch."""
    called: Mapping[str, str] = field(default_factory=dict)
    """The names that some had before."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A row whose numbers follow from the state at a step."""

    entry: Entry
    step: int
    planned: tuple[int, int] = (0, 0)
    """Of a chunk row: planned from, planned to."""
    reached: Mapping[str, PoolState] | None = None
    """Of a rewind row: the furthest state that it discards."""
    anew: Anew | None = None
    """Of a turn that moves readings."""


@dataclass(frozen=True, slots=True)
class Segment:
    """Rows that are computed again from one closing row; all their steps lie in one stage."""

    start: Entry
    stops: tuple[Stop, ...]
    stage: int
    positions: int
    terms: Terms
    """What the steps were served under."""
    drawn: frozenset[str]
    """Pools that they were served from."""

    @property
    def holdings(self) -> Mapping[str, Plain]:
        """The pools as rows state them."""
        return self.terms.holdings
