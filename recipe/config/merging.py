"""``every_stage``, ``like`` and ``curriculum`` applied: from what is written to whole stages in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from recipe.config.problems import Fault, Place, nearest
from recipe.config.stage import BATCHES, LENGTHS, SHARES

STAGE_ALTERNATIVES: Mapping[Place, Sequence[Sequence[str]]] = {(): (LENGTHS, SHARES), ("batch",): (BATCHES,)}
"""Keys of a stage that replace each other whole, by the mapping they stand in."""

NOT_INHERITED = ("quota_ramp",)
"""Keys that belong to one stage: neither ``every_stage`` nor ``like`` hands them on."""

_SHORTHANDS = {("packing",): "method"}


@dataclass(slots=True)
class WrittenStages:
    """Stages with everything they inherit, and where each value was written."""

    stages: dict[str, Any]
    origins: dict[Place, Place] = field(default_factory=dict)
    """Place of an inherited value below ``stages`` -> the place it was written at."""
    faults: list[Fault] = field(default_factory=list)
    incomplete: set[str] = field(default_factory=set)
    """Stages that are like one that cannot be found: what they leave out is not known."""


def merge_stages(data: Mapping[str, Any]) -> WrittenStages:
    """The stages of a recipe in curriculum order, with ``every_stage`` and ``like`` applied.

    Mappings merge; alternatives (tokens | steps | until; sequences | tokens | ramp; quotas | weights |
    quotas_tokens) replace each other whole.
    """
    stages, every = data.get("stages"), data.get("every_stage")
    if not isinstance(stages, Mapping):
        return WrittenStages({} if stages is None else stages)
    result = WrittenStages({})
    result.faults += _faults_of_every(every)
    every = every if isinstance(every, Mapping) else None
    for name in _ordered(stages, data.get("curriculum"), result):
        chain = _chain(name, stages, result)
        merged: dict[str, Any] = {}
        if isinstance(every, Mapping):
            _merge(
                merged,
                _without(every, "like", "name", *NOT_INHERITED),
                _Writer(result.origins, ("stages", name), ("every_stage",)),
            )
        for ancestor in chain:
            own = stages[ancestor]
            if isinstance(own, Mapping):
                writer = _Writer(result.origins, ("stages", name), ("stages", ancestor))
                _merge(merged, _without(own, "like", *(NOT_INHERITED if ancestor != name else ())), writer)
        result.stages[name] = merged if isinstance(stages[name], Mapping) else stages[name]
    return result


def _faults_of_every(every: Any) -> list[Fault]:
    """Faults of what all stages share."""
    if every is None:
        return []
    if not isinstance(every, Mapping):
        return [Fault(("every_stage",), every, "a mapping of keys of a stage", "write {context: 4096}")]
    fixes = {"like": "remove like", "name": "remove name"}
    fixes |= {key: f"move it to the stages that have a {key}" for key in NOT_INHERITED}
    return [
        Fault(("every_stage", key), every[key], "a key that all stages share", fix)
        for key, fix in fixes.items()
        if key in every
    ]


def _without(mapping: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if key not in keys}


def _ordered(stages: Mapping[str, Any], curriculum: Any, result: WrittenStages) -> list[str]:
    if curriculum is None:
        return list(stages)
    place, known = ("curriculum",), ", ".join(stages)
    if not isinstance(curriculum, Sequence) or isinstance(curriculum, str):
        result.faults.append(Fault(place, curriculum, "a list of stages", f"write [{known}]"))
        return list(stages)
    names = [str(name) for name in curriculum]
    for name in dict.fromkeys(names):
        if name not in stages:
            result.faults.append(Fault(place, name, f"stages of the recipe: {known}", nearest(name, stages)))
        elif names.count(name) > 1:
            fix = f"remove one, and add a stage {{like: {name}}} to run it again"
            result.faults.append(Fault(place, f"{name} {names.count(name)} times", "each stage once", fix))
    misspelt = any(name not in stages for name in names)
    for name in stages:
        if name not in names and not misspelt:
            fix = f"add {name}, or remove the stage with ~stages.{name}"
            result.faults.append(Fault(place, f"no {name}", f"every stage: {known}", fix))
    listed = [name for name in dict.fromkeys(names) if name in stages]
    return listed + [name for name in stages if name not in listed]


def _chain(name: str, stages: Mapping[str, Any], result: WrittenStages) -> list[str]:
    """The stages that one is like, the most remote first, itself last."""
    chain, num_faults = [name], len(result.faults)
    while isinstance(stages[chain[-1]], Mapping) and stages[chain[-1]].get("like") is not None:
        last, other = chain[-1], stages[chain[-1]]["like"]
        place = ("stages", last, "like")
        others = [stage for stage in stages if stage != last]
        if not isinstance(other, str) or other not in stages:
            result.faults.append(
                Fault(
                    place,
                    other,
                    f"another stage: {', '.join(others) or 'none is there'}",
                    nearest(other, others),
                )
            )
            break
        if other in chain:
            circle = " -> ".join([*chain, other])
            result.faults.append(
                Fault(place, other, "a stage that does not come back here", f"{circle}: remove one like")
            )
            break
        chain.append(other)
    if len(result.faults) > num_faults:
        result.incomplete.add(name)
    return chain[::-1]


@dataclass(frozen=True, slots=True)
class _Writer:
    """Where a layer's values go and where they were written."""

    origins: dict[Place, Place]
    into: Place
    origin: Place

    def note(self, path: Place) -> None:
        self.origins[(*self.into, *path)] = (*self.origin, *path)

    def forget(self, path: Place) -> None:
        gone = (*self.into, *path)
        for place in [place for place in self.origins if place[: len(gone)] == gone]:
            del self.origins[place]


