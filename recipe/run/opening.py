"""Opening a run at a checkpoint, or at the state a trainer saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from recipe.errors import RecipeError
from recipe.mixing.opening import close_pools, open_pools, pool_problems
from recipe.mixing.snapshot import read_from_beginning
from recipe.mixing.turning import reopened
from recipe.mixing.withdrawals import refuse_erased
from recipe.pools import Pool
from recipe.run.checkpoint import Writer
from recipe.run.course import Course
from recipe.run.earlier import earlier_stream, stream_before
from recipe.run.finding import find_place
from recipe.run.folder import RunFolder
from recipe.run.head import read_head
from recipe.run.holdings import (
    changed,
    known_paths,
    refuse_changed,
    refuse_retokenised,
)
from recipe.run.place import Place, stream_of, subject_of
from recipe.run.row import TURN_KINDS
from recipe.run.run import Run
from recipe.run.standing import Standing, Turning
from recipe.run.statement import Subject
from recipe.run.taken_down import cleared

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
        stream.follow(lambda: earlier_stream(folder, place.state, pools, stream.floor))
    elif place.state.turn.step:
        stream.follow(lambda: stream_before(folder, place.state, pools))
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
    writer = Writer(folder, subject, stream)
    return Run(Course(folder=folder, stream=stream, writer=writer, standing=standing))
