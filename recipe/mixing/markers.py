"""Markers of transforms against the pools: texts become ids; ids that mean something else are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from recipe.config import Recipe
from recipe.config.transform import FimConfig
from recipe.config.transform_checks import marker_faults
from recipe.errors import Problem, RecipeError
from recipe.pools import Pool


def with_marker_ids(recipe: Recipe, pools: Mapping[str, Pool]) -> Recipe:
    """The recipe with the id of every marker that is stated as the text of a token.

    Args:
        recipe: its tokenizer knows the ids.
        pools: those that are opened; a marker of another one is turned into an id all the same.

    Raises:
        RecipeError: a text is no token of the recipe's tokenizer, or there is none.
    """
    named = {
        name: pool.transform.fim
        for name, pool in recipe.pools.items()
        if pool.transform is not None and any(isinstance(m, str) for m in pool.transform.fim.markers.values())
    }
    if not named:
        return recipe
    known, problems = _vocabulary(recipe, next(iter(named))), list[Problem]()
    settled = dict(recipe.pools)
    for name, fim in named.items():
        transform = recipe.pools[name].transform
        assert transform is not None
        update = {"fim": _with_ids(name, fim, known, problems)}
        settled[name] = recipe.pools[name].model_copy(
            update={"transform": transform.model_copy(update=update)}
        )
    if problems:
        raise RecipeError(recipe.name, problems)
    return recipe.model_copy(update={"pools": settled})


def _vocabulary(recipe: Recipe, pool: str) -> dict[str, int]:
    path = recipe.tokenizer.path if recipe.tokenizer is not None else None
    if path is None:
        where = f"pools.{pool}.transform.fim"
        fix = "write the ids of the markers, or tokenizer: {path: FOLDER}"
        expected = "ids, or a recipe with a tokenizer.json that knows these tokens"
        raise RecipeError.single(
            recipe.name, where, given="texts of tokens as markers", expected=expected, fix=fix
        )
    file = Path(path).expanduser()
    return token_ids(file / "tokenizer.json" if file.is_dir() else file)


def token_ids(file: Path) -> dict[str, int]:
    """The tokens of a ``tokenizer.json`` with their ids, added ones first.

    Raises:
        RecipeError: the file is not there, or is no ``tokenizer.json``.
    """
    try:
        content = json.loads(file.read_bytes())
        vocabulary = content["model"].get("vocab", {})
        plain = dict(vocabulary) if isinstance(vocabulary, Mapping) else {}
        return plain | {token["content"]: int(token["id"]) for token in content.get("added_tokens", [])}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecipeError.single(
            "tokenizer.path",
            str(file),
            given=str(error)[:200],
            expected="a tokenizer.json: markers of a transform are stated as texts of its tokens",
            fix="check the path, or write the ids of the markers",
        ) from error


def _with_ids(name: str, fim: FimConfig, known: Mapping[str, int], problems: list[Problem]) -> FimConfig:
    ids: dict[str, int] = {}
    for key, marker in fim.markers.items():
        if isinstance(marker, int) or marker in known:
            ids[key] = marker if isinstance(marker, int) else known[marker]
            continue
        where, fix = (
            f"pools.{name}.transform.fim.{key}",
            "write its id, or the text exactly as the tokenizer has it",
        )
        problems.append(Problem(where, repr(marker), "a token of the recipe's tokenizer", fix))
    return fim.model_copy(update=ids)


def marker_problems(recipe: Recipe, pools: Mapping[str, Pool]) -> list[Problem]:
    """Markers that are marks of their pool, equal to each other, or ids that the model has no row for."""
    found = []
    vocab_size = recipe.model.vocab_size if recipe.model is not None else None
    for name, pool in pools.items():
        transform = recipe.pools[name].transform
        if transform is None:
            continue
        marks = {"bos": pool.bos, "eos": pool.eos}
        for fault in marker_faults(transform.fim, marks, vocab_size):
            found.append(fault.below(("pools", name, "transform", "fim")).problem())
    return found
