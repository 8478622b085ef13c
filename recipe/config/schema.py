"""The JSON Schema of a recipe as it is written, for editors and checkers."""

from __future__ import annotations

from typing import Any, get_args

from recipe.config.merging import NOT_INHERITED
from recipe.config.model import Method
from recipe.config.recipe import Recipe

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def recipe_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of the written form: amounts as text or numbers, shorthands included.

    A stage may be ``like`` another or take values from ``every_stage``, and a recipe from its ``defaults``,
    so little is required here; the program checks the whole.
    """
    schema = Recipe.model_json_schema(mode="validation", by_alias=True)
    stage = schema["$defs"]["Stage"]
    stage.pop("required", None)
    stage["properties"]["like"] = {
        "type": "string",
        "description": "Another stage whose values this one starts from.",
    }
    packing = stage["properties"]["packing"]
    packing["anyOf"] = [{"$ref": packing.pop("$ref")}, {"enum": list(get_args(Method)), "type": "string"}]
    own = ("like", *NOT_INHERITED)
    every = {key: value for key, value in stage["properties"].items() if key not in own}
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
    required = schema.pop("required")
    schema["anyOf"] = [{"required": required}, {"required": ["defaults"]}]
    schema["$defs"]["GroupConfig"].pop(
        "required"
    )  # one that is called as a pattern has the pools that fit it
    schema["$defs"]["GroupConfig"] = _with_list(schema["$defs"]["GroupConfig"])
    for name in ("TokenizerConfig", "SinkConfig", "HeldOutConfig"):
        schema["$defs"][name] = {"anyOf": [{"type": "string"}, schema["$defs"][name]]}
    policy = schema["$defs"]["PolicyConfig"]
    del policy["properties"]["params"]
    policy["additionalProperties"] = True
    schema.update(title="recipe", description=Recipe.__doc__)
    return {"$schema": _DIALECT, **schema}


def _with_list(group: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [{"type": "array", "items": {"type": "string"}, "minItems": 1}, group]}
