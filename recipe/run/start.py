"""Starting a run: everything that can be known to be wrong is refused, then the folder appears at once."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

from recipe.config import Recipe, fingerprint
from recipe.errors import RecipeError
from recipe.mixing.opening import close_pools
from recipe.mixing.plan import Plan, make_plan
from recipe.mixing.snapshot import SNAPSHOT_FORMAT, start_of
from recipe.pools import Pool
from recipe.run import folder as folders
from recipe.run import ledger, manifest, state, writes
from recipe.run.canonical import Plain
from recipe.run.folder import FOLDERS, RecipeVersion, RunFolder, read_version
from recipe.run.holdings import Holding, declared_paths
from recipe.run.opening import find_place, open_place, open_run, other_recipe
from recipe.run.run import Run
from recipe.run.statement import software


def start_run(
    recipe: Recipe, path: str | Path, *, on_plan: Callable[[Plan], None] = lambda plan: None
) -> Run:
    """Start a run in a new folder and open it at step 0.

    What is stored is the recipe settled with the stocks of its pools: a number everywhere.

    Args:
        recipe: as loaded.
        path: of the run's folder; its last component is the run's name. Nothing may be there yet.
        on_plan: called with the plan that the run is held to, once nothing stands against it; it has
            the warnings.

    Raises:
        RecipeError: no plain name; a run is there already; a pool is missing or has only a stock;
            tokenizers or ids do not fit; a pool runs out for certain.
    """
    folder = RunFolder(Path(path))
    folders.check_name(folder.name, str(path))
    _refuse_taken(folder)
    declared_paths(recipe)  # a stock alone cannot be run
    plan = make_plan(recipe, compare_packing=False)
    pools = {name: plan.opened[name] for name in recipe.pools}
    try:
        plan.check()
        on_plan(plan)
        files = _first_files(folder.name, recipe, plan.recipe, pools)
    finally:
        close_pools(pools.values())
    if not writes.create_folder(folder.path, files, FOLDERS):
        _refuse_taken(folder)
        raise _taken(folder)
    return open_run(folder.path)


def resume_or_start(
    recipe: Recipe,
    path: str | Path,
    *,
    accept_data_change: bool = False,
    on_plan: Callable[[Plan], None] = lambda plan: None,
) -> Run:
    """Go on with the run at ``path`` at its last checkpoint, or start it.

    Args:
        recipe: as loaded; the one the run was started with.
        path: of the run's folder.
        accept_data_change: as for :func:`open_run`.
        on_plan: as for :func:`start_run`.

    Raises:
        RecipeError: the run was started with another recipe (the difference is shown), or as
            :func:`open_run` and :func:`start_run`.
    """
    folder = RunFolder(Path(path))
    if not folder.ledger.is_file() and not folder.identity.is_file():
        return start_run(recipe, path, on_plan=on_plan)
    folder.check()
    place = find_place(folder)
    stored = read_version(folder, place.state.version, place.version_hash)
    if fingerprint(stored.declared) != fingerprint(recipe):
        raise other_recipe(folder, stored.declared, recipe)
    paths = declared_paths(recipe)
    return open_place(folder, place, paths, accept_data_change=accept_data_change)


def _first_files(name: str, declared: Recipe, settled: Recipe, pools: dict[str, Pool]) -> dict[str, bytes]:
    time = ledger.now()
    run_id = uuid.uuid4().hex
    version = RecipeVersion(
        version=1, step=0, reason="start", approved_by=None, recipe=settled, declared=declared
    )
    stored = manifest.sealed(version.to_plain())
    identity = manifest.sealed(
        {
            "format": folders.FORMAT,
            "name": name,
            "id": run_id,
            "created": time,
            "parent": None,
            "formats": {
                "recipe": folders.FORMAT,
                "ledger": ledger.FORMAT,
                "manifest": manifest.FORMAT,
                "snapshot": SNAPSHOT_FORMAT,
                "state": state.FORMAT,
            },
            "software": software(),
        }
    )
    created: Plain = {
        "kind": "created",
        "step": 0,
        "run": name,
        "id": run_id,
        "run_hash": manifest.seal_of(identity),
        "recipe": 1,
        "recipe_hash": manifest.seal_of(stored),
        "recipe_fingerprint": fingerprint(settled),
        "pools": {key: Holding.of(pool).to_plain() for key, pool in pools.items()},
        "snapshot": start_of(len(pools)).to_plain(),
    }
    return {
        "run.yaml": identity,
        "recipes/0001.yaml": stored,
        "ledger.jsonl": ledger.first_line(created, time=time),
    }


def _refuse_taken(folder: RunFolder) -> None:
    path = folder.path
    if path.is_file() or (path.is_dir() and any(path.iterdir())):
        raise _taken(folder)


def _taken(folder: RunFolder) -> RecipeError:
    is_run = folder.ledger.is_file()
    return RecipeError.single(
        f"{folder.path}: not started",
        str(folder.path),
        given="a run that was started before" if is_run else "something else",
        expected="no folder, or an empty one",
        fix="go on with it (recipe run does, in Python open_run), or choose another name: "
        "a run is never overwritten"
        if is_run
        else "choose another path",
    )
