"""The changes of a branch on top of the recipe in force elsewhere: a three-way merge, key by key.

``base`` is the recipe that the branch started from, ``theirs`` its own, ``ours`` the one in force where
the changes go. What the branch did not change stays as it is; what both changed, and not to the same
value, is refused. The shares of a stage are one value, with what its loss counts: half of them would be no
mixture. Seeds, names and places are no part of what is taken over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recipe.config import Recipe, recipe_from_plain, recipe_to_plain
from recipe.config.stage import OBJECTIVE, SHARES
from recipe.errors import Problem, RecipeError
from recipe.run.comparing.arms import without_seeds

_SHARES = (*SHARES, "quota_ramp", OBJECTIVE)
_LEFT_OUT = ("name", "pools_root", "sink", "seed")
_NOTHING = object()

Place = tuple[str, ...]


def merged_recipe(base: Recipe, theirs: Recipe, ours: Recipe, paths: Mapping[str, str]) -> Recipe:
    """``ours`` with what ``theirs`` changed against ``base``.

    Args:
        base: the recipe that the branch started from; all three are settled.
        theirs: the branch's.
        ours: the one in force where the changes go.
        paths: where the pools of the branch are; those that it added are looked for there.

    Raises:
        RecipeError: both changed a key, or the merged recipe is none.
    """
    found: list[Problem] = []
    plain = [_bundled(without_seeds(recipe)) for recipe in (base, theirs, ours)]
    for name, pool in plain[1]["pools"].items():
        if name not in plain[0]["pools"] and "of" not in pool:
            pool["path"] = paths[name]
    merged = _merged(plain[0], plain[1], plain[2], (), found)
    if found:
        raise RecipeError("changes that both made since the branch", found)
    data = _unbundled(merged)
    mine = recipe_to_plain(ours)
    data["seed"] = mine["seed"]
    if "trainer" in data and "trainer" in mine:
        data["trainer"] = _with_seeds(data["trainer"], mine["trainer"])
    return recipe_from_plain(data, source=f"{ours.name} with the changes of {theirs.name}")


def left_out(base: Recipe, theirs: Recipe) -> list[str]:
    """What a branch changed that is not taken over, apart from names and places: ``key: old → new``."""
    before, after = recipe_to_plain(base), recipe_to_plain(theirs)
    lines = [f"seed: {before['seed']} → {after['seed']}"] if before["seed"] != after["seed"] else []
    seeds = [dict(_flat(recipe.get("trainer") or {}, "trainer")) for recipe in (before, after)]
    kept = [dict(_flat(_plain_trainer(recipe), "trainer")) for recipe in (base, theirs)]
    for key, value in seeds[1].items():
        was = seeds[0].get(key, _NOTHING)
        if was not in (value, _NOTHING) and kept[0].get(key) == kept[1].get(key):
            lines.append(f"{key}: {was} → {value}")
    return lines


def _plain_trainer(recipe: Recipe) -> dict[str, Any]:
    trainer: dict[str, Any] = recipe_to_plain(without_seeds(recipe)).get("trainer") or {}
    return trainer


def _flat(value: Mapping[str, Any], above: str) -> Iterator[tuple[str, Any]]:
    for key, inner in value.items():
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{above}.{key}")
        else:
            yield f"{above}.{key}", inner


def _with_seeds(merged: Mapping[str, Any], mine: Mapping[str, Any]) -> dict[str, Any]:
    """The trainer's settings with the seeds that were in force."""
    return {
        key: _with_seeds(value, mine[key])
        if isinstance(value, Mapping) and isinstance(mine.get(key), Mapping)
        else mine[key]
        if key in mine and (key == "seed" or key.endswith("_seed"))
        else value
        for key, value in merged.items()
    }


def _bundled(recipe: Recipe) -> dict[str, Any]:
    """A recipe in plain values, the shares of each stage as one of them."""
    data = recipe_to_plain(recipe)
    for stage in data["stages"].values():
        stage["shares"] = _Shares({form: stage.pop(form) for form in _SHARES if form in stage})
    return data


def _unbundled(data: dict[str, Any]) -> dict[str, Any]:
    for stage in data["stages"].values():
        stage |= stage.pop("shares").forms
    return data


class _Shares:
    """The shares of a stage, compared as a whole."""

    def __init__(self, forms: dict[str, Any]) -> None:
        self.forms = forms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Shares) and self.forms == other.forms

    def __hash__(self) -> int:
        raise TypeError("shares are compared, not looked up")

    def __str__(self) -> str:
        return str(self.forms)


def _merged(
    base: Mapping[str, Any],
    theirs: Mapping[str, Any],
    ours: Mapping[str, Any],
    place: Place,
    found: list[Problem],
) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for key in dict.fromkeys([*ours, *theirs]):
        value = _merged_value(
            [side.get(key, _NOTHING) for side in (base, theirs, ours)], (*place, key), found
        )
        if value is not _NOTHING:
            merged[key] = value
    return merged


def _merged_value(sides: list[Any], place: Place, found: list[Problem]) -> Any:
    base, theirs, ours = sides
    if theirs in (base, ours) or _stays(place, ours):
        return ours
    if ours == base:
        return theirs
    if all(isinstance(side, Mapping) for side in (theirs, ours)):
        return _merged(base if isinstance(base, Mapping) else {}, theirs, ours, place, found)
    fix = "amend the run by hand (recipe amend), or adopt the branch as the trunk (--as trunk)"
    given = f"{_text(theirs)} in the branch, {_text(ours)} here"
    found.append(Problem(".".join(place), given, f"{_text(base)} on one of the sides, as before", fix))
    return ours


def _stays(place: Place, ours: Any) -> bool:
    """Whether a key is no part of what is taken over."""
    return place[0] in _LEFT_OUT or (
        len(place) == 3 and place[0] == "pools" and place[2] in ("path", "stock") and ours is not _NOTHING
    )


def _text(value: Any) -> str:
    return "nothing" if value is _NOTHING else str(value)
