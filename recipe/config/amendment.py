"""An amendment in the making, and what it may not do: what is behind, and what a run keeps, stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from recipe.config.change import Change
from recipe.config.problems import Fault
from recipe.config.recipe import Recipe
from recipe.config.stage import OBJECTIVE, SHARES

_BRANCH = "branch instead: what is behind stays as it was"


@dataclass(slots=True)
class Amendment:
    """Plain values being amended."""

    recipe: Recipe
    data: dict[str, Any]
    finished: Sequence[str]
    """Stages that are behind."""
    begun: str | None
    """The stage in progress."""
    asked: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """What is asked of the shares of stages in force: stage, form, name."""
    resized: set[str] = field(default_factory=set)
    """Stages that are given a length."""
    gone: set[str] = field(default_factory=set)
    """Stages that were removed; they may be written anew."""

    def is_in_force(self, stage: str) -> bool:
        """Whether a stage is one of the recipe in force, to be amended key by key."""
        return stage in self.recipe.stages and stage not in self.gone


def refusal(amendment: Amendment, change: Change) -> Fault | None:
    """Why an amendment may not do what another override may; None where it may."""
    place = change.place
    if place[0] == "every_stage":
        fix = "name the stage: stages.NAME.KEY=…; the stages in force have values of their own"
        return Fault(place, change.text, "a key of one stage", fix)
    if "${" in change.text:
        fix = "write the value itself: the recipe in force has no interpolations"
        return Fault(place, change.text, "a value", fix)
    if change.kind == "delete":
        return _refused_removal(amendment, change)
    if place[0] == "stages" and len(place) > 1:
        if place[1] in amendment.finished:
            return Fault(place, change.text, f"a stage that is not finished: {_ahead(amendment)}", _BRANCH)
        if amendment.is_in_force(place[1]) and place[2:] == ("like",):
            expected = "a key of the stage: it has a value of its own for each"
            fix = f"name what changes, or add a new stage: +stages.NAME={{like: {change.value}}}"
            return Fault(place, change.text, expected, fix)
    return None


def _refused_removal(amendment: Amendment, change: Change) -> Fault | None:
    place, recipe = change.place, amendment.recipe
    begun = amendment.begun or next(iter(recipe.stages))
    if place[0] == "pools" and (len(place) == 1 or (len(place) == 2 and place[1] in recipe.pools)):
        pool = place[1] if len(place) == 2 else "POOL"
        fix = (
            f"write 0%: stages.{begun}.quotas.{pool}=0%, and so in the stages after it; for another name: "
            f"recipe branch RUN NAME --rename {pool}=NEW"
        )
        return Fault(place, change.text, "every pool of the run: what it served stays on record", fix)
    if place[0] != "stages" or (len(place) > 1 and not amendment.is_in_force(place[1])):
        return None
    if len(place) == 1 or place[1] in amendment.finished or (len(place) == 2 and place[1] == amendment.begun):
        names = [name for name in recipe.stages if name not in (*amendment.finished, amendment.begun)]
        return Fault(place, change.text, f"a stage that has not begun: {', '.join(names) or 'none'}", _BRANCH)
    if len(place) > 2 and (place[2] in SHARES or (place[2] == OBJECTIVE and len(place) > 3)):
        form = OBJECTIVE if place[2] == OBJECTIVE else "quotas"
        fix = f"write 0%: stages.{place[1]}.{form}.{'.'.join(place[3:]) or 'POOL'}=0%"
        return Fault(place, change.text, "a share for every pool", fix)
    return None


def _ahead(amendment: Amendment) -> str:
    return ", ".join(name for name in amendment.recipe.stages if name not in amendment.finished)
