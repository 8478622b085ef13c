"""How a place to change a run at is named: ``RUN``, ``RUN@MANIFEST``, ``RUN@step:N``, or a step beside it."""

from __future__ import annotations

from pathlib import Path

from recipe.errors import RecipeError
from recipe.run.branching.origin import split_place
from recipe.run.folder import RunFolder
from recipe.run.ledger import read_tail
from recipe.run.sayings import counted_checkpoint


def place_named(text: str, step: int | None = None, option: str = "--at") -> tuple[Path, int | None]:
    """The run's folder, and the step that is meant; None is the last checkpoint.

    Args:
        text: the run, with a manifest's number or a step where one is meant.
        step: what an option beside it says.
        option: its name, for messages.

    Raises:
        RecipeError: no such manifest; both name a place, and not the same.
    """
    path, manifest, named = split_place(text)
    if manifest is not None:
        named = _step_of(path, manifest)
    if named is not None and step is not None and named != step:
        raise RecipeError.single(
            f"{path}: two places",
            f"RUN, {option}",
            given=f"{text}{'' if manifest is None else f' (step {named:,})'} and {option} at step {step:,}",
            expected="one checkpoint",
            fix=f"keep one of them: {path}@step:{named}, or {option} alone",
        )
    return path, named if named is not None else step


def check_step(name: str, step: int | None) -> None:
    """Raise ValueError for a step below zero."""
    if step is not None and step < 0:
        raise ValueError(f"{name} is {step}; steps are counted from 0 on")


def _step_of(path: Path, manifest: int) -> int:
    """The step of a manifest that counts, and after which no other one is at the same step."""
    folder = RunFolder(path)
    folder.check()
    tail = read_tail(folder.ledger)
    step = counted_checkpoint(folder, tail, manifest).end_step
    last = int(counted_checkpoint(folder, tail, step=step).data["manifest"])
    if last != manifest:
        raise RecipeError.single(
            f"{path}: not the last manifest of its step",
            "RUN@MANIFEST",
            given=f"{manifest}, after which manifest {last} is at step {step:,} too",
            expected=f"{path}@{last}, which has what was changed there",
            fix=f"change the run at {path}@{last}; or go another way from {manifest} with `recipe branch`",
        )
    return step
