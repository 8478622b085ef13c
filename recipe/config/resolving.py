"""Interpolations replaced by what they stand for; those that lead nowhere are told, and hide nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from recipe.config.problems import Fault, Place, Unresolved
from recipe.errors import RecipeError


def resolve(data: dict[str, Any], title: str) -> tuple[dict[str, Any], list[Fault]]:
    """Plain values with every interpolation resolved, and the faults of those that lead nowhere.

    In their place stands an `Unresolved`.

    Raises:
        RecipeError: a value can only be known to lead nowhere when all are put together.
    """
    try:
        return _resolved(data), []
    except OmegaConfBaseException as error:
        lost = dict(_lost(data))
        found = [_fault(why, ".".join(place)) for place, (_, why) in lost.items()]
        if not lost:
            raise omegaconf_error(error, title) from None
    marks = {f"\0{number}": Unresolved(text) for number, (text, _) in enumerate(lost.values())}
    marked = _marked(data, dict(zip(lost, marks, strict=True)))
    try:
        return _unmarked(_resolved(marked), marks), found
    except OmegaConfBaseException as error:
        other = omegaconf_error(error, title).problems
        raise RecipeError(title, [*(fault.problem() for fault in found), *other]) from None


def _resolved(data: dict[str, Any]) -> dict[str, Any]:
    resolved = OmegaConf.to_container(OmegaConf.create(data), resolve=True, throw_on_missing=True)
    assert isinstance(resolved, dict)
    return {str(key): value for key, value in resolved.items()}


def _lost(data: dict[str, Any]) -> Iterator[tuple[Place, tuple[str, OmegaConfBaseException]]]:
    """The texts that cannot be resolved, by place, and why."""
    config = OmegaConf.create(data)
    for keys, text in _texts(data, ()):
        holder: Any = config
        try:
            for key in keys:
                holder = holder[key]
        except OmegaConfBaseException as error:
            yield tuple(map(str, keys)), (text, error)


def _texts(value: Any, above: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str]]:
    if isinstance(value, str):
        yield above, value
    for key, below in _items(value):
        yield from _texts(below, (*above, key))


def _items(value: Any) -> Sequence[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else []


def _marked(value: Any, marks: Mapping[Place, str], above: Place = ()) -> Any:
    if isinstance(value, str):
        return marks.get(above, value)
    below = {key: _marked(item, marks, (*above, str(key))) for key, item in _items(value)}
    if isinstance(value, list):
        return list(below.values())
    return below if isinstance(value, Mapping) else value


def _unmarked(value: Any, marks: Mapping[str, Unresolved]) -> Any:
    if isinstance(value, str):
        return marks.get(value, value)
    if isinstance(value, list):
        return [_unmarked(item, marks) for item in value]
    return {key: _unmarked(item, marks) for key, item in value.items()} if isinstance(value, dict) else value


def omegaconf_error(error: OmegaConfBaseException, title: str) -> RecipeError:
    """What OmegaConf found, as a person reads it."""
    return RecipeError(title, [_fault(error, str(error.full_key or "the recipe")).problem()])


def _fault(error: OmegaConfBaseException, key: str) -> Fault:
    lines = str(error.msg or error).splitlines()
    fix = "name a key that exists, or ${oc.env:NAME,default} for the environment"
    if "mandatory" in lines[0].lower():
        fix = f"give it a value: {key}=…"
    elif "merge" in lines[0].lower():
        fix = "write a mapping where the configs of the defaults list have one"
    return Fault((key,), lines[0], "a value that can be resolved", fix)
