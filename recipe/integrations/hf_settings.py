"""Settings of Transformers' Trainer that have to be the recipe's."""

from __future__ import annotations

from math import prod
from typing import Any

from recipe.errors import Problem, RecipeError
from recipe.run.run import Run


def split_problems(settings: Any) -> list[Problem]:
    """A model that is split over processes: each of them would be given rows of its own."""
    sizes = getattr(settings, "parallelism_config", None)
    split = {name: getattr(sizes, name, 1) for name in ("tp_size", "cp_size", "sp_size")}
    if prod(split.values()) == 1:
        return []
    given = ", ".join(f"{name} {size}" for name, size in split.items() if size > 1)
    fix = "train in data parallel (DDP, FSDP), or with StreamDataset(**ranks_from(mesh)._asdict())"
    return [Problem("parallelism_config", given, "a model that is whole in a process", fix)]


def check_settings(settings: Any, run: Run, step: int) -> None:
    """Refuse settings under which a step, from this one on, would not be the recipe's.

    Raises:
        RecipeError: all of them.
    """
    problems = split_problems(settings)
    if settings.max_steps > 0 and settings.max_steps != run.num_steps:
        fix = "leave it out: the run has its own steps"
        problems.append(Problem("max_steps", settings.max_steps, f"{run.num_steps}, the run's", fix))
    if settings.include_num_input_tokens_seen == "non_padding":
        fix = "take all, which are positions: tokens by kind are on the run's record (recipe status)"
        where = "include_num_input_tokens_seen"
        problems.append(Problem(where, "non_padding", "all or no: attention's mask counts no tokens", fix))
    if settings.label_smoothing_factor and run.recipe.labels == "shifted":
        given, fix = settings.label_smoothing_factor, "set labels: inputs in the recipe, or smooth nothing"
        expected = "0 with labels: shifted, which the Trainer's smoother would shift once more"
        problems.append(Problem("label_smoothing_factor", given, expected, fix))
    each = settings.per_device_train_batch_size * settings.world_size
    given = f"{each} over all ranks x {settings.gradient_accumulation_steps}"
    for batch in sorted({s.batch for s in run.stream().curriculum.stretches if s.stop_step > step}):
        if each * settings.gradient_accumulation_steps != batch:
            able = (
                f"gradient_accumulation_steps={batch // each}"
                if batch % each == 0
                else "sizes whose product it is"
            )
            where = "per_device_train_batch_size x gradient_accumulation_steps"
            problems.append(Problem(where, given, f"{batch} sequences, the recipe's batch", able))
    if problems:
        raise RecipeError(f"{run.path}: not the recipe's steps", problems)
