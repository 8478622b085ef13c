"""``recipe run sink=train``: the stream through the reference trainer."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from typing import Any

from recipe.cli.output import progress, say
from recipe.cli.run_account import Job, account, say_warnings, say_where
from recipe.config.extras import how_to_install
from recipe.errors import RecipeError
from recipe.integrations.job import only_writer
from recipe.run.run import Run
from recipe.run.start import resume_or_start

CHECKPOINTS = "checkpoints"


def train_job(job: Job, args: argparse.Namespace) -> dict[str, Any]:
    """Start training, or go on with it.

    Raises:
        RecipeError: torch is not installed, somebody else trains this run, or as the trainer says.
    """
    if find_spec("torch") is None:
        raise RecipeError.single(
            str(job.folder),
            "sink",
            given="train, and torch is not installed",
            expected="the reference trainer's packages",
            fix=f"{how_to_install('train')}, or write files: sink=parquet",
        )
    from recipe.integrations.training.loop import check_trainer  # torch takes seconds to import

    check_trainer(job.recipe)
    with resume_or_start(
        job.recipe,
        job.folder,
        accept_data_change=args.accept_data_change,
        allow_targets=args.allow_target,
        on_plan=lambda plan: say_warnings(plan, quiet=args.json),
    ) as run:
        say_where(run, quiet=args.json)
    # Opened again once the folder is held: until then another process may have gone on with the run.
    with (
        only_writer(job.folder, CHECKPOINTS),
        resume_or_start(job.recipe, job.folder, accept_data_change=args.accept_data_change) as run,
    ):
        first = run.step
        _train(run, quiet=args.json)
        return account(run, job, first, as_json=args.json)


def _train(run: Run, *, quiet: bool) -> None:
    from recipe.integrations.training.loop import train  # torch takes seconds to import

    stages, curriculum = list(run.recipe.stages), run.stream().curriculum
    with progress(quiet=quiet) as bars:
        task = bars.add_task("training", total=run.num_steps, completed=run.step, note="")

        def watch(step: int, loss: float) -> None:
            stage = stages[curriculum.stretch(step - 1).stage]
            bars.update(task, completed=step, note=f"stage {stage}, loss {loss:.3f}")

        try:
            train(run, watch)
        except KeyboardInterrupt:
            say(f"{run.path}: stopped; the same command goes on from step {run.step:,}")
            raise
