"""The full state of a stream at a step: a few integers per pool, no random state, no buffer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

SNAPSHOT_FORMAT = 1
"""Version of the plain form of a snapshot."""


@dataclass(frozen=True, slots=True)
class Cut:
    """An arrangement in which a block was open: of its sequences ``served..stop`` went on to the next one."""

    stage: int
    """Under whose rule it was arranged."""
    served: int
    withdrawn: int = 0
    """Withdrawals of the pool that it left out."""
    stop: int | None = None
    """None: all sequences from ``served`` on; else a returned range was cut."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cursor:
    """A place in a pool's reading: of the pool, or of a returned range."""

    epoch: int = 0
    """Readings of the pool completed; of a returned range: the epoch that it belongs to."""
    block: int = 0
    """Block of this epoch's reading order; their number: all are served, returned ranges are being read."""
    stage: int = -1
    """Stage under whose rule the block is open; -1 while nothing of it was served."""
    sequence: int = 0
    """Sequences of the block served under that rule."""
    cuts: tuple[Cut, ...] = ()
    """Arrangements in which the block was open before; usually empty."""
    stop: int | None = None
    """Of a returned range: the sequence at which it ends; None: the last of its block."""
    withdrawn: int = 0
    """Withdrawals of the pool in force when the block was arranged."""
    prefix: tuple[int, int] | None = None
    """Units of this epoch and of its extents, where the pool has grown since the epoch began."""


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
    """Documents begun in the first epoch; what is distinct after skips, growth and the like, audits tell."""
    separators: int = 0
    """Stored end marks that were left out (``eos_keep``); in the plain form where there are any."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Tokens not served, by reason."""
    held: tuple[Cursor, ...] = ()
    """Returned ranges, in the order in which they are read, all before the pool's epoch turns."""


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
            ValueError: another format, a field that is missing or unknown, or no whole number where one
                must be.
        """
        values = dict(plain)
        if values.pop("format", None) != SNAPSHOT_FORMAT:
            raise ValueError(f"snapshot format {plain.get('format')!r}, expected {SNAPSHOT_FORMAT}")
        try:
            pools = tuple(_pool_from_plain(pool) for pool in values.pop("pools"))
            left, ended = tuple(values.pop("left")), values.pop("ended")
            _check_whole({**values, **{f"left.{k}": index for k, index in enumerate(left)}})
            if type(ended) is not bool:
                raise ValueError(f"not a snapshot: ended is {ended!r:.40}")
            return cls(pools=pools, left=left, ended=ended, **values)
        except (TypeError, LookupError, AttributeError) as error:
            raise ValueError(f"not a snapshot: {error}") from error


def _check_whole(values: Mapping[str, Any], *, signed: tuple[str, ...] = ()) -> None:
    """Raise ValueError unless all are whole numbers of 64 bits, from -1 on, or signed and of any size."""
    for name, value in values.items():
        if type(value) is not int or (name not in signed and not -1 <= value < 1 << 63):
            raise ValueError(f"not a snapshot: {name} is {value!r:.40}")


def _pool_to_plain(pool: PoolState) -> dict[str, Any]:
    plain = _cursor_to_plain(pool.cursor)
    if pool.held:
        plain["held"] = [_cursor_to_plain(cursor) for cursor in pool.held]
    plain["debt"] = pool.debt
    plain.update({name: getattr(pool, name) for name in COUNTS})
    if pool.separators:
        plain["separators"] = pool.separators
    if pool.dropped:
        plain["dropped"] = dict(sorted(pool.dropped.items()))
    return plain


def _pool_from_plain(plain: Mapping[str, Any]) -> PoolState:
    values = dict(plain)
    cursor = _cursor_from_plain({key: values.pop(key) for key in CURSOR_KEYS if key in values})
    held = tuple(_cursor_from_plain(each) for each in values.pop("held", ()))
    dropped = dict(values.pop("dropped", {}))
    _check_whole({**values, **dropped}, signed=("debt", "owed"))
    return PoolState(cursor=cursor, held=held, dropped=dropped, **values)


CURSOR_KEYS = ("cursor", "stop", "withdrawn", "prefix", "cuts")
"""Keys of a cursor in a pool's plain form; all but the first are left out where they say nothing."""


def _cursor_to_plain(cursor: Cursor) -> dict[str, Any]:
    """A place is ``[epoch, block, stage, sequence]``, a cut ``[stage, served, withdrawn?, stop?]``."""
    plain: dict[str, Any] = {"cursor": [cursor.epoch, cursor.block, cursor.stage, cursor.sequence]}
    if cursor.stop is not None:
        plain["stop"] = cursor.stop
    if cursor.withdrawn:
        plain["withdrawn"] = cursor.withdrawn
    if cursor.prefix is not None:
        plain["prefix"] = list(cursor.prefix)
    if cursor.cuts:
        plain["cuts"] = [_cut_to_plain(cut) for cut in cursor.cuts]
    return plain


def _cut_to_plain(cut: Cut) -> list[int]:
    if cut.stop is not None:
        return [cut.stage, cut.served, cut.withdrawn, cut.stop]
    return [cut.stage, cut.served, cut.withdrawn] if cut.withdrawn else [cut.stage, cut.served]


def _cursor_from_plain(plain: Mapping[str, Any]) -> Cursor:
    values = dict(plain)
    epoch, block, stage, sequence = values.pop("cursor")
    units = values.pop("prefix", None)
    cuts = tuple(Cut(*cut) for cut in values.pop("cuts", ()))
    place = {"epoch": epoch, "block": block, "stage": stage, "sequence": sequence, **values}
    for cut in cuts:
        _check_whole({name: value for name, value in asdict(cut).items() if value is not None})
    _check_whole({**place, **({} if units is None else {"units": units[0], "of extents": units[1]})})
    return Cursor(cuts=cuts, prefix=None if units is None else (units[0], units[1]), **place)


def start_of(num_pools: int) -> Snapshot:
    """The snapshot before the first step.

    >>> Snapshot.from_plain(start_of(2).to_plain()) == start_of(2)
    True
    """
    return Snapshot(pools=tuple(PoolState() for _ in range(num_pools)))


def read_from_beginning(snapshot: Snapshot, pools: set[int]) -> Snapshot:
    """The snapshot with some pools at the beginning of their reading; what they gave stays counted."""
    return replace(
        snapshot,
        pools=tuple(
            replace(pool, cursor=Cursor(), held=()) if index in pools else pool
            for index, pool in enumerate(snapshot.pools)
        ),
    )
