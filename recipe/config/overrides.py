"""Overrides applied to a recipe's plain values: mappings merge, lists and values are replaced."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import PydanticCustomError

from recipe.config.change import Change
from recipe.config.free import TRAINER_SETTINGS
from recipe.config.merging import STAGE_ALTERNATIVES, drop_alternatives
from recipe.config.problems import TARGET, Fault, Place, Vocabulary, nearest, shown

_NAMED = ("pools", "groups", "stages")
"""Mappings whose keys are names of the recipe's own: a new one needs a ``+``."""
_FREE = ("trainer", "policy")
"""Mappings whose keys are somebody else's: so does a new one there, lest a misspelt key go unnoticed; but
for settings of the reference trainer, which have a default, in a block that holds no others."""


def read_overrides(texts: Sequence[str]) -> tuple[list[Change], list[Fault]]:
    """The overrides that can be read, and the faults of those that cannot."""
    changes, found = list[Change](), list[Fault]()
    if not texts:
        return changes, found
    from recipe.config.override_text import read_override  # Hydra's grammar takes long to import

    for text in texts:
        try:
            changes.append(read_override(text))
        except PydanticCustomError as error:
            found += [fault.below((text,)) for fault in (error.context or {})["faults"]]
    return changes, found


def apply_changes(data: dict[str, Any], changes: Sequence[Change], vocabulary: Vocabulary) -> list[Fault]:
    """Apply overrides in order, in place; what cannot be applied is left out and told."""
    found = list[Fault]()
    for change in changes:
        fault = refused(data, change, vocabulary)
        if fault is None:
            apply_change(data, change)
        else:
            found.append(fault)
    return found


def refused(data: dict[str, Any], change: Change, vocabulary: Vocabulary) -> Fault | None:
    """Why an override cannot be applied; None where it can."""
    place, missing = change.place, object()
    there = _get(data, place, missing)
    if change.kind == "delete":
        return _refused_delete(change, there, there is missing, vocabulary)
    if change.kind == "set" and len(place) > 1 and place[0] in _NAMED:
        names = data.get(place[0])
        if not isinstance(names, Mapping) or place[1] not in names:
            known = list(names) if isinstance(names, Mapping) else []
            fix = nearest(place[1], known, "name one of these;")
            expected = f"one of {', '.join(known) or 'none'}"
            return Fault(place[:2], change.text, expected, f"{fix} +{change.text} adds a new one")
    if change.kind == "set" and there is missing and (new := _new_in_free(data, change)) is not None:
        return new
    for depth in range(1, len(place) + 1):
        if not vocabulary.is_known(place[:depth]):
            return vocabulary.unknown_key(place[:depth], change.text)
    if (blocked := _blocked(data, place)) is not None:
        held, depth = blocked
        fix = "set the whole value, or name a key or number that is there"
        return Fault(place[:depth], change.text, f"a place inside {shown(held)}", fix)
    if (emptied := _emptied(there, change.value, place)) is not None:
        key = ".".join(emptied)
        expected = "a mapping with what to change: mappings merge, and {} changes nothing"
        return Fault(emptied, change.text, expected, f"write ~{key} to remove it, or name the keys to change")
    if change.kind == "add" and there is not missing and there is not None and not isinstance(there, Mapping):
        fix = f"write {change.text.lstrip('+')} to replace it"
        return Fault(place, change.text, f"a key the recipe does not have; it is {there}", fix)
    return None


def _new_in_free(data: dict[str, Any], change: Change) -> Fault | None:
    """The fault of a key that a free mapping does not have: misspelt, or new, which a ``+`` says."""
    place, missing = change.place, object()
    if len(place) == 1 or place[0] not in _FREE or place in (("policy", TARGET), ("policy", "every")):
        return None
    there = [depth for depth in range(1, len(place)) if _get(data, place[:depth], missing) is not missing]
    depth = max(there, default=1)
    holder = _get(data, place[:depth], {})
    if not isinstance(holder, Mapping):
        return None
    known = list(map(str, holder))
    if place[:depth] == ("trainer",) and set(known) <= set(TRAINER_SETTINGS):  # the reference trainer's own
        known = list(TRAINER_SETTINGS)
        if place[1] in known:
            return None
    fix = nearest(place[depth], known, "name one of these;")
    expected = f"one of {', '.join(known) or 'none'}"
    return Fault(place[: depth + 1], change.text, expected, f"{fix} +{change.text} adds a new one")


