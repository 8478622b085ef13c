"""The state that travels inside the trainer's checkpoint: all it takes to go on, in a few kilobytes.

It holds the recipe in force, where the pools were and their fingerprints, and the snapshot. Ranks
other than the writer start from it and open no file of the run folder. A manifest holds the same
and serves in its place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

from recipe.config import Recipe, recipe_from_plain, recipe_to_plain
from recipe.errors import RecipeError
from recipe.mixing.opening import open_pools
from recipe.mixing.snapshot import Snapshot
from recipe.mixing.withdrawals import Withdrawals, refuse_erased
from recipe.run.canonical import Plain, digest
from recipe.run.head import check_sums
from recipe.run.holdings import Holding, Holdings, changed, known_paths, refuse_changed
from recipe.run.manifest import read_manifest
from recipe.run.stream import RunStream
from recipe.run.turns import TurnAt

FORMAT = 2
MAGIC = b"recipe state "
_LARGEST = 1 << 30


@dataclass(frozen=True, kw_only=True)
class State:
    """A place in a run, complete but for the tokens."""

    run: str
    version: int
    """Of the recipe."""
    recipe: Recipe
    holdings: Holdings
    turn: TurnAt
    """The turn from which these hold."""
    snapshot: Snapshot
    withdrawn: Withdrawals = field(default_factory=Withdrawals.none)

    def to_bytes(self) -> bytes:
        """At most 4 KB, 250 bytes a pool and 16 bytes a pool and stage."""
        plain: Plain = {
            "run": self.run,
            "version": self.version,
            "recipe": recipe_to_plain(self.recipe),
            "pools": {name: [held.path, held.fingerprint] for name, held in self.holdings.items()},
            "turn": self.turn.to_plain(),
            "snapshot": self.snapshot.to_plain(),
        }
        if self.withdrawn.number:
            plain["withdrawals"] = self.withdrawn.to_plain()
        text = json.dumps(plain, separators=(",", ":"), ensure_ascii=False).encode()
        packed = zstandard.ZstdCompressor(level=19).compress(text)
        return MAGIC + f"{FORMAT} {digest(packed)}\n".encode() + packed

    @classmethod
    def from_bytes(cls, data: bytes) -> State:
        """What :meth:`to_bytes` gave.

        Raises:
            RecipeError: it is no state, of another format, or damaged.
            ValueError: it is not bytes.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise ValueError(
                f"the state is {data!r:.80}, of type {type(data).__name__}; "
                "expected the bytes that run.state() gave"
            )
        head, _, packed = bytes(data).partition(b"\n")
        words = head.removeprefix(MAGIC).split()
        if not head.startswith(MAGIC) or len(words) != 2:
            raise _unreadable(f"{len(data)} bytes that begin with {bytes(data[:16])!r}")
        if words[0] != str(FORMAT).encode():
            raise _unreadable(f"format {words[0].decode(errors='replace')}")
        if words[1] != digest(packed).encode():
            raise _unreadable("bytes that differ from what was written")
        with _told("the state"):
            plain = json.loads(zstandard.ZstdDecompressor().decompress(packed, max_output_size=_LARGEST))
            return cls(
                run=plain["run"],
                version=plain["version"],
                recipe=recipe_from_plain(plain["recipe"], source="the state"),
                holdings={
                    name: Holding(path=path, fingerprint=mark)
                    for name, (path, mark) in plain["pools"].items()
                },
                turn=TurnAt.from_plain(plain["turn"]),
                snapshot=Snapshot.from_plain(plain["snapshot"]),
                withdrawn=withdrawals_of(plain),
            ).checked()

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, object], source: str) -> State:
        """The place that a manifest states.

        Raises:
            RecipeError: it states none.
        """
        plain: Plain = dict(manifest)
        with _told(source):
            return cls(
                run=plain["run"],
                version=plain["recipe"]["version"],
                recipe=recipe_from_plain(plain["recipe"]["resolved"], source=source),
                holdings={name: Holding.from_plain(pool) for name, pool in plain["pools"].items()},
                turn=TurnAt.from_plain(plain["turn"]),
                snapshot=Snapshot.from_plain(plain["snapshot"]),
                withdrawn=withdrawals_of(plain),
            ).checked()

    def checked(self) -> State:
        """Itself, once its parts go together.

        Raises:
            ValueError: they are not of one run.
        """
        names, places = list(self.recipe.pools), self.snapshot.pools
        if set(self.holdings) != set(names) or len(places) != len(names):
            raise ValueError(
                f"{len(places)} pools in the snapshot, {len(self.holdings)} held, {len(names)} named"
            )
        check_sums(self.snapshot)
        num_stages = len(self.recipe.stages)
        stages = [pool.cursor.stage for pool in places] + [self.snapshot.stage]
        if max(stages) >= num_stages:
            raise ValueError(f"stage {max(stages)} of a recipe of {num_stages}")
        return self


@contextmanager
def _told(source: str) -> Iterator[None]:
    """Turn what no state can be made of into one RecipeError."""
    try:
        yield
    except (ValueError, TypeError, LookupError, AttributeError, zstandard.ZstdError) as error:
        raise RecipeError.single(
            f"{source}: no place in a run",
            source,
            given=str(error),
            expected="recipe, pools and snapshot of one run, as this version writes them",
            fix="take it from a copy, or open another step of the run; `recipe audit` names every fault",
        ) from error


def withdrawals_of(plain: Mapping[str, Any]) -> Withdrawals:
    """What a manifest, a state or a branch's first row says was withdrawn."""
    stated = plain.get("withdrawals")
    return Withdrawals.none() if stated is None else Withdrawals.from_plain(stated)


def stream_from(state: bytes | str | Path, pools_root: str | Path | None = None) -> RunStream:
    """The stream from a state, or from a manifest file: no run folder is needed, nothing is written.

    Args:
        state: what ``run.state(step)`` gave, or the path of a manifest.
        pools_root: where the pools are on this machine; default: where they were.

    Returns:
        A stream whose ``step`` is the first one not consumed.

    Raises:
        RecipeError: the state is damaged, or a pool is missing or another one.
    """
    if isinstance(state, str | Path):
        place = State.from_manifest(read_manifest(Path(state)), str(state))
    else:
        place = State.from_bytes(state)
    root = None if pools_root is None else Path(pools_root)
    pools = open_pools(place.recipe, known_paths(place.recipe, place.holdings, root))
    fix = "put the data back that the run was served from"
    refuse_changed(changed(place.holdings, pools), fix=fix)
    refuse_erased(place.recipe, pools, place.withdrawn, f"run {place.run}", fix)
    floor = place.snapshot.step if place.turn.step else 0
    return RunStream(place.recipe, pools, [place.snapshot], floor=floor, withdrawn=place.withdrawn)


def step_of(state: bytes) -> int:
    """The first step that is not consumed in a state."""
    return State.from_bytes(state).snapshot.step


def _unreadable(given: str) -> RecipeError:
    return RecipeError.single(
        "the state cannot be read",
        "state",
        given=given,
        expected=f"the bytes that run.state(step) gave, of format {FORMAT}",
        fix="take the state from another checkpoint, or start from a manifest of the run",
    )
