"""A place in a run: the state there, the run as manifests state it from there, and its stream."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from recipe.config import fingerprint
from recipe.mixing.snapshot import Snapshot
from recipe.pools import Pool
from recipe.run.canonical import hash_of
from recipe.run.folder import RunFolder
from recipe.run.head import snapshot_of
from recipe.run.hints import Hints
from recipe.run.holdings import Holding
from recipe.run.ledger import row_at
from recipe.run.row import Row
from recipe.run.state import State
from recipe.run.statement import Subject
from recipe.run.stream import RunStream


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where to open: the state there and the stored recipe it belongs to."""

    state: State
    version_hash: str
    from_state: bool
    undone: int | None = None
    """Row of a turn at the very step that the place comes before: going on from here discards it."""
    known: Row | None = None
    """Last row of the ledger when the place was found: what others write later is not taken into account."""


def subject_of(place: Place, pools: Mapping[str, Pool], differing: Container[str] = ()) -> Subject:
    """The run as manifests state it, with the pools as they are now."""
    state = place.state
    return Subject(
        name=state.run,
        recipe=state.recipe,
        version=state.version,
        version_hash=place.version_hash,
        holdings={
            name: Holding.of(pool)
            if name in differing or name not in state.holdings or not state.holdings[name].documents
            else replace(state.holdings[name], path=str(pool.path))
            for name, pool in pools.items()
        },
        turn=state.turn,
        withdrawn=state.withdrawn,
    )


def stream_of(folder: RunFolder, subject: Subject, pools: Mapping[str, Pool], at: Snapshot) -> RunStream:
    """The stream of a run's last turn, opened at a snapshot, with its hints."""
    turn = subject.turn
    floor, places = turn.step, [at]
    if (turn.row or turn.step) and not turn.is_pending:
        places = [snapshot_of(row_at(folder.ledger, turn.offset)), at]
    stream = RunStream(subject.recipe, pools, places, floor=floor, withdrawn=subject.withdrawn)
    marks = {name: pool.fingerprint for name, pool in pools.items()}
    identity = hash_of([fingerprint(subject.recipe), marks, turn.mark])
    stream.attach(Hints(folder, identity), folder.ledger)
    return stream
