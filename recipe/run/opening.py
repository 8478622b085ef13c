"""Opening a run at a checkpoint, or at the state a trainer saved."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from recipe.config import Recipe, difference, fingerprint
from recipe.errors import Problem, RecipeError
from recipe.mixing.opening import close_pools, open_named, open_pools, pool_problems
from recipe.mixing.snapshot import read_from_beginning
from recipe.mixing.turning import reopened
from recipe.mixing.withdrawals import refuse_erased
from recipe.pools import Pool
from recipe.pools.views import join_families
from recipe.run.checkpoint import Writer
from recipe.run.checkpoint_steps import checkpoint_steps, steps_shown
from recipe.run.folder import RecipeVersion, RunFolder, read_version
from recipe.run.head import Head, find_checkpoint, furthest_checkpoint, read_head, snapshot_of
from recipe.run.holdings import (
    Holding,
    changed,
    known_paths,
    refuse_changed,
    refuse_retokenised,
)
from recipe.run.ledger import check_chain, damaged, row_at
from recipe.run.lost import check_nothing_lost
from recipe.run.manifest import manifest_path, read_manifest
from recipe.run.place import Place, stream_of, subject_of
from recipe.run.row import TURN_KINDS, Row
from recipe.run.run import Run
from recipe.run.standing import Standing, Turning
from recipe.run.state import State, withdrawals_of
from recipe.run.statement import Subject
from recipe.run.stream import RunStream
from recipe.run.taken_down import cleared, refuse_serving_again
from recipe.run.turns import TurnAt, find_turn, turn_before

NEW_DATA = (
    "put the old data back, or accept the new (recipe run --accept-data-change, in Python "
    "accept_data_change=True): the pool is then read from its beginning, what it gave before stays counted, "
    "and ledger and manifest record it"
)


ERASED = (
    "put the folder back that holds them, or withdraw them here, too: recipe withdraw {run} --erased; of a "
    "pool that the run has not had before, use a copy without them: recipe pools withdraw --renumber"
)


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
        step: steps consumed; a checkpoint was written there (the run's beginning always counts as one).
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


def find_place(
    folder: RunFolder, step: int | None = None, state: bytes | None = None, *, again: bool = False
) -> Place:
    """Where a run opens: at a state, at the checkpoint of a step, or at its last one.

    Raises:
        RecipeError: no such checkpoint, a record that is not what was written, or a place that would serve
            withdrawn documents again (``again``: they are withdrawn there next).
    """
    if step is not None and step < 0:
        raise ValueError(f"step is {step}; steps are counted from 0")
    check_chain(folder.ledger)
    check_nothing_lost(folder)
    created = row_at(folder.ledger, 0)
    if step is not None and 0 <= step < created.end_step:
        raise _before_branch(folder, created)
    head = read_head(folder.ledger, step if state is None else None)
    if state is not None:
        place = _place_of_state(folder, State.from_bytes(state), step)
    else:
        place = _place_of_step(folder, head, step)
    if not again:
        refuse_serving_again(folder, place.state.withdrawn, place.state.snapshot.step)
    return replace(place, known=head.tail.last)


def _place_of_step(folder: RunFolder, head: Head, step: int | None) -> Place:
    if step is None:
        row = furthest_checkpoint(folder.ledger, head)
    else:
        row = find_checkpoint(folder.ledger, head, step)
    if row is not None:
        path = manifest_path(folder.path, int(row.data["manifest"]))
        manifest = read_manifest(path, row.data["manifest_hash"])
        place = State.from_manifest(manifest, str(path))
        undone = None if row is head.parent else _turns_of(folder, place)[1]
        return Place(state=place, version_hash=manifest["recipe"]["hash"], from_state=False, undone=undone)
    beginning = _start(folder)
    if step is not None and step != beginning.state.snapshot.step:
        raise _no_checkpoint(folder, step)
    # a turn there that no checkpoint came after, as a crash leaves it
    return replace(beginning, undone=_turns_of(folder, beginning.state)[1])


def _turns_of(folder: RunFolder, state: State) -> tuple[TurnAt, int | None]:
    """The turn of a state, and the row of the turn at its very step that going on from it discards, if any.

    Raises:
        RecipeError: the state is of a course that the run left.
    """
    turn, after = find_turn(folder.ledger, state.turn)
    step = state.snapshot.step
    if turn is None or (after is not None and after.end_step < step):
        raise _other_course(folder, state, after if turn is not None else None)
    return TurnAt.of(turn), after.number if after is not None and after.end_step == step else None


def _start(folder: RunFolder) -> Place:
    """The run's beginning, from the first row and the recipe it names."""
    first = row_at(folder.ledger, 0)
    version = read_version(folder, int(first.data["recipe"]), first.data["recipe_hash"])
    try:
        state = State(
            run=first.data["run"],
            version=version.version,
            recipe=version.recipe,
            holdings={name: Holding.from_plain(pool) for name, pool in first.data["pools"].items()},
            turn=TurnAt.of(first),
            snapshot=snapshot_of(first),
            withdrawn=withdrawals_of(first.data),
        ).checked()
    except ValueError as error:
        raise damaged(folder.ledger, 0, str(error), "a run's beginning") from error
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
    turn, undone = _turns_of(folder, state)
    state = replace(state, turn=turn)  # it may be on record only since the state was taken
    return Place(state=state, version_hash=version.hash, from_state=True, undone=undone)


