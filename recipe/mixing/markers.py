"""Markers of transforms against the pools: texts become ids; ids that mean something else are refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from recipe.config import Recipe
from recipe.config.problems import Place
from recipe.config.transform import FimConfig, TransformConfig
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
    named = [each for each in recipe.transforms if any(isinstance(m, str) for m in each.fim.markers.values())]
    if not named:
        return recipe
    known, problems = _vocabulary(recipe, named[0].place), list[Problem]()
    settled = {place: _with_ids(place, fim, known, problems) for place, _, fim in named}
    if problems:
        raise RecipeError(recipe.name, problems)
    pools_now = {
        name: pool.model_copy(
            update={"transform": _replaced(pool.transform, settled.get(("pools", name, "transform", "fim")))}
        )
        for name, pool in recipe.pools.items()
    }
    stages = {}
    for name, stage in recipe.stages.items():
        own = {
            pool: _replaced(transform, settled.get(("stages", name, "transform", pool, "fim")))
            for pool, transform in (stage.transform or {}).items()
        }
        stages[name] = stage.model_copy(update={"transform": own}) if own else stage
    return recipe.model_copy(update={"pools": pools_now, "stages": stages})


def _replaced(transform: TransformConfig | None, fim: FimConfig | None) -> TransformConfig | None:
    if transform is None or fim is None:
        return transform
    return transform.model_copy(update={"fim": fim})


def _vocabulary(recipe: Recipe, place: Place) -> dict[str, int]:
    path = recipe.tokenizer.path if recipe.tokenizer is not None else None
    if path is None:
        where = ".".join(place)
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


def _with_ids(place: Place, fim: FimConfig, known: Mapping[str, int], problems: list[Problem]) -> FimConfig:
    ids: dict[str, int] = {}
    for key, marker in fim.markers.items():
        if isinstance(marker, int) or marker in known:
            ids[key] = marker if isinstance(marker, int) else known[marker]
            continue
        where, fix = ".".join((*place, key)), "write its id, or the text exactly as the tokenizer has it"
        problems.append(Problem(where, repr(marker), "a token of the recipe's tokenizer", fix))
    return fim.model_copy(update=ids)


def marker_problems(recipe: Recipe, pools: Mapping[str, Pool]) -> list[Problem]:
    """Markers that are marks of their pool, equal to each other, or ids that the model has no row for."""
    found = []
    vocab_size = recipe.model.vocab_size if recipe.model is not None else None
    for place, name, fim in recipe.transforms:
        if name not in pools:
            continue
        marks = {"bos": pools[name].bos, "eos": pools[name].eos}
        for fault in marker_faults(fim, marks, vocab_size):
            found.append(fault.below(place).problem())
    return found
