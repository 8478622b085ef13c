"""What is wrong with a ``trainer:`` block, in the words of a recipe's other faults."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from recipe.config.held_out import entry_faults
from recipe.config.problems import nearest, problem, shown
from recipe.errors import Problem

_OWN = "recipe_faults"
"""The type of the errors that :func:`recipe.config.problems.problem` makes."""
_KINDS = {"integer": "a whole number", "number": "a number", "string": "text"}
_DEVICES = "cpu, cuda, or cuda:N for the N-th"
_AREAS = "a mapping of areas to the folders of held-out pools"


def heads_fault(width: int, heads: int) -> Any:
    """The error of a width that the heads do not share in even parts; None where they do."""
    step = 2 * heads
    if width % step == 0:
        return None
    low = width // step * step
    sizes = f"{low} or {low + step}" if low else str(step)
    return problem(
        "width",
        given=f"width {width} with {heads} heads",
        expected=f"a multiple of 2 x {heads} heads = {step}",
        fix=f"write width: {sizes}, or other heads",
    )


def problems_of(faults: Iterable[Any], properties: Mapping[str, Any]) -> list[Problem]:
    """What a person reads of a validation's errors, one problem a key.

    Args:
        faults: as pydantic lists them.
        properties: JSON Schema of each setting.

    >>> fault = {"type": "greater_than_equal", "loc": ("keep",), "input": 0}
    >>> print(*problems_of([fault], {"keep": {"type": "integer", "minimum": 1, "default": None}}))
      trainer.keep
        given     0
        expected  a whole number, 1 or more
        fix       write keep: 1, or leave it out
    """
    found: dict[str, Problem] = {}
    for fault in faults:
        for told in _problems(fault, properties):
            found.setdefault(told.where, told)
    return list(found.values())


def _problems(fault: Any, properties: Mapping[str, Any]) -> list[Problem]:
    names = [str(part) for part in fault["loc"]]
    if fault["type"] == _OWN:
        return [each.below(("trainer", *names)).problem() for each in fault["ctx"]["faults"]]
    key, *below = names
    if fault["type"] == "extra_forbidden" and not below:
        fix = nearest(key, properties, "leave it out: the reference trainer reads nothing else")
        return [Problem(f"trainer.{key}", shown(fault["input"]), f"one of {', '.join(properties)}", fix)]
    schema = properties[key]
    if "additionalProperties" in schema and len(below) > 1:
        detail: Any = {**fault, "loc": below}
        return [one.problem() for one in entry_faults([detail], ("trainer", key))]
    if "additionalProperties" in schema:
        expected = "the folder of a pool, as text" if below else _AREAS
        fix = f"write {key}: {{{below[0] if below else 'code'}: pools/held/code}}"
        return [Problem(".".join(("trainer", *names)), _given(fault["input"]), expected, fix)]
    # An override reaches a list as a whole.
    where = f"trainer.{key}"
    decimal = below or _without_null(schema).get("type") == "number"
    missing = fault["type"] == "missing"
    given = shown(fault["input"]) if decimal and not missing else _given(fault["input"])
    return [Problem(where, given, _expected(schema), _fix(key, schema, fault["input"]))]


def _given(value: object) -> str:
    """Text that reads like a number is shown in quotes where that it is text is what is wrong with it."""
    if isinstance(value, tuple):
        return shown(list(value))
    return repr(value) if isinstance(value, str) and value.strip("+-")[:1].isdigit() else shown(value)


def _expected(schema: Mapping[str, Any]) -> str:
    """A setting's values in words."""
    schema = _without_null(schema)
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if "prefixItems" in schema:
        one = schema["prefixItems"][0]
        return (
            f"a list of {len(schema['prefixItems'])} numbers, each {one['ge']} or more and below {one['lt']}"
        )
    if "pattern" in schema:
        return _DEVICES
    return ", ".join(filter(None, (_KINDS[schema["type"]], _span(schema))))


def _span(schema: Mapping[str, Any]) -> str:
    least, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    most, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    if least is not None and most is not None:
        return f"{least}..{most}"
    low = f"{least} or more" if least is not None else f"above {above}" if above is not None else ""
    high = f"at most {most}" if most is not None else f"below {below}" if below is not None else ""
    return " and ".join(filter(None, (low, high)))


def _fix(key: str, schema: Mapping[str, Any], given: object) -> str:
    default = schema.get("default")
    if default is None:
        return f"write {key}: {_without_null(schema).get('minimum', 1)}, or leave it out"
    usual = f"write {key}: {default}, which it is when left out"
    return nearest(given, schema["enum"], usual) if "enum" in schema else usual


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a setting is when it is not left out."""
    choices = schema.get("anyOf", [schema])
    return next(choice for choice in choices if choice.get("type") != "null")
