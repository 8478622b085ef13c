"""From plain values to a recipe, or to every fault in them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from recipe.config.checks import recipe_faults
from recipe.config.group import GroupConfig
from recipe.config.merging import WrittenStages, at_origin, merge_stages
from recipe.config.model import Model, ModelConfig, PoolConfig
from recipe.config.problems import Fault, Place, faults_of, unique
from recipe.config.recipe import Recipe
from recipe.config.stage import Stage
from recipe.config.vocabulary import TOP_ONLY_WRITTEN, VOCABULARY
from recipe.errors import RecipeError

_M = TypeVar("_M", bound=Model)


def build_recipe(data: Mapping[str, Any], title: str, also: Sequence[Fault] = ()) -> Recipe:
    """The recipe that plain values state.

    Args:
        data: what was written, every value plain; ``every_stage``, ``like`` and ``curriculum`` allowed.
        title: what messages call the recipe.
        also: faults found before, told together with those found here.

    Raises:
        RecipeError: with every problem.
    """
    found = [*also, *_key_faults(data, ())]
    data = _text_keys(data)
    written = merge_stages(data)
    found += written.faults
    whole = {key: value for key, value in data.items() if key not in TOP_ONLY_WRITTEN}
    whole["stages"] = _named(written)
    found += _own_names(data.get("stages"))
    try:
        recipe = Recipe.model_validate(whole)
    except ValidationError as error:
        found += at_origin(_all_faults(whole, error), written.origins)
        recipe = None
    if found:
        raise RecipeError(title, [fault.problem() for fault in unique(found)])
    assert recipe is not None, "a recipe without faults was built"
    return recipe


def _key_faults(value: Any, place: Place) -> list[Fault]:
    """Faults of names that are no text, as a YAML reader that converts them would give."""
    if isinstance(value, list | tuple):
        return [
            fault for index, item in enumerate(value) for fault in _key_faults(item, (*place, str(index)))
        ]
    if not isinstance(value, Mapping):
        return []
    found = []
    for key, below in value.items():
        if not isinstance(key, str) and type(key) is not int:
            expected, fix = "a name as text", "put the name in quotes where it is written"
            found.append(Fault((*place, str(key)), f"{key!r} as a name", expected, fix))
        found += _key_faults(below, (*place, str(key)))
    return found


def _text_keys(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_text_keys(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _text_keys(below) for key, below in value.items()}
    return value


def _named(written: WrittenStages) -> Any:
    if not isinstance(written.stages, Mapping):
        return written.stages
    return {
        name: {**stage, "name": name} if isinstance(stage, Mapping) else stage
        for name, stage in written.stages.items()
    }


def _own_names(stages: Any) -> list[Fault]:
    """Faults of stages that state a name of their own: the key is the name."""
    if not isinstance(stages, Mapping):
        return []
    return [
        Fault(
            ("stages", name, "name"),
            stage["name"],
            "a key of a stage",
            f"remove it: the stage is called {name}",
        )
        for name, stage in stages.items()
        if isinstance(stage, Mapping) and "name" in stage
    ]


def _all_faults(whole: Mapping[str, Any], error: ValidationError) -> list[Fault]:
    """Faults of the parts, and, as far as parts are whole, faults between them."""
    found = faults_of(error, VOCABULARY)
    places = {fault.place for fault in found}
    between = recipe_faults(
        _parts(whole.get("pools"), PoolConfig),
        _parts(whole.get("groups"), GroupConfig),
        _parts(whole.get("stages"), Stage),
        _part(whole.get("model"), ModelConfig),
    )
    return found + [fault for fault in between if fault.place not in places]


def _parts(given: Any, kind: type[_M]) -> dict[str, _M | None]:
    if not isinstance(given, Mapping):
        return {}
    return {name: _part(value, kind) for name, value in given.items()}


def _part(given: Any, kind: type[_M]) -> _M | None:
    try:
        return TypeAdapter(kind).validate_python(given)
    except ValidationError:
        return None


def recipe_from_plain(data: Mapping[str, Any], *, source: str) -> Recipe:
    """The recipe in plain values, as `recipe_to_plain` gives them or a person wrote them.

    Raises:
        RecipeError: with every problem; ``source`` names where the values come from.
    """
    return build_recipe(data, source)


def recipe_to_plain(recipe: Recipe) -> dict[str, Any]:
    """The recipe in plain values: text, numbers, mappings and lists in order, exact, fit for YAML and JSON.

    ``recipe_from_plain(recipe_to_plain(r), source=…) == r``.
    """
    plain = recipe.model_dump(mode="json", by_alias=True, exclude_none=True)
    for part in (*plain["stages"].values(), *plain["pools"].values()):
        if part.get("slicing") == {}:
            del part["slicing"]
    return plain
