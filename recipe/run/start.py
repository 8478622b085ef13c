"""Starting a run: everything that can be known to be wrong is refused, then the folder appears at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from recipe.config import Recipe, fingerprint
from recipe.errors import RecipeError
from recipe.mixing.opening import close_pools
from recipe.mixing.plan import make_plan
from recipe.mixing.planned import Plan
from recipe.mixing.snapshot import start_of
from recipe.mixing.withdrawals import erased_withdrawals
from recipe.pools import Pool
from recipe.run import folder as folders
from recipe.run import writes
from recipe.run.birth import Birth, first_files
from recipe.run.evaluation import held_out_problems
from recipe.run.finding import find_place, other_recipe
from recipe.run.folder import FOLDERS, RecipeVersion, RunFolder, read_version
from recipe.run.holdings import Holding, declared_paths, known_paths
from recipe.run.opening import open_place, open_run
from recipe.run.run import Run


def start_run(
    recipe: Recipe,
    path: str | Path,
    *,
    allow_targets: Sequence[str] = (),
    on_plan: Callable[[Plan], None] = lambda plan: None,
) -> Run:
    """Start a run in a new folder and open it at step 0.

    What is stored is the recipe settled with the stocks of its pools: a number everywhere.

    Args:
        recipe: as loaded.
        path: of the run's folder; its last component is the run's name. Nothing may be there yet.
        allow_targets: dotted names that ``policy._target_`` may have beside the shipped ones; not stored:
            :meth:`Run.consult` wants them again.
        on_plan: called with the plan that the run is held to, once nothing stands against it; it has
            the warnings.

    Raises:
        RecipeError: no plain name; a run is there already; a pool is missing or has only a stock;
            tokenizers or ids do not fit; a pool runs out for certain; the policy is not allowed, or could
            not answer.
    """
    folder = RunFolder(Path(path))
    folders.check_name(folder.name, str(path))
    refuse_taken(folder)
    declared_paths(recipe)  # a stock alone cannot be run
    plan = make_plan(recipe, compare_packing=False, allow_targets=allow_targets)
    pools = {name: plan.opened[name] for name in recipe.pools}
    try:
        holdings = {name: Holding.of(pool) for name, pool in pools.items()}
        replace(plan, problems=(*plan.problems, *held_out_problems(recipe, pools))).check()
        on_plan(replace(plan, warnings=(*plan.warnings, *_other_tokenizer(recipe, pools))))
        version = RecipeVersion(
            version=1, step=0, reason="start", approved_by=None, recipe=plan.recipe, declared=recipe
        )
        birth = Birth(
            name=folder.name,
            version=version,
            holdings=holdings,
            snapshot=start_of(len(pools)),
            withdrawn=erased_withdrawals(recipe, pools),
        )
        files = first_files(birth)
    finally:
        close_pools(pools.values())
    if not writes.create_folder(folder.path, files, FOLDERS):
        refuse_taken(folder)
        raise taken(folder)
    return open_run(folder.path)


def _other_tokenizer(recipe: Recipe, pools: Mapping[str, Pool]) -> list[str]:
    """What to say where the weights a run starts from had another tokenizer than its pools."""
    stated = recipe.start.tokenizer if recipe.start is not None else None
    marks = {pool.card.tokenizer for pool in pools.values() if pool.card.tokenizer is not None}
    if stated is None or not marks:
        return []
    if Path(stated).exists():
        from recipe.text.tokenizers import load_tokenizer  # slow to import, and seldom needed

        stated = load_tokenizer(stated).fingerprint()
    elif not re.fullmatch("[0-9a-f]{64}", stated):
        return []  # a name: nothing to compare
    if stated in marks:
        return []
    return [
        f"start.tokenizer has fingerprint {stated}, the pools were made with {', '.join(sorted(marks))}: the "
        "weights know other ids; tokens before the start are other units"
    ]


def resume_or_start(
    recipe: Recipe,
    path: str | Path,
    *,
    accept_data_change: bool = False,
    allow_targets: Sequence[str] = (),
    on_plan: Callable[[Plan], None] = lambda plan: None,
) -> Run:
    """Go on with the run at ``path`` at its last checkpoint, or start it.

    Args:
        recipe: as loaded; the one the run was started with, also where it was amended since: the run
            goes on with the version in force.
        path: of the run's folder.
        accept_data_change: as for :func:`open_run`.
        allow_targets: as for :func:`start_run`; a run that was started before is not asked.
        on_plan: as for :func:`start_run`.

    Raises:
        RecipeError: the run was started with another recipe (the difference is shown), or as
            :func:`open_run` and :func:`start_run`.
    """
    folder = RunFolder(Path(path))
    if not folder.ledger.is_file() and not folder.identity.is_file():
        try:
            return start_run(recipe, path, allow_targets=allow_targets, on_plan=on_plan)
        except RecipeError:
            if not folder.ledger.is_file():
                raise
            # Somebody else started it meanwhile: it is gone on with, if it is the same run.
    folder.check()
    place = find_place(folder)
    stored = read_version(folder, place.state.version, place.version_hash)
    versions = (read_version(folder, number) for number in range(1, place.state.version))
    wanted = fingerprint(recipe)
    if wanted not in (fingerprint(known.declared) for known in (stored, *versions)):
        raise other_recipe(folder, stored.declared, recipe)
    state, declared = place.state, declared_paths(recipe)
    paths = known_paths(state.recipe, state.holdings, None)
    paths |= {name: path for name, path in declared.items() if name in paths}
    return open_place(folder, place, paths, accept_data_change=accept_data_change)


def refuse_taken(folder: RunFolder) -> None:
    """Raise RecipeError if something is where a run is to be created."""
    path = folder.path
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise taken(folder)


def taken(folder: RunFolder) -> RecipeError:
    """The error that something is where a run is to be created."""
    is_run = folder.ledger.is_file()
    return RecipeError.single(
        f"{folder.path}: not started",
        str(folder.path),
        given="a run that was started before" if is_run else "something else",
        expected="no folder, or an empty one",
        fix="go on with it (recipe run does; in Python recipe.resume_or_start for a script run twice, "
        "recipe.open_run for the run as it stands), or choose another name: a run is never overwritten"
        if is_run
        else "choose another path",
    )
