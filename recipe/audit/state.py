"""The plain form of a snapshot, read and written apart from the stream's own code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

SNAPSHOT_FORMAT = 1
COUNTS = (
    "owed", "spent", "body", "overlap", "special", "padding", "labels", "sequences", "documents", "distinct",
)  # fmt: skip
"""Cumulative whole numbers of every pool."""
SEPARATORS = "separators"
"""One more, which is left out where it is 0."""
WHOLE = ("step", "stage", "positions", "stage_positions", "sequences", "chunk", "counted")
"""Whole numbers of a state."""
LARGEST = 1 << 62
"""No count is larger."""


class Malformed(Exception):  # noqa: N818 - caught inside the audit, becomes a finding
    """A value that is not of the form it should have."""

    def __init__(self, field: str, expected: str, observed: object) -> None:
        """``field`` is its key, dotted."""
        super().__init__(f"{field}: expected {expected}, observed {observed!r}")
        self.field = field
        self.expected = expected
        self.observed = observed


class Cut(NamedTuple):
    """A stage under whose rule a block was open, and the sequences it served of it."""

    stage: int
    served: int
    withdrawn: int = 0
    """Withdrawals in force when the block was planned under it."""
    stop: int | None = None
    """Where a returned range ended; None: all that was left went on."""

    def to_plain(self) -> list[int | None]:
        """As a snapshot holds it: what is 0 or none at the end is left out."""
        if self.stop is not None:
            return [self.stage, self.served, self.withdrawn, self.stop]
        return [self.stage, self.served, *([self.withdrawn] if self.withdrawn else [])]


@dataclass(frozen=True, slots=True)
class Cursor:
    """A pool's place in its reading; ``stage`` is -1 while nothing of the block was served."""

    epoch: int = 0
    block: int = 0
    stage: int = -1
    sequence: int = 0
    cuts: tuple[Cut, ...] = ()
    stop: int | None = None
    """Where a returned range ends; None: the block is read to its end."""
    withdrawn: int = 0
    """Withdrawals in force when the block was planned."""
    prefix: tuple[int, int] | None = None
    """Units of the epoch and of its extents, where the pool has grown since it began."""

    def to_plain(self) -> dict[str, Any]:
        """As a snapshot holds it."""
        plain: dict[str, Any] = {"cursor": [self.epoch, self.block, self.stage, self.sequence]}
        if self.stop is not None:
            plain["stop"] = self.stop
        if self.withdrawn:
            plain["withdrawn"] = self.withdrawn
        if self.prefix is not None:
            plain["prefix"] = list(self.prefix)
        if self.cuts:
            plain["cuts"] = [cut.to_plain() for cut in self.cuts]
        return plain


@dataclass(frozen=True, slots=True)
class PoolState:
    """What a pool gave since the run's start, and where its reading stands."""

    cursor: Cursor = Cursor()
    debt: int = 0
    counts: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys((*COUNTS, SEPARATORS), 0))
    dropped: Mapping[str, int] = field(default_factory=dict)
    held: tuple[Cursor, ...] = ()
    """Ranges that a skip gave back, to be read before the reading ends."""

    @property
    def ahead(self) -> int:
        """Spent less owed."""
        return self.counts["spent"] - self.counts["owed"]

    def to_plain(self) -> dict[str, Any]:
        """As a snapshot holds it."""
        plain = {**self.cursor.to_plain(), "debt": self.debt, **{name: self.counts[name] for name in COUNTS}}
        if self.counts[SEPARATORS]:
            plain[SEPARATORS] = self.counts[SEPARATORS]
        if self.dropped:
            plain["dropped"] = dict(sorted(self.dropped.items()))
        if self.held:
            plain["held"] = [place.to_plain() for place in self.held]
        return plain