def _other_course(folder: RunFolder, state: State, after: Row | None) -> RecipeError:
    """The error that a state was taken on a course that is not the one on record."""
    step = state.snapshot.step
    if after is None:
        given = f"a turn at step {state.turn.step} that is not on record: no checkpoint came after it"
    else:
        given = f"a state of step {step} that knows nothing of the turn on record at step {after.end_step}"
    return RecipeError.single(
        f"{folder.path}: a state of another course",
        "state",
        given=given,
        expected="a state of the run as its ledger has it",
        fix="open the run at its last checkpoint, or with a state that was taken after the turn on record",
    )


def open_place(
    folder: RunFolder, place: Place, paths: Mapping[str, Path], *, accept_data_change: bool = False
) -> Run:
    """A handle at a place, with the pools at these paths; they are closed where there can be none."""
    pools = open_pools(place.state.recipe, paths)
    try:
        differing = changed(place.state.holdings, pools)
        others = {name: pools[name] for name in differing}
        refuse_retokenised(place.state.holdings, others, str(folder.path))
        if differing and accept_data_change and not place.from_state:
            return _with_other_data(folder, place, pools, differing)
        refuse_changed(differing, fix=NEW_DATA)
        return handle(folder, place, subject_of(place, pools, differing), pools)
    except RecipeError:
        close_pools(pools.values())
        raise


def _with_other_data(
    folder: RunFolder, place: Place, pools: Mapping[str, Pool], differing: Mapping[str, tuple[str, str]]
) -> Run:
    """A handle whose first checkpoint says that pools hold other data from here on."""
    state, snapshot = place.state, place.state.snapshot
    if problems := pool_problems(state.recipe, pools):
        raise RecipeError("pools that do not go together", problems)
    withdrawn = cleared(folder, state.withdrawn, pools, list(differing))
    subject = subject_of(place, pools, differing)
    marks = {name: {"before": a, "after": b} for name, (a, b) in differing.items()}
    replaced = {k for k, name in enumerate(state.recipe.pools) if name in differing}
    turning = Turning(
        kind="data",
        body={"accepted": True, "pools": marks},
        at=snapshot,
        base=read_from_beginning(reopened(snapshot, state.recipe), replaced),
        before=replace(subject, holdings=state.holdings),
    )
    return handle(folder, place, replace(subject, withdrawn=withdrawn), pools, turning)


