"""From plain values to a recipe, or to every fault in them at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from recipe.config.checks import recipe_faults
from recipe.config.lost_sets import lost_sets, tellable, with_stand_ins
from recipe.config.merging import WrittenStages, at_origin, merge_stages
from recipe.config.model import ParallelConfig
from recipe.config.partial import read_partly
from recipe.config.pool_patterns import expand_patterns, whole_sets
from recipe.config.pool_sets import expand_pool_sets, sets_in
from recipe.config.problems import Fault, Place, Unresolved, faults_of, unique
from recipe.config.recipe import Recipe
from recipe.config.stage import OBJECTIVE, SHARES, Stage
from recipe.config.vocabulary import TOP_ONLY_WRITTEN, VOCABULARY
from recipe.errors import RecipeError

_MERGED: tuple[Place, ...] = (*((form,) for form in (*SHARES, OBJECTIVE)), ("batch", "ramp"))
"""Mappings of a stage that are only judged whole: a stage may add what is missing."""


def build_recipe(
    data: Mapping[str, Any], title: str, also: Sequence[Fault] = (), stand_ins: Collection[str] = ()
) -> Recipe:
    """The recipe that plain values state.

    Args:
        data: what was written, every value plain; ``every_stage``, ``like`` and ``curriculum`` allowed.
        title: what messages call the recipe.
        also: faults found before, told together with those found here.
        stand_ins: names of pools that stand for others, of which nothing is told; there are faults already.

    Raises:
        RecipeError: with every problem.
    """
    found = _key_faults(data, ())
    data, faults = expand_patterns(_text_keys(data))
    found += faults
    written = merge_stages(data)
    found += [fault for fault in written.faults if not isinstance(fault.given, Unresolved)]
    found += _faults_of_no_stage(data.get("every_stage"), written)
    whole = {key: value for key, value in data.items() if key not in TOP_ONLY_WRITTEN}
    whole["stages"] = _named(written)
    found += _own_names(data.get("stages"))
    recipe, between = _read(whole)
    in_order = all(fault.place != ("curriculum",) for fault in written.faults)
    between += recipe_faults(recipe, in_order=in_order)
    found += at_origin([fault for fault in between if _is_known(fault, written)], written.origins)
    if found := [*also, *tellable(found, stand_ins)]:
        raise RecipeError(title, [fault.problem() for fault in unique(found)])
    return recipe


def _read(whole: Mapping[str, Any]) -> tuple[Recipe, list[Fault]]:
    """The recipe, or as much of it as is sound with the faults of the rest."""
    try:
        return Recipe.model_validate(whole), []
    except ValidationError as error:
        return read_partly(Recipe, whole), faults_of(error, VOCABULARY)


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


def _is_known(fault: Fault, written: WrittenStages) -> bool:
    """Whether a fault is one whatever a stage takes from another that cannot be found."""
    return not (fault.is_absence and fault.place[:1] == ("stages",) and fault.place[1] in written.incomplete)


def _faults_of_no_stage(every: Any, written: WrittenStages) -> list[Fault]:
    """Faults of ``every_stage`` where there is no stage to tell them; what stages would add is not judged."""
    stages = written.stages.values() if isinstance(written.stages, Mapping) else ()
    if not isinstance(every, Mapping) or any(isinstance(stage, Mapping) for stage in stages):
        return []
    try:
        Stage.model_validate({**every, "name": "every_stage"})
    except ValidationError as error:
        found = faults_of(error, VOCABULARY, ("every_stage",))
        return [fault for fault in found if not fault.is_absence and fault.place[1:] not in _MERGED]
    return []


def recipe_from_plain(data: Mapping[str, Any], *, source: str) -> Recipe:
    """The recipe in plain values, as `recipe_to_plain` gives them or a person wrote them.

    Folders are looked up where a pool is a set of them; in values that `recipe_to_plain` gave none is.

    Raises:
        RecipeError: with every problem; ``source`` names where the values come from.
    """
    whole, found = expand_pool_sets(data)
    lost, stand_ins = lost_sets(found), list[str]()
    if lost:
        whole["pools"], stand_ins = with_stand_ins(data, whole["pools"], lost)
    whole, partial = whole_sets(whole, [key for key in sets_in(data) if key not in lost])
    return build_recipe(whole, source, also=[*found, *partial], stand_ins=stand_ins)


def recipe_to_plain(recipe: Recipe) -> dict[str, Any]:
    """The recipe in plain values: text, numbers, mappings and lists in order, exact, fit for YAML and JSON.

    Keys that came after the first recipes were stored are left out where they have their defaults.

    ``recipe_from_plain(recipe_to_plain(r), source=…) == r``.
    """
    plain = recipe.model_dump(mode="json", by_alias=True, exclude_none=True)
    for part in (*plain["stages"].values(), *plain["pools"].values()):
        if part.get("slicing") == {}:
            del part["slicing"]
    for stage in plain["stages"].values():
        if stage["packing"]["document_multiple"] == 1:
            del stage["packing"]["document_multiple"]
        for key, default in (("eos_keep", "100%"), ("shuffle_fit", False)):
            if stage["packing"][key] == default:
                del stage["packing"][key]
    if recipe.parallel == ParallelConfig():
        del plain["parallel"]
    if recipe.deal == "order":
        del plain["deal"]
    return plain