def _merge(under: dict[str, Any], over: Mapping[str, Any], writer: _Writer, path: Place = ()) -> None:
    """Lay one layer over another: mappings merge, an alternative pushes out the others."""
    drop_alternatives(under, over, path, STAGE_ALTERNATIVES, writer.forget)
    for key, value in over.items():
        here = (*path, key)
        if here in _SHORTHANDS and isinstance(value, str):
            value = {_SHORTHANDS[here]: value}
        writer.note(here)
        if isinstance(value, Mapping):
            below = under.get(key)
            under[key] = dict(below) if isinstance(below, Mapping) else {}
            _merge(under[key], value, writer, here)
        else:
            under[key] = value


def drop_alternatives(
    under: dict[str, Any],
    over: Iterable[str],
    path: Place,
    alternatives: Mapping[Place, Sequence[Sequence[str]]],
    forget: Any = lambda place: None,
) -> None:
    """Remove from a mapping the alternatives of keys that are laid over it."""
    for keys in alternatives.get(path, ()):
        given = [key for key in keys if key in over]
        for other in (key for key in keys if given and key not in given and key in under):
            del under[other]
            forget((*path, other))


def at_origin(faults: Iterable[Fault], origins: Mapping[Place, Place]) -> list[Fault]:
    """Faults of inherited values, told once where the value is written.

    A value that is wrong in every stage that inherits it is wrong where it is written; one that is wrong in
    some of them only is told there.
    """
    faults = list(faults)
    heirs: dict[Place, set[Place]] = {}
    for place, origin in origins.items():
        heirs.setdefault(origin, set()).add(place)
    wrong: dict[tuple[Place, str, str], set[Place]] = {}
    for fault in faults:
        if (inherited := _inherited(fault.place, origins)) is not None:
            wrong.setdefault(_kind(fault, inherited, origins), set()).add(inherited)
    moved = []
    for fault in faults:
        inherited = _inherited(fault.place, origins)
        if inherited is not None and wrong[_kind(fault, inherited, origins)] >= heirs[origins[inherited]]:
            place = (*origins[inherited], *fault.place[len(inherited) :])
            fault = replace(fault, place=place)
        moved.append(fault)
    return moved


def _inherited(place: Place, origins: Mapping[Place, Place]) -> Place | None:
    """The nearest place at or above a fault that a layer wrote."""
    return next((place[:end] for end in range(len(place), 2, -1) if place[:end] in origins), None)


def _kind(fault: Fault, inherited: Place, origins: Mapping[Place, Place]) -> tuple[Place, str, str]:
    return ((*origins[inherited], *fault.place[len(inherited) :]), str(fault.given), fault.expected)
