"""Pools of the demo that are not there yet, made from text that is on the machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recipe.cli.output import progress, say
from recipe.config import Recipe, load_recipe
from recipe.config.places import in_store
from recipe.errors import RecipeError

if TYPE_CHECKING:
    from recipe.text.preparation import Progress

DEMO = "demo"


def prepare_missing(recipe: Recipe, source: str, *, quiet: bool) -> None:
    """Make the demo's pools where they are missing; pools of any other recipe are never made up.

    Only for the shipped name and the paths it names: a pool that somebody pointed elsewhere must be
    there, and is asked for by name if it is not.
    """
    missing = _missing(recipe, source)
    if not missing:
        return
    from recipe.text.found import prepare_found  # readers of every kind of text: only where pools are made

    folder = recipe.pool_path(missing[0]).parent
    say(f"{folder}: tokenising text found on this machine into pools, once", quiet=quiet)
    with progress(quiet=quiet) as bars:
        task = bars.add_task("preparing", total=len(recipe.pools), note="")

        def tell(event: Progress) -> None:
            bars.update(
                task, completed=event.done, total=event.total, note=f"pool {event.text}" if event.text else ""
            )

        for pool in prepare_found(folder, progress=tell):
            say(f"  {pool.name}: {pool.stock:,} tokens in {pool.num_documents:,} documents", quiet=quiet)
            pool.close()


def refuse_missing(recipe: Recipe, source: str) -> None:
    """Say that the demo's pools come with its first run, to a verb that writes nothing.

    Raises:
        RecipeError: the demo's pools are not there yet.
    """
    missing = _missing(recipe, source)
    if missing:
        raise RecipeError.single(
            DEMO,
            "pools",
            given=f"{', '.join(missing)} not there yet",
            expected=f"pools in {recipe.pool_path(missing[0]).parent}",
            fix="start with `recipe run`: it makes them from text on this machine, once, in seconds",
        )


def _missing(recipe: Recipe, source: str) -> list[str]:
    """Pools of the demo as shipped that are not there; none for any other recipe."""
    if source != DEMO:
        return []
    shipped = load_recipe(DEMO).pools
    own = {name: pool for name, pool in recipe.pools.items() if pool.of is None}
    if any(name not in shipped or pool.path != shipped[name].path for name, pool in own.items()):
        return []
    return [name for name in own if not (in_store(path := recipe.pool_path(name)) or path.exists())]
