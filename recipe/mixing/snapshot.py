"""The full state of a stream at a step: a few integers per pool, no random state, no buffer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SNAPSHOT_FORMAT = 1
"""Version of the plain form of a snapshot."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A stage under whose rule a block was open, and the sequences it served of it."""

    stage: int
    served: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Cursor:
    """A pool's place in its reading."""

    epoch: int = 0
    """Readings of the pool completed."""
    block: int = 0
    """Block of this epoch's reading order."""
    stage: int = -1
    """Stage under whose rule the block is open; -1 while nothing of it was served."""
    sequence: int = 0
    """Sequences of the block served under that rule."""
    cuts: tuple[Cut, ...] = ()
    """Rules under which the block was served before; usually empty."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolState:
    """What one pool has given so far, in tokens, and where its reading stands.

    All counts are cumulative over the run.
    """

    cursor: Cursor = field(default_factory=Cursor)
    debt: int = 0
    """Tokens ahead (+) or behind (-) of its share in this leg, times the leg's denominator."""
    owed: int = 0
    """Its share of what was counted, in whole tokens."""
    spent: int = 0
    """Counted tokens served."""
    body: int = 0
    overlap: int = 0
    special: int = 0
    padding: int = 0
    labels: int = 0
    sequences: int = 0
    documents: int = 0
    """Documents begun, over all epochs."""
    distinct: int = 0
    """Documents begun in the first epoch: distinct ones."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Tokens not served, by reason."""


COUNTS = (
    "owed",
    "spent",
    "body",
    "overlap",
    "special",
    "padding",
    "labels",
    "sequences",
    "documents",
    "distinct",
)
"""The cumulative whole-number fields of a PoolState."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Snapshot:
    """The state once steps ``0..step - 1`` are consumed."""

    step: int = 0
    stage: int = 0
    """Stage of the last step consumed: the next stage is entered with its first step."""
    positions: int = 0
    """Positions of the run consumed."""
    stage_positions: int = 0
    """Positions of the stage consumed."""
    sequences: int = 0
    """Sequences of the run consumed."""
    chunk: int = 0
    """Chunks of the stage closed."""
    counted: int = 0
    """Counted tokens of this leg."""
    left: tuple[int, ...] = ()
    """Pools that left the stage, in order (a pool that runs dry under ``redistribute``)."""
    ended: bool = False
    """The run ended here before its planned length (a pool ran dry under ``stop``)."""
    pools: tuple[PoolState, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """A mapping of plain values that survives JSON and YAML unchanged."""
        return {
            "format": SNAPSHOT_FORMAT,
            "step": self.step,
            "stage": self.stage,
            "positions": self.positions,
            "stage_positions": self.stage_positions,
            "sequences": self.sequences,
            "chunk": self.chunk,
            "counted": self.counted,
            "left": list(self.left),
            "ended": self.ended,
            "pools": [_pool_to_plain(pool) for pool in self.pools],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Snapshot:
        """The inverse of :meth:`to_plain`.

        Raises:
            ValueError: another format, or a field that is missing or unknown.
        """
        values = dict(plain)
        if values.pop("format", None) != SNAPSHOT_FORMAT:
            raise ValueError(f"snapshot format {plain.get('format')!r}, expected {SNAPSHOT_FORMAT}")
        try:
            pools = tuple(_pool_from_plain(pool) for pool in values.pop("pools"))
            return cls(pools=pools, left=tuple(values.pop("left")), **values)
        except (TypeError, KeyError) as error:
            raise ValueError(f"not a snapshot: {error}") from error


def _pool_to_plain(pool: PoolState) -> dict[str, Any]:
    cursor = pool.cursor
    place = [cursor.epoch, cursor.block, cursor.stage, cursor.sequence]
    plain: dict[str, Any] = {"cursor": place, "debt": pool.debt}
    if cursor.cuts:
        plain["cuts"] = [[cut.stage, cut.served] for cut in cursor.cuts]
    plain.update({name: getattr(pool, name) for name in COUNTS})
    if pool.dropped:
        plain["dropped"] = dict(sorted(pool.dropped.items()))
    return plain


def _pool_from_plain(plain: Mapping[str, Any]) -> PoolState:
    values = dict(plain)
    epoch, block, stage, sequence = values.pop("cursor")
    cuts = tuple(Cut(*cut) for cut in values.pop("cuts", ()))
    cursor = Cursor(epoch=epoch, block=block, stage=stage, sequence=sequence, cuts=cuts)
    return PoolState(cursor=cursor, dropped=dict(values.pop("dropped", {})), **values)


def start_of(num_pools: int) -> Snapshot:
    """The snapshot before the first step.

    >>> Snapshot.from_plain(start_of(2).to_plain()) == start_of(2)
    True
    """
    return Snapshot(pools=tuple(PoolState() for _ in range(num_pools)))
