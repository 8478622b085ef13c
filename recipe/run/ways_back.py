"""Where a stage that is finished can still be changed: at an earlier checkpoint, or on another way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from recipe.config import Recipe
from recipe.errors import Problem
from recipe.mixing.curriculum import Curriculum, StageLayout
from recipe.mixing.snapshot import Snapshot
from recipe.run.checkpoint_steps import checkpoint_steps, nearest

_CAN_CHANGE = (
    "branch the run",
    "branch instead",
    "start another run to have it otherwise",
    "add a stage after it",
)
"""What a fix says where only what is ahead can change."""


def with_ways_back(
    ledger: Path, recipe: Recipe, at: Snapshot, problems: Sequence[Problem], option: str
) -> list[Problem]:
    """The problems, those about finished stages with the checkpoints from which these can be changed.

    Args:
        ledger: of the run.
        recipe: in force at the place.
        at: the place.
        problems: as they were found.
        option: how a step is named, such as ``--at {step}``.
    """
    curriculum = Curriculum.from_recipe(recipe)
    ended = {stage.name: stage for stage in curriculum.stages if stage.stop_step <= at.step}
    if at.ended:
        ended |= {stage.name: stage for stage in curriculum.stages[at.stage : at.stage + 1]}
    told = []
    for problem in problems:
        stage = ended.get(_stage_of(problem.where))
        is_other_reading = problem.where.endswith(".context") or ": pool " in problem.where
        if stage is not None and not is_other_reading and any(words in problem.fix for words in _CAN_CHANGE):
            is_over = at.ended or at.step == curriculum.num_steps
            fix = _way(stage, at.step, checkpoint_steps(ledger), option, is_over=is_over)
            problem = replace(problem, fix=fix)
        told.append(problem)
    return told


def _stage_of(where: str) -> str:
    """The stage that a place in a recipe is about; empty for any other."""
    parts = where.split(": ", 1)[0].split(".")
    return parts[1] if parts[0] == "stages" and len(parts) > 1 else ""


def _way(stage: StageLayout, step: int, steps: Sequence[int], option: str, *, is_over: bool) -> str:
    why = f"the run is complete at step {step:,}" if is_over else f"stage {stage.name} is finished there"
    end = min(stage.stop_step, step)
    inside = [known for known in steps if stage.first_step <= known < end]
    before = inside or [known for known in steps if known < end]
    after = f"add a stage after it: +stages.NAME={{like: {stage.name}, tokens: …}}"
    if not before:
        return f"{why}, and no checkpoint is before its end: {after}"
    shown = nearest(before, end)
    where = "inside it" if inside else "before it"
    aside = ", branch there" if option.startswith("--") else ""
    return (
        f"{why}: do it at an earlier checkpoint ({option.format(step=shown[-1])}; {where} "
        f"{'are' if len(shown) > 1 else 'is'} {', '.join(map(str, shown))}){aside}, or {after}"
    )