def handle(
    folder: RunFolder,
    place: Place,
    subject: Subject,
    pools: Mapping[str, Pool],
    turning: Turning | None = None,
) -> Run:
    """A handle that goes on from a place; with ``turning``, another way: its first checkpoint says so.

    Raises:
        RecipeError: it would serve documents that were erased from pools.
    """
    fix = ERASED.format(run=folder.path)
    refuse_erased(subject.recipe, pools, subject.withdrawn, str(folder.path), fix)
    return handle_on_record(folder, place, subject, pools, turning)


def handle_on_record(
    folder: RunFolder,
    place: Place,
    subject: Subject,
    pools: Mapping[str, Pool],
    turning: Turning | None = None,
) -> Run:
    """A handle to look up what is on record: its rows may hold documents that were erased since."""
    if turning is not None:
        subject = replace(subject, turn=turning.place(subject))
    stream = stream_of(folder, subject, pools, place.state.snapshot if turning is None else turning.base)
    if turning is not None:
        stream.follow(lambda: _earlier_stream(folder, place.state, pools, stream.floor))
    elif place.state.turn.step:
        stream.follow(lambda: _stream_before(folder, place.state, pools))
    head = read_head(folder.ledger)
    unfinished = head.reached.kind in TURN_KINDS[1:] and not place.from_state
    opened = place.state.snapshot
    undone = place.undone
    if unfinished and head.parent is None and head.reached.end_step == opened.step:
        undone = head.reached.number  # no manifest says where the record before it ends
    standing = Standing(
        opened=opened,
        known=place.known or head.tail.last,
        rewinds=opened.step < head.reached.end_step or unfinished or undone is not None,
        after_turn=place.from_state and 0 < subject.turn.step == opened.step,
        undone=undone,
        turning=turning,
    )
    return Run(folder, stream, Writer(folder, subject, stream), standing)


def _stream_before(folder: RunFolder, state: State, pools: Mapping[str, Pool]) -> RunStream:
    """The stream of the turn before that of a state.

    Raises:
        RecipeError: it is a branch's beginning, or the pools of then are gone.
    """
    row = row_at(folder.ledger, state.turn.offset)
    before = turn_before(folder.ledger, row)
    if before is None:
        raise _before_branch(folder, row)
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
    return _earlier_stream(folder, earlier, pools, row.end_step)


def _before_branch(folder: RunFolder, created: Row) -> RecipeError:
    """The error that a branch has no steps before the one it began at."""
    parent = created.data["parent"]
    return RecipeError.single(
        f"{folder.path}: a step before the branch",
        f"steps before {created.end_step}",
        given="a branch, which begins where it left its parent",
        expected=f"a step from {created.end_step} on",
        fix=f"open the parent, {parent['run']} ({parent['path']}), for what came before",
    )


def _earlier_stream(folder: RunFolder, state: State, pools: Mapping[str, Pool], stop: int) -> RunStream:
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
        stream.follow(lambda: _stream_before(folder, state, pools))
    return stream


def other_recipe(folder: RunFolder, old: Recipe, new: Recipe) -> RecipeError:
    """The error that shows what a recipe changed against the one a run was started with."""
    lines = difference(old, new) or ["fingerprint: different"]
    fix = (
        f"`recipe run {folder.path}` goes on with the run as it is; `recipe amend {folder.path} KEY=VALUE …` "
        "changes it from a checkpoint on; another --name (in Python another path) starts another run"
    )
    problems = []
    for line in lines:
        key, _, change = line.partition(": ")
        given = f"{change}  (the run's → yours)" if change else line
        problems.append(Problem(key, given, "as the run was started", fix))
    return RecipeError(f"{folder.path}: a run of another recipe", problems)


def _no_checkpoint(folder: RunFolder, step: int) -> RecipeError:
    return RecipeError.single(
        f"{folder.path}: no checkpoint at step {step}",
        "step",
        given=step,
        expected=f"a step with a manifest; {steps_shown(checkpoint_steps(folder.ledger), step)}",
        fix="give one of these, or open with the state that the trainer saved at that step",
    )
