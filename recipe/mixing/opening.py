"""The pools of a recipe: opened together, checked against it, and the recipe settled by their sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from recipe.config import Recipe, settle
from recipe.errors import Problem, RecipeError
from recipe.mixing.aligning import give_edges, slicing_problems
from recipe.mixing.in_front import front_problems
from recipe.mixing.markers import marker_problems, with_marker_ids
from recipe.mixing.routes import route_problems
from recipe.mixing.simulated import declared_stock, read_stock, read_units
from recipe.pools import Pool, View, open_pool
from recipe.pools.views import join_families, open_as


def open_pools(recipe: Recipe, paths: Mapping[str, Path] | None = None) -> dict[str, Pool]:
    """Open every pool of a recipe that has a folder.

    Args:
        recipe: whose pools.
        paths: where every pool is now; default: where the recipe says, pools with only a stock left out.

    Raises:
        RecipeError: with the problems of all pools that cannot be opened.
    """
    if paths is None:
        paths = {name: recipe.pool_path(name) for name in recipe.pools if recipe.folder(name) is not None}
    opened: dict[str, Pool] = {}
    problems: list[Problem] = []
    for name, path in paths.items():
        try:
            opened[name] = open_named(recipe, name, path)
        except RecipeError as error:
            problems += [replace(p, where=_where(name, p)) for p in error.problems]
    if problems:
        close_pools(opened.values())
        raise RecipeError(recipe.name, problems)
    join_families(recipe, opened)
    return opened


def open_named(recipe: Recipe, name: str, path: Path) -> Pool:
    """One pool of a recipe; of a view it is looked up what it holds.

    Raises:
        RecipeError: it cannot be opened, or nothing passes its filter.
    """
    pool = open_as(recipe, name, path, open_pool)
    give_edges(recipe, pool)
    if isinstance(pool, View):
        pool.selection  # noqa: B018 - looked up now, so that what is wrong with it is told with everything
    return pool


def _where(name: str, problem: Problem) -> str:
    return f"pools.{name}{'.' if problem.where.startswith('where.') else ': '}{problem.where}"


def close_pools(pools: Iterable[Pool]) -> None:
    """Let go of what they mapped."""
    for pool in pools:
        pool.close()


def settle_with(recipe: Recipe, opened: Mapping[str, Pool]) -> Recipe:
    """The recipe with every share, chunk and block size a number, from the pools' real sizes."""
    stock = {name: declared_stock(recipe, name) or 0 for name in recipe.pools}
    units = dict.fromkeys(recipe.pools, 1)
    for name, pool in opened.items():
        stock[name], units[name] = read_stock(recipe, pool), read_units(recipe, pool)
    return settle(with_marker_ids(recipe, opened), stock, units)


def pool_problems(recipe: Recipe, pools: Mapping[str, Pool]) -> list[Problem]:
    """What forbids to train on these pools together: tokenizers that differ, ids the model has no row for."""
    problems: list[Problem] = []
    made_by = {name: pool.card.tokenizer for name, pool in pools.items() if pool.card.tokenizer is not None}
    if len(set(made_by.values())) > 1:
        first = next(iter(made_by))
        problems += [
            Problem(
                f"pools.{name}",
                f"tokenizer {tokenizer}",
                f"tokenizer {made_by[first]}, as pool {first}",
                "prepare all pools with one tokenizer: ids of different tokenizers never mix",
            )
            for name, tokenizer in made_by.items()
            if tokenizer != made_by[first]
        ]
    limit = recipe.model.vocab_size if recipe.model is not None else None
    if limit is not None:
        problems += [problem for pool in pools.values() for problem in pool.check_ids(limit)]
    problems += [*marker_problems(recipe, pools), *slicing_problems(recipe, pools)]
    return [*problems, *front_problems(recipe, pools), *route_problems(recipe, pools)]
