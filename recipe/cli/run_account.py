"""What `recipe run` says of a run: where it starts, what it spent against its promise, what comes next."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.cli.output import print_tables, say
from recipe.cli.status import superseded
from recipe.config import Recipe
from recipe.integrations.job import sink_of
from recipe.mixing.planned import Plan
from recipe.report.spent import spent_tables, spent_to_plain
from recipe.report.starts import policy_line
from recipe.run.files import SEQUENCES
from recipe.run.finding import find_place
from recipe.run.folder import RunFolder
from recipe.run.ledger import read_tail
from recipe.run.run import Run
from recipe.run.sayings import went_on_in
from recipe.run.surviving import surviving


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One run to be: its recipe, its folder, and the words that ask for it."""

    source: str
    overrides: tuple[str, ...]
    recipe: Recipe
    folder: Path
    beside: tuple[str, ...] = ()
    """Names of the folders of the sweep that it is one of."""


def say_warnings(plan: Plan, *, quiet: bool) -> None:
    """What a plan warns of, a line each."""
    for warning in plan.warnings:
        say(f"warning: {warning}", quiet=quiet)


def say_where(run: Run, *, quiet: bool) -> None:
    """Where an opened run goes on, and what is odd about it."""
    if run.ending:
        say(f"{run.path}: ended early at step {run.step:,}: {run.ending}", quiet=quiet)
    elif run.complete:
        say(f"{run.path}: complete, {run.step:,} steps; no step is left to serve", quiet=quiet)
    elif run.step:
        say(f"{run.path}: going on at step {run.step:,} of {run.num_steps:,}", quiet=quiet)
    else:
        say(f"{run.path}: starting, {run.num_steps:,} steps", quiet=quiet)
    if run.recipe.policy is not None and not run.complete:
        say(f"{run.path}: {policy_line(run.recipe.policy.target)}", quiet=quiet)
    if (decision := went_on_in(RunFolder(run.path))) is not None:
        say(f"warning: {superseded(decision)}")
    for name in run.data_change:
        say(f"{run.path}: pool {name} changed; it is read from its beginning, on record", quiet=quiet)


def account(run: Run, job: Job, first: int, *, as_json: bool) -> dict[str, Any]:
    """Say what was spent against what was promised, and give it as plain values."""
    ledger = run.path / "ledger.jsonl"
    rows = [row.data for row in surviving(ledger, read_tail(ledger))]
    stock = {name: held.stock for name, held in find_place(RunFolder(run.path)).state.holdings.items()}
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


def _closing_words(run: Run, job: Job, first: int) -> str:
    """What lies where now, and what to try next."""
    folder = shlex.quote(str(run.path))
    words = shlex.join(_another_seed(job))
    is_stored = RunFolder(Path(job.source)).is_run
    plan = shlex.join([job.source, *job.overrides, "--exact"])
    again = "" if first == 0 else f" (this time from step {first:,})"
    commands = (
        (f"recipe audit {folder}", "recompute every number above, with code of its own"),
        (f"recipe status {folder}", "where the run stands"),
        *([] if is_stored else [(f"recipe plan {plan}", "the same numbers before the first step")]),
        *([] if is_stored else [(f"recipe run {words}", "another seed, in its own folder")]),
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
            _lies_where(run),
            "",
            "next",
            *(f"  {command:<{width}}  {about}" for command, about in commands),
        ]
    )


def _another_seed(job: Job) -> list[str]:
    """Words that start the same recipe with the next seed that has no run yet, named as this run is."""
    own, name, home = job.recipe.seed, job.folder.name, job.folder.parent
    seed = own + 1
    while (other := _name_of_seed(name, own, seed)) in job.beside or (home / other).exists():
        seed += 1
    others = [word for word in job.overrides if not word.startswith("seed=")]
    where = [] if home == Path("runs") else ["--runs-dir", str(home)]
    return [job.source, *others, f"seed={seed}", "--name", other, *where]


def _name_of_seed(name: str, own: int, seed: int) -> str:
    """The name of a run with another seed; one that has its seed in it gets the other in that place.

    >>> [_name_of_seed(name, 2, 3) for name in ("demo", "demo-2", "demo-seed=2", "demo-seed=2,x=1")]
    ['demo-3', 'demo-3', 'demo-seed=3', 'demo-seed=3,x=1']
    """
    if f"seed={own}" in re.split("[-,]", name):
        return re.sub(rf"(?<![^-,])seed={own}(?![^-,])", f"seed={seed}", name, count=1)
    return f"{name.removesuffix(f'-{own}')}-{seed}"


def _lies_where(run: Run) -> str:
    """The files that the run's sink made."""
    if sink_of(run.recipe).format == "train":
        return f"{run.path / 'checkpoints'}: weights, a file a checkpoint"
    return f"{run.path / SEQUENCES}: Parquet files, a row a sequence"
