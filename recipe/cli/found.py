"""Pools of the demo that are not there yet, made from text that is on the machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recipe.cli.output import progress, say
from recipe.config import Recipe, load_recipe
from recipe.config.places import in_store, place
from recipe.config.problems import nearest
from recipe.config.sources import locate
from recipe.errors import RecipeError, counted

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
            documents = counted(pool.num_documents, "document")
            say(f"  {pool.name}: {pool.stock:,} tokens in {documents}", quiet=quiet)
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


def refuse_nothing(source: str, config_dir: Path | None, *, verb: str, what: str) -> None:
    """Say that a word is neither a folder nor a recipe, to a verb that takes both.

    Args:
        source: the word; a YAML file that is not there is for the loader to tell.
        config_dir: of recipes.
        verb: that was called.
        what: folders that it takes, such as ``a folder that holds pools``.

    Raises:
        RecipeError: it is neither.
    """
    path = Path(source)
    if not source or path.exists() or path.suffix in (".yaml", ".yml") or in_store(place(source)):
        return
    try:
        locate(source, config_dir)
    except RecipeError as error:
        above = path.parent
        beside = [str(above / each.name) for each in above.iterdir()] if above.is_dir() else []
        (problem,) = error.problems
        raise RecipeError.single(
            verb, source, given="no such folder, and no such recipe",
            expected=f"{what}, or {problem.expected}", fix=nearest(str(path), beside, problem.fix),
        ) from None  # fmt: skip


def _missing(recipe: Recipe, source: str) -> list[str]:
    """Pools of the demo as shipped that are not there; none for any other recipe."""
    if source != DEMO:
        return []
    shipped = load_recipe(DEMO).pools
    own = {name: pool for name, pool in recipe.pools.items() if pool.of is None}
    if any(name not in shipped or pool.path != shipped[name].path for name, pool in own.items()):
        return []
    return [name for name in own if not (in_store(path := recipe.pool_path(name)) or path.exists())]
