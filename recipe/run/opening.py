"""Opening a run at a checkpoint, or at the state a trainer saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from recipe.config import Recipe, difference, fingerprint
from recipe.errors import Problem, RecipeError
from recipe.mixing.opening import close_pools, open_pools, pool_problems
from recipe.mixing.snapshot import Snapshot
from recipe.run.accounts import Accounts
from recipe.run.canonical import hash_of
from recipe.run.checkpoint import Standing, Writer, check_nothing_lost, read_from_beginning
from recipe.run.folder import RecipeVersion, RunFolder, read_version
from recipe.run.head import Head, data_rows, find_checkpoint, read_head, snapshot_of
from recipe.run.hints import Hints
from recipe.run.holdings import (
    Holding,
    changed,
    known_paths,
    refuse_changed,
)
from recipe.run.ledger import Row, check_chain, row_at, rows_backwards
from recipe.run.manifest import manifest_path, read_manifest
from recipe.run.run import Run
from recipe.run.state import State
from recipe.run.statement import Subject
from recipe.run.stream import RunStream

NEW_DATA = (
    "put the old data back, or accept the new (recipe run --accept-data-change, in Python "
    "accept_data_change=True): the pool is then read from its beginning, what it gave before stays counted, "
    "and ledger and manifest record it"
)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where to open: the state there and the stored recipe it belongs to."""

    state: State
    version_hash: str
    from_state: bool


def open_run(
    path: str | Path,
    step: int | None = None,
    state: bytes | None = None,
    *,
    accept_data_change: bool = False,
    pools_root: str | Path | None = None,
) -> Run:
    """Open a run at its last checkpoint, at an older one, or at a state.

    Nothing is written before the first checkpoint. One that follows an older step than the last
    on record first puts a *rewind* on record: what was served after that step is discarded.

    Args:
        path: the run's folder.
        step: steps consumed; a checkpoint was written there (0 always counts as one).
        state: what ``run.state(step)`` gave and the trainer saved; its step needs no checkpoint.
        accept_data_change: go on although pools are not those of the run; each one that changed is
            read from its beginning. Needs a checkpoint, not a state.
        pools_root: where the pools are on this machine; default: where they were.

    Raises:
        RecipeError: no run, no such checkpoint, a damaged record, a pool missing or changed.
    """
    folder = RunFolder(Path(path))
    folder.check()
    place = find_place(folder, step, state)
    root = None if pools_root is None else Path(pools_root)
    paths = known_paths(place.state.recipe, place.state.holdings, root)
    return open_place(folder, place, paths, accept_data_change=accept_data_change)


def find_place(folder: RunFolder, step: int | None = None, state: bytes | None = None) -> Place:
    """Where a run opens: at a state, at the checkpoint of a step, or at its last one.

    Raises:
        RecipeError: no such checkpoint, or a record that is not what was written.
    """
    check_chain(folder.ledger)
    check_nothing_lost(folder)
    head = read_head(folder.ledger, step if state is None else None)
    if state is not None:
        return _place_of_state(folder, State.from_bytes(state), step)
    row = head.parent if step is None else find_checkpoint(folder.ledger, head, step)
    if row is not None:
        path = manifest_path(folder.path, int(row.data["manifest"]))
        manifest = read_manifest(path, row.data["manifest_hash"])
        place = State.from_manifest(manifest, str(path))
        return Place(state=place, version_hash=manifest["recipe"]["hash"], from_state=False)
    if step:
        raise _no_checkpoint(folder, head, step)
    return _start(folder)


def _start(folder: RunFolder) -> Place:
    """The run's beginning, from the first row and the recipe it names."""
    first = row_at(folder.ledger, 0)
    version = read_version(folder, int(first.data["recipe"]), first.data["recipe_hash"])
    state = State(
        run=first.data["run"],
        version=version.version,
        recipe=version.recipe,
        holdings={name: Holding.from_plain(pool) for name, pool in first.data["pools"].items()},
        readable_from=0,
        snapshot=snapshot_of(first),
    )
    return Place(state=state, version_hash=version.hash, from_state=False)


def _place_of_state(folder: RunFolder, state: State, step: int | None) -> Place:
    if step is not None and step != state.snapshot.step:
        raise RecipeError.single(
            f"{folder.path}: step and state differ",
            "step",
            given=step,
            expected=f"{state.snapshot.step}, the step of the state",
            fix="leave step out: the state knows its own",
        )
    version: RecipeVersion = read_version(folder, state.version)
    if fingerprint(version.recipe) != fingerprint(state.recipe):
        raise other_recipe(folder, version.recipe, state.recipe)
    _check_recorded(folder, state)
    return Place(state=state, version_hash=version.hash, from_state=True)


