"""Streams of the turns before the one that a run is opened in, each opened once a step of it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from recipe.errors import RecipeError
from recipe.mixing.opening import open_named
from recipe.pools import Pool
from recipe.pools.views import join_families
from recipe.run.folder import RunFolder, read_version
from recipe.run.head import snapshot_of
from recipe.run.holdings import changed
from recipe.run.ledger import row_at
from recipe.run.place import Place, stream_of, subject_of
from recipe.run.row import Row
from recipe.run.state import State
from recipe.run.stream import RunStream
from recipe.run.turns import TurnAt, turn_before


def stream_before(folder: RunFolder, state: State, pools: Mapping[str, Pool]) -> RunStream:
    """The stream of the turn before that of a state.

    Raises:
        RecipeError: it is a branch's beginning, or the pools of then are gone.
    """
    row = row_at(folder.ledger, state.turn.offset)
    before = turn_before(folder.ledger, row)
    if before is None:
        raise before_branch(folder, row)
    version = read_version(folder, int(before.data["recipe"]), before.data["recipe_hash"])
    holdings = dict(state.holdings)
    for name, marks in row.data.get("pools", {}).items() if row.kind == "data" else ():
        holdings[name] = replace(holdings[name], fingerprint=marks["before"])
    for name, marks in row.data.get("grown", {}).items():
        path = str(version.recipe.pool_path(name).absolute())
        holdings[name] = replace(holdings[name], fingerprint=marks["before"], path=path)
    withdrawn = state.withdrawn
    earlier = replace(
        state,
        withdrawn=withdrawn.up_to(withdrawn.number - 1) if row.kind == "withdraw" else withdrawn,
        version=version.version,
        recipe=version.recipe,
        holdings={name: holdings[name] for name in version.recipe.pools},
        turn=TurnAt.of(before),
        snapshot=snapshot_of(before),
    )
    return earlier_stream(folder, earlier, pools, row.end_step)


def earlier_stream(folder: RunFolder, state: State, pools: Mapping[str, Pool], stop: int) -> RunStream:
    """The stream of an earlier turn, which ended at step ``stop``."""
    mine = {name: pools[name] for name in state.recipe.pools}
    for name in changed(state.holdings, mine):
        with suppress(RecipeError):
            mine[name] = open_named(state.recipe, name, Path(state.holdings[name].path))
    join_families(state.recipe, mine)
    if changed(state.holdings, mine):
        raise RecipeError.single(
            "a step before new data was accepted",
            f"step {stop - 1} or before",
            given="data that was replaced later",
            expected=f"a step from {stop} on",
            fix="put the old data back and open an older step",
        )
    place = Place(state=state, version_hash="", from_state=False)
    stream = stream_of(folder, subject_of(place, mine), mine, state.snapshot)
    stream.step = stop
    if state.turn.step:
        stream.follow(lambda: stream_before(folder, state, pools))
    return stream


def before_branch(folder: RunFolder, created: Row) -> RecipeError:
    """The error that a branch has no steps before the one it began at."""
    parent = created.data["parent"]
    return RecipeError.single(
        f"{folder.path}: a step before the branch",
        f"steps before {created.end_step}",
        given="a branch, which begins where it left its parent",
        expected=f"a step from {created.end_step} on",
        fix=f"open the parent, {parent['run']} ({parent['path']}), for what came before",
    )
