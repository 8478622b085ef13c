"""``recipe attach``: metrics that come later than their checkpoint."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from recipe.cli.options import add_json
from recipe.cli.output import print_json
from recipe.errors import Problem, RecipeError
from recipe.run.branching.origin import split_place
from recipe.run.comparing.attach import Attached, attach_and_tell
from recipe.run.comparing.measured import is_sealed

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(
    r"[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|nan|inf|infinity)", re.ASCII | re.IGNORECASE
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of ``recipe attach``."""
    parser.add_argument(
        "run",
        metavar="RUN[@MANIFEST]",
        help="the run's folder, and the number of the manifest, or @step:N (default: the last checkpoint)",
    )
    parser.add_argument("--metrics", type=Path, metavar="FILE", help="a JSON file with {set: {name: number}}")
    parser.add_argument(
        "--set",
        nargs="+",
        action="append",
        default=[],
        metavar=("SET", "NAME=NUMBER"),
        help="a set and its metrics; may be repeated. A set is an area (code), a pool (pool:NAME), a fixed "
        "short fine-tuning (sft/short), or a final test (final/NAME), which stays sealed until a decision; "
        "labels=N or tokens=N says how much of it was scored, and is no metric",
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Append the metrics to the run's record; name what was attached and what that replaces."""
    path, manifest, step = split_place(args.run)
    metrics = _from_file(args.metrics) if args.metrics is not None else {}
    for name, values in _from_words(args.set).items():
        metrics.setdefault(name, {}).update(values)
    if not metrics:
        raise _single(
            "--set", "no metrics", "--metrics FILE or --set NAME key=value", "give at least one metric"
        )
    try:
        done = attach_and_tell(path, metrics, manifest, step=step)
    except ValueError as error:
        where = "--metrics" if args.metrics is not None else "--set"
        raise _single(where, str(error), "{set: {name: number}}", "write it so") from error
    sets = {name: sorted(values) for name, values in metrics.items()}
    if args.json:
        told = {key: value for key, value in asdict(done).items() if key != "manifest"}
        print_json({"run": str(path), "manifest": done.manifest, "sets": sets, **told})
        return 0
    print(f"{path}: attached to manifest {done.manifest}")
    for name, names in sets.items():
        said = ", ".join(f"{key}{_remark(done, f'{name}.{key}')}" for key in names)
        print(f"  {name}: {said}{' (sealed)' if is_sealed(name) else ''}")
        if name in done.new_sets:
            print(f"    note: new set; the run's others: {', '.join(done.known_sets)}")
    return 0


def _remark(done: Attached, metric: str) -> str:
    """What is to be known of one value, in brackets."""
    remarks = [f"{done.not_finite[metric]}: not finite"] if metric in done.not_finite else []
    if metric in done.replaced:
        old = done.replaced[metric]
        remarks.append(f"replaces {'an earlier value' if old is None else old}")
    return f" ({'; '.join(remarks)})" if remarks else ""


def _from_words(given: list[list[str]]) -> dict[str, dict[str, Any]]:
    """``[["code", "loss=1.5"]]`` as ``{"code": {"loss": 1.5}}``."""
    sets: dict[str, dict[str, Any]] = {}
    problems: list[Problem] = []
    fix = "write --set code loss=2.31 accuracy=0.4; RUN comes before it"
    for name, *words in given:
        if "=" in name or not words:
            problems.append(Problem("--set", " ".join([name, *words]), "a set, then NAME=NUMBER", fix))
        for word in words:
            key, _, text = word.rpartition("=")
            number = _number(text)
            if number is None or not key.strip():
                problems.append(Problem(f"--set {name}", word, "NAME=NUMBER", fix))
            elif key in sets.setdefault(name, {}):
                problems.append(
                    Problem(f"--set {name}", f"{key} again", "each metric once", "keep one of them")
                )
            else:
                sets[name][key] = number
    if problems:
        raise RecipeError("recipe attach", problems)
    return sets


def _number(text: str) -> int | float | None:
    """The number that a text is, in plain digits; None where it is none."""
    if not _NUMBER.fullmatch(text):
        return None
    return int(text) if _WHOLE.fullmatch(text) else float(text)


def _from_file(path: Path) -> dict[str, dict[str, Any]]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_each_once)
    except (ValueError, RecursionError) as error:
        raise _file_problem(path, str(error)) from error
    if not isinstance(value, dict) or not all(isinstance(values, dict) for values in value.values()):
        raise _file_problem(path, f"{value!r:.80}")
    return value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; a key given twice would hide a number."""
    twice = [key for key, count in Counter(key for key, _ in pairs).items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0]!r:.80} twice in one object")
    return dict(pairs)


def _file_problem(path: Path, given: str) -> RecipeError:
    fix = 'write {"code": {"loss": 2.31}, "sft/short": {"accuracy": 0.4}}'
    return RecipeError.single(
        f"{path}: no metrics", str(path), given=given, expected="JSON: {set: {name: number}}", fix=fix
    )


def _single(where: str, given: str, expected: str, fix: str) -> RecipeError:
    return RecipeError.single("recipe attach", where, given=given, expected=expected, fix=fix)
