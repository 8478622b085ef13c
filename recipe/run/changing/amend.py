"""Amendments: another recipe from a step on; what was spent stays spent, the rest is planned anew.

An amendment takes effect at a checkpoint and is put on record with a manifest of its own, so the run
goes on with it whenever it is opened next. A run that is training takes it up when it is opened
again, or when every rank has got the new state (``run.amend`` gives it) through ``stream_from``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from recipe.config import Recipe
from recipe.config.amending import amended
from recipe.errors import RecipeError
from recipe.mixing.opening import close_pools
from recipe.run.changing.amending import AT, Amendment, turned, worked_out
from recipe.run.changing.approval import Approval
from recipe.run.changing.change import Growth, open_for
from recipe.run.changing.naming import check_step
from recipe.run.changing.totals import Goal, solved
from recipe.run.comparing.throughput import rest_of_run
from recipe.run.finding import find_place
from recipe.run.folder import RunFolder
from recipe.run.forgotten import refuse_forgotten_step
from recipe.run.opening import handle
from recipe.run.place import Place
from recipe.run.ways_back import with_ways_back
from recipe.run.words import words_at


def amend_run(  # noqa: PLR0913 - the options of the verb
    path: str | Path,
    changes: Sequence[str] | Recipe,
    *,
    approval: Approval,
    at: int | None = None,
    from_pool: str | None = None,
    goal: Goal | None = None,
    opens: Growth | None = None,
    pools_root: str | Path | None = None,
    allow_targets: Sequence[str] = (),
    confirm: Callable[[Amendment], bool] = lambda amendment: True,
) -> Amendment:
    """Change a run's recipe from a checkpoint on.

    Args:
        path: the run's folder.
        changes: ``key=value`` as on the command line, over the recipe in force; or a whole recipe.
        approval: the reason, and who approved it.
        at: a step with a checkpoint; default: the last one. What is on record after it is discarded.
        from_pool: the pool that gives (or gets) the difference in shares, exactly.
        goal: the quotas are what the whole stage or run shall reach; default: they hold from now on.
        opens: what pools that have more parts now do: open them at their next epoch, or begin it now.
        pools_root: where the pools are on this machine.
        allow_targets: dotted names that a changed ``policy._target_`` may have beside the shipped ones.
        confirm: asked with the amendment worked out; nothing is written unless it says yes.

    Returns:
        the amendment; its ``manifest`` is None when it was not confirmed.

    Raises:
        RecipeError: what is behind would change; a pool runs out for certain; a goal that cannot be
            reached; a policy that is not allowed, or could not answer; a damaged record. Nothing was written.
        ValueError: a step below zero.
    """
    check_step("at", at)
    folder = RunFolder(Path(path))
    folder.check()
    said = approval.to_plain()
    place = find_place(folder, at)
    refuse_forgotten_step(folder, place.state.snapshot.step)
    new = changes if isinstance(changes, Recipe) else _changed(folder, place, changes, from_pool)
    if goal is not None:
        new = solved(folder, place, new, goal)
    change = open_for(place, new, opens, None if pools_root is None else Path(pools_root))
    try:
        amendment, base = worked_out(folder, place, change, allow=allow_targets)
        ahead = amendment.after.end_positions - amendment.after.positions
        rest = rest_of_run(path, ahead)
        amendment = replace(amendment, rest=None if rest is None else rest.to_plain())
        if not confirm(amendment):
            return amendment
        subject, turning = turned(folder, place, change, base, said)
        run = handle(folder, place, subject, change.pools, turning)
        manifest = run.put_on_record(words_at(folder, place.state.snapshot.step))
    finally:
        close_pools(change.pools.values())
    return replace(amendment, manifest=manifest)


def _changed(folder: RunFolder, place: Place, changes: Sequence[str], from_pool: str | None) -> Recipe:
    """The recipe in force with what was typed.

    Raises:
        RecipeError: with every problem; of a stage that is finished also from where it can be changed.
    """
    old, at = place.state.recipe, place.state.snapshot
    try:
        return amended(old, changes, stage=list(old.stages)[at.stage], from_pool=from_pool)
    except RecipeError as error:
        problems = with_ways_back(folder.ledger, old, at, error.problems, AT)
        raise RecipeError(f"{folder.path}: not amended at step {at.step:,}", problems) from error
