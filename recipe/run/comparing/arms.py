"""Arms of a comparison: runs that differ only in their seeds are repetitions of one thing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recipe.config import Recipe, fingerprint
from recipe.run.canonical import hash_of
from recipe.run.comparing.history import History
from recipe.run.folder import read_version

Seeds = tuple[tuple[str, Any], ...]
"""Dotted keys of a recipe that are seeds, and their values."""


@dataclass(frozen=True, slots=True)
class Arm:
    """Runs that differ in nothing but seeds, by their place in the comparison."""

    name: str
    runs: tuple[int, ...]
    seeds: tuple[Seeds, ...]
    """Of each run; two that are equal repeat nothing by chance."""


def arms_of(identities: Sequence[tuple[str, str, Seeds]]) -> list[Arm]:
    """Group runs, in order of their first member.

    Args:
        identities: name, identity without seeds, and seeds of every run.

    >>> first, second = arms_of([("a-1", "A", ()), ("b-1", "B", ()), ("a-2", "A", ())])
    >>> first.name, first.runs, second.name, second.runs
    ('a', (0, 2), 'b-1', (1,))
    """
    places: dict[str, list[int]] = {}
    for place, (_, identity, _) in enumerate(identities):
        places.setdefault(identity, []).append(place)
    names = [_common_name([identities[place][0] for place in group]) for group in places.values()]
    return [
        Arm(
            name if names.count(name) == 1 else identities[group[0]][0],
            tuple(group),
            tuple(identities[place][2] for place in group),
        )
        for name, group in zip(names, places.values(), strict=True)
    ]


def seeds_of(recipe: Recipe) -> Seeds:
    """The seeds of a recipe: its own, and those that its ``trainer`` block names."""
    return (("seed", recipe.seed), *_trainer_seeds(_trainer(recipe)))


def identity_of(history: History, recipe: Recipe, step: int) -> str:
    """What a run is up to a step, but for its seeds: where it began, its recipes and its turns."""
    parent = history.parent
    origin = parent and [parent.get(key) for key in ("id", "hash", "data", "fresh", "retokenised")]
    turns = [
        [turn.kind, turn.step, turn.mark, turn.version and _version(history, turn.version)]
        for turn in history.turns
        if turn.step <= step
    ]
    pools = history.created.data["pools"]
    marks = {name: holding["fingerprint"] for name, holding in pools.items()}
    return hash_of([origin, history.base, _seedless(recipe), turns, marks])


def _version(history: History, version: int) -> str:
    return _seedless(read_version(history.folder, version).recipe)


def without_seeds(recipe: Recipe) -> Recipe:
    """The recipe with 0 for every seed."""
    trainer = _trainer(recipe)
    changes = {"trainer": _without_seeds(trainer)} if trainer else {}
    return recipe.model_copy(update={"seed": 0, **changes})


def _seedless(recipe: Recipe) -> str:
    return fingerprint(without_seeds(recipe))


def _trainer(recipe: Recipe) -> Mapping[str, Any]:
    return getattr(recipe, "trainer", None) or {}


def _trainer_seeds(value: Mapping[str, Any], above: str = "trainer") -> Iterator[tuple[str, Any]]:
    for key in sorted(value):
        if isinstance(value[key], Mapping):
            yield from _trainer_seeds(value[key], f"{above}.{key}")
        elif _is_seed(key):
            yield f"{above}.{key}", value[key]


def _without_seeds(value: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _without_seeds(inner) if isinstance(inner, Mapping) else 0 if _is_seed(key) else inner
        for key, inner in value.items()
    }


def _is_seed(key: str) -> bool:
    return key == "seed" or key.endswith("_seed")


def _common_name(names: Sequence[str]) -> str:
    """What the names of an arm's runs begin with, without what counts the seeds."""
    if len(names) == 1:
        return names[0]
    first, last = min(names), max(names)
    size = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return re.sub(r"[-_.=,]+(s|seed)?[-_.=]*[0-9]*$", "", first[:size]) or names[0]
