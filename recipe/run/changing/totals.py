"""Quotas as totals: the shares from now on with which a whole stage, or run, reaches them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from recipe.config import Recipe, with_shares
from recipe.errors import Problem, RecipeError
from recipe.maths.shares import to_grain
from recipe.maths.targets import OutOfReach, OutOfReachError, forward_shares
from recipe.mixing.curriculum import Curriculum
from recipe.mixing.turning import carried_tokens
from recipe.run.folder import RunFolder
from recipe.run.place import Place
from recipe.run.words import manifest_at


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """What stated quotas shall be the totals of."""

    of: Literal["stage", "run"] = "stage"
    """The stage in progress; or the whole run: then its later stages get the solved shares too."""
    max_rise: Fraction | None = Fraction(2)
    """How many times its share in force a pool's share may become; None: any."""


def solved(folder: RunFolder, place: Place, new: Recipe, goal: Goal) -> Recipe:
    """A recipe whose shares from a place on bring the totals to the quotas that ``new`` states.

    What a pool is ahead or behind of its shares so far is carried on and evens out, so what it was owed
    counts, not what it was served. What is still to be served is exact under ``count: positions``;
    otherwise it is taken to hold as many counted tokens a position as the stage (or run) did so far.

    Raises:
        RecipeError: a pool has had more than its total already, or would have to rise too far.
    """
    at, old = place.state.snapshot, place.state.recipe
    stage = list(old.stages)[at.stage]
    layout = Curriculum.from_recipe(new).stages[at.stage]
    manifest = manifest_at(folder, at.step) or {}
    in_stage = manifest.get("stages", {}).get(stage, {})
    if goal.of == "stage":
        spent = [int(in_stage.get(name, {}).get("spent", 0)) for name in new.pools]
        left, consumed = layout.length - at.stage_positions, at.stage_positions
        ahead = [stage]
    else:
        given = dict(zip(old.pools, at.pools, strict=True))
        spent = [given[name].spent if name in given else 0 for name in new.pools]
        left, consumed = Curriculum.from_recipe(new).positions - at.positions, at.positions
        ahead = list(new.stages)[at.stage :]
    if left <= 0:
        raise RecipeError.single(
            f"{folder.path}: nothing is left of stage {stage}",
            f"stages.{stage}",
            given=f"{consumed:,} positions consumed",
            expected="positions still to be served, whose shares can be solved",
            fix="give an earlier checkpoint (--at STEP), or amend a later stage, or without --total",
        )
    density = Fraction(sum(spent), consumed) if consumed and sum(spent) else Fraction(1)
    target, current = new.shares(stage), old.shares(stage)
    if not any(share and not target[name] for name, share in current.items()):
        ahead_by = dict(zip(old.pools, carried_tokens(at, old), strict=True))
        spent = [had - ahead_by.get(name, 0) for name, had in zip(new.pools, spent, strict=True)]
    try:
        shares = forward_shares(
            list(target.values()),
            spent,
            left * density,
            [current.get(name, Fraction(0)) for name in new.pools],
            goal.max_rise,
        )
    except OutOfReachError as error:
        names = list(new.pools)
        problems = [_told(names[beyond.index], beyond, stage, goal) for beyond in error.pools]
        raise RecipeError(f"{folder.path}: totals that cannot be reached", problems) from error
    solved_shares = to_grain(dict(zip(new.pools, shares, strict=True)))
    for name in ahead:
        new = with_shares(new, name, solved_shares)
    return new


def _told(name: str, beyond: OutOfReach, stage: str, goal: Goal) -> Problem:
    """Why a pool cannot end with its total, in tokens and percent."""
    rises = beyond.share > beyond.most
    given = (
        f"{beyond.spent:,} spent of a total of {round(beyond.target):,}: {_percent(beyond.share)} from now on"
    )
    expected = f"a share in 0 %..{_percent(beyond.most)}"
    if rises and goal.max_rise is not None:
        expected += f" ({goal.max_rise} times the share in force at most)"
    fix = f"ask for {_percent(beyond.nearest)}, the nearest total that can be reached"
    if rises and goal.max_rise is not None and beyond.share <= 1:
        fix += ", or let shares rise further (--max-rise)"
    return Problem(f"stages.{stage}: pool {name}", given, expected, fix)


def _percent(share: Fraction) -> str:
    return f"{float(100 * share):.6g} %"
