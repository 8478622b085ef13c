"""``recipe run``: stream a recipe into files, with ledger and manifests; go on where it stopped."""

from __future__ import annotations

import argparse
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.cli.found import prepare_missing
from recipe.cli.options import add_json, add_recipe_words, split_words
from recipe.cli.output import confirm, print_json, print_tables, progress, say
from recipe.config import Recipe, expand_sweep, load_recipe, sweep_labels
from recipe.errors import RecipeError
from recipe.integrations.job import SEQUENCES, expected_bytes, missing_steps, only_writer, write_run
from recipe.mixing.plan import make_plan
from recipe.report.figures import amount
from recipe.report.spent import spent_tables, spent_to_plain
from recipe.run.ledger import read_tail, surviving
from recipe.run.run import Run
from recipe.run.start import resume_or_start

ASK_ABOVE_BYTES = 10 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One run to be: its recipe, its folder, and the words that ask for it."""

    source: str
    recipe: Recipe
    folder: Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the recipe, the run's name and what is asked first."""
    add_recipe_words(parser)
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
    sweep = expand_sweep(overrides) if args.multirun else [overrides]
    jobs = []
    for words, label in zip(sweep, sweep_labels(sweep), strict=True):
        recipe = load_recipe(source, words, config_dir=args.config_dir)
        name = args.name or recipe.name
        if name in (".", "..") or "/" in name:
            fix = "give a plain name; the folder above it is --runs-dir"
            raise RecipeError.single(
                "recipe run", "--name", given=name, expected="the name of one folder", fix=fix
            )
        jobs.append(
            Job(source=source, recipe=recipe, folder=args.runs_dir / "-".join(filter(None, (name, label))))
        )
    folders = [job.folder for job in jobs]
    assert len(set(folders)) == len(folders), f"two runs of a sweep in one folder: {folders}"
    return jobs


def _carry_out(job: Job, args: argparse.Namespace) -> dict[str, Any]:
    prepare_missing(job.recipe, job.source, quiet=args.json)
    if not job.folder.exists():
        for warning in make_plan(job.recipe, compare_packing=False).warnings:
            say(f"warning: {warning}", quiet=args.json)
    accept = args.accept_data_change
    with resume_or_start(job.recipe, job.folder, accept_data_change=accept) as run:
        _say_where(run, quiet=args.json)
        if run.complete:
            return _account(run, job, 0, as_json=args.json)
        _check_room(run, yes=args.yes)
    # Opened again once the files are held: until then another process may have gone on with the run.
    with (
        only_writer(job.folder),
        resume_or_start(job.recipe, job.folder, accept_data_change=accept) as run,
    ):
        first = run.step
        _write(run, quiet=args.json)
        return _account(run, job, first, as_json=args.json)


def _account(run: Run, job: Job, first: int, *, as_json: bool) -> dict[str, Any]:
    """Say what was spent against what was promised, and give it as plain values."""
    ledger = run.path / "ledger.jsonl"
    rows = [row.data for row in surviving(ledger, read_tail(ledger))]
    stock = {name: int(pool["stock"]) for name, pool in rows[-1]["pools"].items()}
    if not as_json:
        for row in rows:
            if row["kind"] == "warning":
                say(f"warning: pool {row['pool']}, step {row['step']:,}: {row['what']}")
        print_tables(spent_tables(run.recipe, rows, stock))
        print(_closing_words(run, job, first))
    return {
        "run": str(run.path),
        "step": run.step,
        "num_steps": run.num_steps,
        "complete": run.complete,
        "sequences": str(run.path / SEQUENCES),
        "stages": spent_to_plain(run.recipe, rows),
    }


def _say_where(run: Run, *, quiet: bool) -> None:
    if run.ending:
        say(f"{run.path}: ended early at step {run.step:,}: {run.ending}", quiet=quiet)
    elif run.complete:
        say(f"{run.path}: complete, {run.step:,} steps; nothing is left to do", quiet=quiet)
    elif run.step:
        say(f"{run.path}: going on at step {run.step:,} of {run.num_steps:,}", quiet=quiet)
    else:
        say(f"{run.path}: starting, {run.num_steps:,} steps", quiet=quiet)
    for name in run.data_change:
        say(f"{run.path}: pool {name} changed; it is read from its beginning, on record", quiet=quiet)
    for first, stop in missing_steps(run):
        say(f"{run.path / SEQUENCES}: no file holds steps {first:,} to {stop - 1:,}", quiet=quiet)


def _check_room(run: Run, *, yes: bool) -> None:
    """Refuse what cannot fit on the disk; ask before what is large."""
    need, free = expected_bytes(run), shutil.disk_usage(run.path).free
    if need > free:
        raise RecipeError.single(
            str(run.path),
            "--runs-dir",
            given=f"{free / 1e9:,.1f} GB free",
            expected=f"about {need / 1e9:,.1f} GB for the steps that are left",
            fix="choose a folder on a larger disk, or feed the trainer from the stream (recipe.start_run)",
        )
    question = f"{run.path}: about {need / 1e9:,.1f} GB will be written. Go on?"
    if need > ASK_ABOVE_BYTES and not confirm(question, yes=yes):
        raise RecipeError.single(
            str(run.path),
            "--yes",
            given=f"about {need / 1e9:,.1f} GB to write",
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


def _closing_words(run: Run, job: Job, first: int) -> str:
    """What lies where now, and what to try next."""
    folder = shlex.quote(str(run.path))
    seed = job.recipe.seed + 1
    words = shlex.join([job.source, f"seed={seed}", "--name", f"{job.folder.name}-{seed}"])
    again = "" if first == 0 else f" (this time from step {first:,})"
    commands = (
        (f"recipe audit {folder}", "recompute every number above, with code of its own"),
        (f"recipe status {folder}", "where the run stands"),
        (f"recipe plan {shlex.quote(job.source)}", "the same numbers before the first step"),
        (f"recipe run {words}", "another seed, in its own folder"),
        ("recipe new --help", "a recipe for pools of your own"),
    )
    width = max(len(command) for command, _ in commands)
    return "\n".join(
        [
            f"{run.path}: {run.step:,} steps{again}, on record in ledger.jsonl and manifests/",
            *(
                [f"{run.path}: ended before its planned {run.num_steps:,} steps: {run.ending}"]
                * bool(run.ending)
            ),
            f"{run.path / SEQUENCES}: Parquet files, a row a sequence",
            "",
            "next",
            *(f"  {command:<{width}}  {about}" for command, about in commands),
        ]
    )