@dataclass(frozen=True, kw_only=True, slots=True)
class State:
    """A snapshot as the audit reads it."""

    step: int = 0
    stage: int = 0
    positions: int = 0
    stage_positions: int = 0
    sequences: int = 0
    chunk: int = 0
    counted: int = 0
    left: tuple[int, ...] = ()
    ended: bool = False
    pools: tuple[PoolState, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """The plain form that rows and manifests hold."""
        return {
            "format": SNAPSHOT_FORMAT,
            **{name: getattr(self, name) for name in WHOLE},
            "left": list(self.left),
            "ended": self.ended,
            "pools": [pool.to_plain() for pool in self.pools],
        }

    def next_stage(self) -> State:
        """The same place as the beginning of the next stage: a new leg without debts."""
        pools = tuple(replace(pool, debt=0) for pool in self.pools)
        return replace(
            self, stage=self.stage + 1, stage_positions=0, chunk=0, counted=0, left=(), pools=pools
        )


def read_state(plain: object, num_pools: int, num_stages: int) -> State:
    """A snapshot from its plain form.

    Raises:
        Malformed: a field is missing, of another type, or out of the range that makes sense at all.
    """
    fields = mapping(plain, "snapshot")
    if fields.get("format") != SNAPSHOT_FORMAT:
        raise Malformed("snapshot.format", str(SNAPSHOT_FORMAT), fields.get("format"))
    values = {name: whole(fields.get(name), f"snapshot.{name}") for name in WHOLE}
    if values["stage"] >= num_stages:
        raise Malformed("snapshot.stage", f"0..{num_stages - 1}", values["stage"])
    left = [whole(pool, "snapshot.left") for pool in sequence(fields.get("left"), "snapshot.left")]
    if len(set(left)) != len(left) or any(pool >= num_pools for pool in left):
        raise Malformed("snapshot.left", f"different pools of 0..{num_pools - 1}", left)
    if not isinstance(fields.get("ended"), bool):
        raise Malformed("snapshot.ended", "true or false", fields.get("ended"))
    pools = sequence(fields.get("pools"), "snapshot.pools")
    if len(pools) != num_pools:
        raise Malformed("snapshot.pools", f"{num_pools} pools", len(pools))
    states = tuple(_read_pool(pool, f"snapshot.pools.{i}", num_stages) for i, pool in enumerate(pools))
    return State(**values, left=tuple(left), ended=fields["ended"], pools=states)


def _read_pool(plain: object, where: str, num_stages: int) -> PoolState:
    fields = mapping(plain, where)
    counts = {name: whole(fields.get(name), f"{where}.{name}") for name in COUNTS if name != "owed"}
    counts["owed"] = signed(fields.get("owed"), f"{where}.owed")
    counts[SEPARATORS] = whole(fields.get(SEPARATORS, 0), f"{where}.{SEPARATORS}")
    dropped = mapping(fields.get("dropped", {}), f"{where}.dropped")
    held = sequence(fields.get("held", []), f"{where}.held")
    return PoolState(
        _read_cursor(fields, where, num_stages),
        signed(fields.get("debt"), f"{where}.debt"),
        counts,
        {reason: whole(tokens, f"{where}.dropped.{reason}") for reason, tokens in dropped.items()},
        tuple(_read_cursor(mapping(place, f"{where}.held"), f"{where}.held", num_stages) for place in held),
    )


def _read_cursor(fields: Mapping[str, Any], where: str, num_stages: int) -> Cursor:
    place = sequence(fields.get("cursor"), f"{where}.cursor")
    if len(place) != 4 or not all(type(n) is int for n in place):
        raise Malformed(f"{where}.cursor", "epoch, block, stage and sequence", place)
    epoch, block, stage, at = place
    if min(epoch, block, at) < 0 or max(place) > LARGEST or not -1 <= stage < num_stages:
        raise Malformed(f"{where}.cursor", f"whole numbers >= 0, a stage of -1..{num_stages - 1}", place)
    cuts = tuple(
        _read_cut(cut, f"{where}.cuts", num_stages) for cut in sequence(fields.get("cuts", []), where)
    )
    stop = fields.get("stop")
    return Cursor(
        epoch,
        block,
        stage,
        at,
        cuts,
        None if stop is None else whole(stop, f"{where}.stop"),
        whole(fields.get("withdrawn", 0), f"{where}.withdrawn"),
        _read_prefix(fields.get("prefix"), f"{where}.prefix"),
    )


def _read_prefix(plain: object, where: str) -> tuple[int, int] | None:
    if plain is None:
        return None
    units = [whole(number, where) for number in sequence(plain, where)]
    if len(units) != 2 or not min(units):
        raise Malformed(where, "units of the epoch and of its extents", units)
    return units[0], units[1]


def _read_cut(plain: object, where: str, num_stages: int) -> Cut:
    cut = sequence(plain, where)
    if not 2 <= len(cut) <= 4 or not all(type(n) is int and n >= 0 for n in cut) or cut[0] >= num_stages:
        raise Malformed(where, "a stage, the sequences it served, withdrawals, and a stop", cut)
    return Cut(*cut)


def mapping(value: object, where: str) -> Mapping[str, Any]:
    """The value, if it is a mapping."""
    if not isinstance(value, dict):
        raise Malformed(where, "a mapping", value)
    return value


def sequence(value: object, where: str) -> list[Any]:
    """The value, if it is a list."""
    if not isinstance(value, list):
        raise Malformed(where, "a list", value)
    return value


def signed(value: object, where: str) -> int:
    """The value, if it is a whole number."""
    if type(value) is not int:
        raise Malformed(where, "a whole number", value)
    return value


def whole(value: object, where: str) -> int:
    """The value, if it is a whole number from 0 on that 64 bits hold."""
    if not 0 <= signed(value, where) <= LARGEST:
        raise Malformed(where, "a whole number >= 0", value)
    return signed(value, where)
