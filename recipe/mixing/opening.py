"""The pools of a recipe: opened together, checked against it, and the recipe settled by their sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from recipe.config import Recipe, settle
from recipe.errors import Problem, RecipeError
from recipe.pools import Pool, open_pool


def open_pools(recipe: Recipe) -> dict[str, Pool]:
    """Open every pool of a recipe that has a folder.

    Raises:
        RecipeError: with the problems of all pools that cannot be opened.
    """
    opened: dict[str, Pool] = {}
    problems: list[Problem] = []
    for name, config in recipe.pools.items():
        if config.path is None:
            continue
        try:
            opened[name] = open_pool(recipe.pool_path(name), name, eos=config.eos, bos=config.bos)
        except RecipeError as error:
            problems += [replace(p, where=f"pools.{name}: {p.where}") for p in error.problems]
    if problems:
        raise RecipeError(recipe.name, problems)
    return opened


def settle_with(recipe: Recipe, opened: Mapping[str, Pool]) -> Recipe:
    """The recipe with every share, chunk and block size a number, from the pools' real sizes."""
    stock = {name: config.stock or 0 for name, config in recipe.pools.items()}
    units = dict.fromkeys(recipe.pools, 1)
    for name, pool in opened.items():
        stock[name], units[name] = pool.stock, pool.num_units
    return settle(recipe, stock, units)


def pool_problems(recipe: Recipe, opened: Mapping[str, Pool]) -> list[Problem]:
    """Token ids the model has no row for, and tokenizers that do not go together."""
    problems: list[Problem] = []
    limit = recipe.model.vocab_size if recipe.model is not None else None
    if limit is not None:
        for pool in opened.values():
            problems += pool.check_ids(limit)
    by_tokenizer: dict[str, list[str]] = {}
    for name, pool in opened.items():
        if pool.card.tokenizer is not None:
            by_tokenizer.setdefault(pool.card.tokenizer, []).append(name)
    if len(by_tokenizer) > 1:
        listed = "; ".join(f"{key[:12]}: {', '.join(names)}" for key, names in by_tokenizer.items())
        problems.append(
            Problem(
                "pools",
                f"{len(by_tokenizer)} tokenizers ({listed})",
                "pools made by one tokenizer",
                "prepare the pools again with one tokenizer",
            )
        )
    return problems