def _check_recorded(folder: RunFolder, state: State) -> None:
    """Refuse a state that goes on after new data was accepted which never came on record."""
    if not state.readable_from:
        return
    rows = data_rows(folder.ledger, None, state.snapshot.step)
    if not rows or rows[0].end_step != state.readable_from:
        raise RecipeError.single(
            f"{folder.path}: new data that is not on record",
            "state",
            given=f"data accepted at step {state.readable_from}, without a checkpoint after it",
            expected="data that the run's ledger names",
            fix="open the run at its last checkpoint with accept_data_change=True",
        )


def _accepted(folder: RunFolder, readable_from: int, step: int) -> Snapshot | None:
    """Where data was last accepted, as its row has it: steps from there on can be served again."""
    rows = data_rows(folder.ledger, None, step) if readable_from else []
    return snapshot_of(rows[0]) if rows and rows[0].end_step == readable_from else None


def open_place(
    folder: RunFolder, place: Place, paths: Mapping[str, Path], *, accept_data_change: bool = False
) -> Run:
    """A handle at a place, with the pools at these paths."""
    state = place.state
    pools = open_pools(state.recipe, paths)
    differing = changed(state.holdings, pools)
    try:
        if differing and accept_data_change and not place.from_state:
            if problems := pool_problems(state.recipe, pools):
                raise RecipeError("pools that do not go together", problems)
        else:
            refuse_changed(differing, fix=NEW_DATA)
    except RecipeError:
        close_pools(pools.values())
        raise
    snapshot = state.snapshot
    opened = read_from_beginning(
        snapshot, {k for k, name in enumerate(state.recipe.pools) if name in differing}
    )
    readable_from = snapshot.step if differing else state.readable_from
    accepted = None if differing else _accepted(folder, readable_from, snapshot.step)
    places = [opened] if accepted is None else [accepted, opened]
    stream = RunStream(state.recipe, pools, places, floor=places[0].step if readable_from else 0)
    marks = {name: pool.fingerprint for name, pool in pools.items()}
    identity = hash_of([fingerprint(state.recipe), marks, readable_from])
    stream.attach(Hints(folder, identity), folder.ledger)
    subject = Subject(
        name=state.run,
        recipe=state.recipe,
        version=state.version,
        version_hash=place.version_hash,
        holdings={
            name: Holding.of(pool)
            if name in differing or not state.holdings[name].documents
            else replace(state.holdings[name], path=str(pool.path))
            for name, pool in pools.items()
        },
        readable_from=readable_from,
    )
    head = read_head(folder.ledger)
    unfinished = head.reached.kind == "data" and not place.from_state
    standing = Standing(
        opened=snapshot,
        known=head.tail.last,
        rewinds=snapshot.step < head.reached.end_step or unfinished,
        after_data=place.from_state and 0 < readable_from == snapshot.step,
        changed=differing,
    )
    writer = Writer(folder, subject, Accounts(state.recipe), stream)
    return Run(folder, stream, writer, standing)


def other_recipe(folder: RunFolder, old: Recipe, new: Recipe) -> RecipeError:
    """The error that shows what a recipe changed against the one a run was started with."""
    lines = difference(old, new) or ["fingerprint: different"]
    fix = (
        "start another run for the changed recipe (recipe run … --name NAME, in Python another path), "
        "or give the recipe the run was started with"
    )
    problems = []
    for line in lines:
        key, _, change = line.partition(": ")
        problems.append(Problem(key, change or line, "as the run was started", fix))
    return RecipeError(f"{folder.path}: a run of another recipe", problems)


def _no_checkpoint(folder: RunFolder, head: Head, step: int) -> RecipeError:
    rows = (row for row in rows_backwards(folder.ledger, head.tail.end) if row.kind == "checkpoint")
    last: list[Row] = list(islice(rows, 8))
    steps = ", ".join(str(row.end_step) for row in reversed(last)) or "none but 0"
    return RecipeError.single(
        f"{folder.path}: no checkpoint at step {step}",
        "step",
        given=step,
        expected=f"a step with a manifest; the last ones are {steps}",
        fix="give one of these, or open with the state that the trainer saved at that step",
    )
