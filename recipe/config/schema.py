"""The JSON Schema of a recipe as it is written, for editors and checkers."""

from __future__ import annotations

from typing import Any

from recipe.config.recipe import Recipe
from recipe.config.stage import Stage

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def recipe_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the written form: amounts as text or numbers, shorthands, inheritance.

    A stage may be ``like`` another or take values from ``every_stage``, so no key of a stage is required here;
    the program checks the whole stage.
    """
    schema = Recipe.model_json_schema(mode="validation", by_alias=True)
    stage = schema["$defs"]["Stage"]
    stage.pop("required", None)
    stage["properties"]["like"] = {
        "type": "string",
        "description": "Another stage whose values this one starts from.",
    }
    every = {key: value for key, value in stage["properties"].items() if key != "like"}
    schema["$defs"]["EveryStage"] = {
        "type": "object",
        "description": "Values that every stage starts from.",
        "additionalProperties": False,
        "properties": every,
    }
    properties = schema["properties"]
    properties["every_stage"] = {"$ref": "#/$defs/EveryStage"}
    properties["curriculum"] = {
        "type": "array",
        "items": {"type": "string"},
        "description": "Stages in the order they are run; default: as written.",
    }
    properties["defaults"] = {"type": "array", "description": "Other configs this one starts from (Hydra)."}
    schema["$defs"]["GroupConfig"] = _with_list(schema["$defs"]["GroupConfig"])
    schema["$defs"]["TokenizerConfig"] = _or_text(schema["$defs"]["TokenizerConfig"])
    return {"$schema": _DIALECT, "title": "recipe", "description": Recipe.__doc__, **_without_title(schema)}


def _with_list(group: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [{"type": "array", "items": {"type": "string"}, "minItems": 1}, group]}


def _or_text(tokenizer: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [{"type": "string"}, tokenizer]}


def _without_title(schema: dict[str, Any]) -> dict[str, Any]:
    assert Stage.__name__ in schema["$defs"]
    return {key: value for key, value in schema.items() if key not in ("title", "description")}
