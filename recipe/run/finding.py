"""Where a run opens: at the state a trainer saved, at the checkpoint of a step, or at its last one."""

from __future__ import annotations

from dataclasses import replace

from recipe.config import Recipe, difference, fingerprint
from recipe.errors import Problem, RecipeError
from recipe.run.checkpoint_steps import checkpoint_steps, steps_shown
from recipe.run.earlier import before_branch
from recipe.run.folder import RecipeVersion, RunFolder, read_version
from recipe.run.head import Head, find_checkpoint, furthest_checkpoint, read_head, snapshot_of
from recipe.run.holdings import Holding
from recipe.run.ledger import check_chain, damaged, row_at
from recipe.run.lost import check_nothing_lost
from recipe.run.manifest import manifest_path, read_manifest
from recipe.run.place import Place
from recipe.run.row import Row
from recipe.run.state import State, withdrawals_of
from recipe.run.taken_down import refuse_serving_again
from recipe.run.turns import TurnAt, find_turn


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
        raise before_branch(folder, created)
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
