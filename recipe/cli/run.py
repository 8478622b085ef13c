"""``recipe run``: stream a recipe into files, with ledger and manifests; go on where it stopped."""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

from recipe.cli.found import prepare_missing
from recipe.cli.options import add_allow_target, add_json, add_recipe_words, run_alone, split_words
from recipe.cli.output import confirm, print_json, progress, say
from recipe.cli.run_account import Job, account, say_warnings, say_where
from recipe.cli.run_training import train_job
from recipe.config import expand_sweep, load_recipe, sweep_labels
from recipe.errors import RecipeError
from recipe.integrations.holding import Holding, inspect
from recipe.integrations.job import expected_bytes, only_writer, repair, sink_of, write_run
from recipe.integrations.parquet import steps_of
from recipe.report.figures import amount, byte_size
from recipe.run.files import SEQUENCES
from recipe.run.finding import find_place
from recipe.run.folder import RunFolder, check_name, read_version
from recipe.run.run import Run
from recipe.run.start import resume_or_start

ASK_ABOVE_BYTES = 10 << 30
_GAPS_TOLD = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the recipe, the run's name and what is asked first."""
    add_recipe_words(
        parser,
        also="; or the folder of a run, such as runs/demo, alone: it goes on as it is, amended or not",
    )
    parser.add_argument("--name", help="the run's name (default: the recipe's); its folder is RUNS_DIR/NAME")
    parser.add_argument(
        "--runs-dir", type=Path, default=Path("runs"), metavar="RUNS_DIR", help="default: runs"
    )
    parser.add_argument(
        "-m",
        "--multirun",
        action="store_true",
        help="a run for every value: seed=1,2 starts two, each in its folder",
    )
    parser.add_argument(
        "--accept-data-change",
        action="store_true",
        help="go on with pools that are not those of the run: each is read from its beginning, on record",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare every byte of the files that are there (default: all sizes, the newest 8 GiB)",
    )
    add_allow_target(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask before writing more than 10 GiB")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Start or go on with the run, or with every run of a sweep, one after another."""
    answers = []
    for job in _jobs(args):
        answers.append(_carry_out(job, args))
    if args.json:
        print_json({"runs": answers} if args.multirun else answers[0])
    return 0


def _jobs(args: argparse.Namespace) -> list[Job]:
    """Every run that is asked for; all recipes are loaded before the first run starts."""
    source, overrides = split_words(args.words)
    if RunFolder(Path(source)).is_run:
        return [_going_on(RunFolder(Path(source)), overrides, args)]
    sweep = expand_sweep(overrides) if args.multirun else [overrides]
    jobs = []
    for words, label in zip(sweep, sweep_labels(sweep), strict=True):
        recipe = load_recipe(source, words, config_dir=args.config_dir)
        name = recipe.name if args.name is None else args.name
        check_name(name, "name" if args.name is None else "--name")
        folder = args.runs_dir / "-".join(filter(None, (name, label)))
        check_name(folder.name, "--name" if label == "" else "--name, with what the sweep adds")
        jobs.append(Job(source=source, overrides=tuple(words), recipe=recipe, folder=folder))
    folders = [job.folder for job in jobs]
    assert len(set(folders)) == len(folders), f"two runs of a sweep in one folder: {folders}"
    return [replace(job, beside=tuple(folder.name for folder in folders)) for job in jobs]


def _going_on(folder: RunFolder, overrides: list[str], args: argparse.Namespace) -> Job:
    """A run that is there already, given by its folder: a branch, or one that was amended."""
    also = [*(["-m"] if args.multirun else []), *([] if args.name is None else ["--name", args.name])]
    fix = (
        "it goes on as its record says: change it from a checkpoint on with `recipe amend`, or go another "
        "way with `recipe branch`"
    )
    run_alone(str(folder.path), [*overrides, *also], args.config_dir, fix)
    place = find_place(folder)
    recipe = read_version(folder, place.state.version, place.version_hash).declared
    return Job(source=str(folder.path), overrides=(), recipe=recipe, folder=folder.path)


def _carry_out(job: Job, args: argparse.Namespace) -> dict[str, Any]:
    prepare_missing(job.recipe, job.source, quiet=args.json)
    if sink_of(job.recipe).format == "train":
        return train_job(job, args)
    return _write_job(job, args)


def _write_job(job: Job, args: argparse.Namespace) -> dict[str, Any]:
    """The stream into files."""
    accept = args.accept_data_change

    with resume_or_start(
        job.recipe,
        job.folder,
        accept_data_change=accept,
        allow_targets=args.allow_target,
        on_plan=lambda plan: say_warnings(plan, quiet=args.json),
    ) as run:
        say_where(run, quiet=args.json)
        holding = inspect(run.path, run.step, hash_all=args.check)
        if run.complete and holding.is_whole:
            _say_held(run, holding, quiet=args.json)
            return account(run, job, 0, as_json=args.json)
        _check_room(run, holding, yes=args.yes)
    # Opened again once the files are held: until then another process may have gone on with the run.
    with (
        only_writer(job.folder),
        resume_or_start(job.recipe, job.folder, accept_data_change=accept) as run,
    ):
        first = run.step
        holding = inspect(run.path, run.step, hash_all=args.check)
        _say_held(run, holding, quiet=args.json)
        for gap in repair(run, holding):
            say(f"{run.path}: {gap}, and none can be written: its data was replaced since", quiet=args.json)
        _write(run, quiet=args.json)
        return account(run, job, first, as_json=args.json)


def _say_held(run: Run, holding: Holding, *, quiet: bool) -> None:
    """What is wrong with the files of the steps before, and how far they were looked at."""
    folder = run.path / SEQUENCES
    told = [f"{folder}: {gap}" for gap in holding.gaps[:_GAPS_TOLD]]
    if len(holding.gaps) > _GAPS_TOLD:
        told.append(f"{folder}: {len(holding.gaps) - _GAPS_TOLD:,} more like these")
    for line in told:
        say(line, quiet=quiet)
    if told:
        say(f"{folder}: these steps are written again", quiet=quiet)
    for path in holding.strangers[:_GAPS_TOLD]:
        if steps_of(path)[0] < run.step:
            say(f"{path}: no file of this run, removed", quiet=quiet)
    if holding.not_hashed:
        what = f"of {holding.not_hashed:,} files only the size was compared; --check compares every byte"
        say(f"{folder}: {what}", quiet=quiet)


def _check_room(run: Run, holding: Holding, *, yes: bool) -> None:
    """Refuse what cannot fit on the disk; ask before what is large."""
    need, free = expected_bytes(run, holding.gaps), shutil.disk_usage(run.path).free
    if need > free:
        raise RecipeError.single(
            str(run.path),
            "--runs-dir",
            given=f"{byte_size(free)} free",
            expected=f"about {byte_size(need)} for the steps that are left",
            fix="choose a folder on a larger disk, or feed the trainer from the stream (recipe.start_run)",
        )
    question = f"{run.path}: about {byte_size(need)} will be written. Go on?"
    if need > ASK_ABOVE_BYTES and not confirm(question, yes=yes):
        raise RecipeError.single(
            str(run.path),
            "--yes",
            given=f"about {byte_size(need)} to write",
            expected="a yes",
            fix="add --yes, or feed the trainer from the stream instead of files (recipe.start_run)",
        )


def _write(run: Run, *, quiet: bool) -> None:
    curriculum, stages = run.stream().curriculum, list(run.recipe.stages)
    with progress(quiet=quiet) as bars:
        task = bars.add_task("streaming", total=run.num_steps, completed=run.step, note="")

        def watch(step: int) -> None:
            stage = stages[curriculum.stretch(step - 1).stage]
            bars.update(
                task, completed=step, note=f"stage {stage}, {amount(curriculum.positions_at(step))} positions"
            )

        try:
            write_run(run, watch)
        except KeyboardInterrupt:
            say(f"{run.path}: stopped; the same command goes on from step {run.step:,}")
            raise