def _emptied(there: Any, value: Any, place: Place) -> Place | None:
    """Where an override lays an empty mapping over one that holds something: it would have no effect."""
    if not isinstance(value, Mapping) or not isinstance(there, Mapping) or not there:
        return None
    if not value:
        return place
    below = (_emptied(there.get(key), item, (*place, key)) for key, item in value.items())
    return next((found for found in below if found is not None), None)


def _blocked(data: Any, place: Place) -> tuple[Any, int] | None:
    """The list that has no such entry, or the value in it that has no keys, and how deep it is."""
    in_list = False
    for depth, key in enumerate(place):
        if isinstance(data, list):
            if not key.isdecimal() or int(key) >= len(data):
                return data, depth
            data, in_list = data[int(key)], True
        elif isinstance(data, Mapping):
            data = data.get(key)
        elif in_list:
            return data, depth
        else:
            return None
        if _is_short_group(place[: depth + 1], data):
            return None
    return None


def _refused_delete(change: Change, there: Any, is_missing: bool, vocabulary: Vocabulary) -> Fault | None:
    if is_missing:
        if not vocabulary.is_known(change.place):
            return vocabulary.unknown_key(change.place, change.text)
        return Fault(change.place, change.text, "a key that the recipe has", "leave the override out")
    if change.has_value and str(there) != str(change.value):
        fix = f"write ~{change.key} to remove it whatever it is"
        return Fault(change.place, change.text, f"the value it has: {there}", fix)
    return None


def _get(data: Any, place: Place, missing: Any) -> Any:
    for key in place:
        if isinstance(data, Mapping) and key in data:
            data = data[key]
        elif isinstance(data, list) and key.isdecimal() and int(key) < len(data):
            data = data[int(key)]
        else:
            return missing
    return data


def apply_change(data: dict[str, Any], change: Change) -> None:
    """Apply an override that is not `refused`, in place."""
    *above, last = change.place
    holder: Any = data
    for depth, key in enumerate(above):
        holder = _step_into(holder, key, change.place[: depth + 1])
    if isinstance(holder, list):
        index = int(last)
        holder[index : index + 1] = [] if change.kind == "delete" else [change.value]
    elif change.kind == "delete":
        del holder[last]
    else:
        _lay_over(holder, {last: change.value}, tuple(above))


def _step_into(holder: Any, key: str, place: Place) -> Any:
    """The mapping or list at a key, made where it is missing; shorthand becomes the mapping it stands for."""
    if isinstance(holder, list):
        return holder[int(key)]
    if not isinstance(holder.get(key), dict | list) or _is_short_group(place, holder[key]):
        holder[key] = _spelled_out(place, holder.get(key))
    return holder[key]


def _is_short_group(place: Place, value: Any) -> bool:
    return len(place) == 2 and place[0] == "groups" and isinstance(value, list)


def _spelled_out(place: Place, value: Any) -> dict[str, Any]:
    if _is_short_group(place, value):
        return {"pools": value}
    if isinstance(value, str) and place[-1] == "packing":
        return {"method": value}
    if isinstance(value, str) and place == ("sink",):
        return {"format": value}
    return {}


def _lay_over(holder: dict[str, Any], over: Mapping[str, Any], place: Place) -> None:
    within_stage = place[2:] if place[:1] == ("stages",) and len(place) >= 2 else None
    if place[:1] == ("every_stage",):
        within_stage = place[1:]
    if within_stage is not None:
        drop_alternatives(holder, over, within_stage, STAGE_ALTERNATIVES)
    for key, value in over.items():
        there = holder.get(key)
        if isinstance(value, Mapping) and isinstance(there, dict):
            _lay_over(there, value, (*place, key))
        else:
            holder[key] = value
