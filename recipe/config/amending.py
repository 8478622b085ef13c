"""Amendments: overrides of the recipe in force, in which shares change by name and the others stay.

The recipe in force is settled: every share in it is a number. An override of a stage's shares changes what it
names, exactly, and nothing is renormalised:

- ``quotas`` are parts of the whole, in whatever form the stage states its shares: percent text, and with the
  others exactly 100 %. A group is scaled pro rata; the difference may be taken from one pool (``from_pool``)
  or left to one (``rest``). Shares without a finite percent are stored as ``weights``.
- ``weights`` change single weights of a stage that has weights, where only the proportion of all counts; on a
  stage that has none they replace its shares whole. With ``from_pool`` their sum stays.
- ``quotas_tokens`` likewise; their sum is the stage's new length, unless a length is given too.

What the loss counts (``objective``) changes as ``quotas`` do; stated for a stage that had none it names every
pool, and null takes it away.

A new pool stands after the others, and has no share in a stage that does not name it: 0 % is written in, also
in finished stages. A pool set adds the pools that the recipe does not have. Pools stay, with 0 % if need
be, and so do stages that are finished or in progress.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from pydantic_core import PydanticCustomError

from recipe.config.amending_shares import amend_shares, name_new_pools
from recipe.config.amendment import Amendment, refusal
from recipe.config.building import build_recipe, recipe_to_plain
from recipe.config.change import Change
from recipe.config.overrides import apply_change, read_overrides, refused
from recipe.config.pool_sets import STAR, expand_pool_sets
from recipe.config.problems import Fault
from recipe.config.recipe import Recipe
from recipe.config.stage import LENGTHS, OBJECTIVE, SHARES
from recipe.config.stage_shares import faults_in, write_shares
from recipe.config.vocabulary import VOCABULARY


def amended(
    recipe: Recipe, overrides: Sequence[str], *, stage: str | None = None, from_pool: str | None = None
) -> Recipe:
    """The recipe in force with overrides applied as an amendment.

    A stage that was written ``like`` another does not follow it: each is amended by its own name. What a new
    stage or group leaves to the pools is still open (`settle`).

    Args:
        recipe: the recipe in force, settled.
        overrides: as for `load_recipe`, without choices of a config group and interpolations.
        stage: the stage in progress; those before it are finished. None: nothing is behind.
        from_pool: the pool that gives, or gets, the difference that changed shares make.

    Raises:
        RecipeError: with every problem.
        ValueError: no such stage.
    """
    names = list(recipe.stages)
    if stage is not None and stage not in names:
        raise ValueError(f"no stage {stage!r} in {names}")
    finished = names[: names.index(stage)] if stage is not None else []
    amendment = Amendment(recipe, recipe_to_plain(recipe), finished, stage)
    changes, found = read_overrides(overrides)
    for change in changes:
        for one in _of_set(change, recipe, found):
            found += _take(amendment, one)
    is_about_shares = any(form in text for text in overrides for form in (*SHARES, OBJECTIVE))
    found += amend_shares(amendment, from_pool, is_about_shares=is_about_shares)
    name_new_pools(amendment)
    return build_recipe(amendment.data, _title(recipe), also=found)


def with_shares(recipe: Recipe, stage: str, shares: Mapping[str, Fraction]) -> Recipe:
    """The recipe with exact shares for every pool of a stage, each by its own name, and without a ramp.

    Raises:
        ValueError: the shares are not those of all pools, or do not sum to one.
        RecipeError: they cannot be written down.
    """
    if shares.keys() != recipe.pools.keys() or sum(shares.values()) != 1 or min(shares.values()) < 0:
        raise ValueError(f"not shares of {list(recipe.pools)} that sum to one: {dict(shares)}")
    data = recipe_to_plain(recipe)
    data["stages"][stage].pop("quota_ramp", None)
    found = list[Fault]()
    try:
        write_shares(data["stages"][stage], "quotas", {name: shares[name] for name in recipe.pools})
    except PydanticCustomError as error:
        found = [fault.below(("stages", stage, "quotas")) for fault in faults_in(error)]
    return build_recipe(data, _title(recipe), also=found)


def _title(recipe: Recipe) -> str:
    return f"amendment of {recipe.name}"


def _of_set(change: Change, recipe: Recipe, found: list[Fault]) -> Iterator[Change]:
    """A new pool set as the pools that the recipe does not have yet; any other change as it is."""
    place = change.place
    if place[0] != "pools" or len(place) != 2 or STAR not in place[1] or change.kind not in ("add", "force"):
        yield change
        return
    data = {"pools": {place[1]: change.value}, "pools_root": recipe.pools_root}
    expanded, faults = expand_pool_sets(data)
    found += faults
    for name, pool in expanded["pools"].items():
        if name not in recipe.pools:
            yield Change(change.text, change.kind, f"pools.{name}", pool)


def _take(amendment: Amendment, change: Change) -> list[Fault]:
    """Apply a change, or tell why not; what it asks of shares in force is noted for later."""
    fault = refusal(amendment, change) or refused(amendment.data, change, VOCABULARY)
    if fault is not None:
        return [fault]
    if parts := list(_parts(change, amendment)):
        return [fault for part in parts for fault in _take(amendment, part)]
    place = change.place
    if place[0] == "stages" and len(place) > 2 and amendment.is_in_force(place[1]):
        if place[2] in (*SHARES, OBJECTIVE) and len(place) > 3:
            forms = amendment.asked.setdefault(place[1], {})
            forms.setdefault(place[2], {})[place[3]] = _nested(place[4:], change.value)
            return []
        amendment.resized |= {place[1]} if place[2] in LENGTHS else set()
    if change.kind == "delete" and place[0] == "stages" and len(place) == 2:
        amendment.gone.add(place[1])
    apply_change(amendment.data, change)
    return []


def _parts(change: Change, amendment: Amendment) -> Iterator[Change]:
    """A change of stages in force by a mapping, key by key, and of shares, name by name; else nothing."""
    place, value = change.place, change.value
    if place[0] != "stages" or not isinstance(value, Mapping):
        return
    in_stage = len(place) > 1 and amendment.is_in_force(place[1])
    is_of_shares = len(place) == 3 and place[2] in (*SHARES, OBJECTIVE)
    if len(place) == 1 or (in_stage and (len(place) == 2 or is_of_shares)):
        for key, below in value.items():
            yield Change(change.text, "force", f"{change.key}.{key}", below)


def _nested(keys: Sequence[str], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value
