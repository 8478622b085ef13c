"""``recipe finetune``: a fixed short fine-tuning from a checkpoint, as a metric of its manifest."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from recipe.cli.options import add_json, whole
from recipe.cli.output import print_json
from recipe.config.extras import how_to_install
from recipe.errors import RecipeError
from recipe.run.branching.origin import split_place


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of ``recipe finetune``."""
    parser.add_argument(
        "run",
        metavar="RUN[@MANIFEST]",
        help="a run of the reference trainer, and the number of the manifest, or @step:N (default: the last)",
    )
    parser.add_argument("--data", type=Path, required=True, metavar="POOL", help="the pool to fine-tune on")
    parser.add_argument(
        "--test", type=Path, required=True, metavar="POOL", help="the pool whose loss is the measure"
    )
    parser.add_argument("--name", default="short", help="of the set of metrics, sft/NAME (default: short)")
    parser.add_argument(
        "--steps", type=whole, default=32, metavar="N", help="of eight sequences each (default: 32)"
    )
    parser.add_argument(
        "--learning-rate", type=float, default=1e-3, metavar="X", help="of every step (default: 0.001)"
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Fine-tune a copy of the weights and attach what it then loses on the test pool."""
    if find_spec("torch") is None:
        raise _refused("the reference trainer without torch", "its packages", how_to_install("train"))
    from recipe.integrations.training.finetune import FineTuning, fine_tune  # torch takes seconds to import

    path, manifest, step = split_place(args.run)
    try:
        told = FineTuning(
            data=args.data,
            test=args.test,
            name=args.name,
            steps=args.steps,
            learning_rate=args.learning_rate,
        )
    except ValueError as error:
        raise _refused(str(error), "a yardstick that measures something", "correct the options") from error
    number, found = fine_tune(path, told, manifest, step=step)
    if args.json:
        print_json({"run": str(path), "manifest": number, "set": f"sft/{args.name}", "metrics": found})
        return 0
    print(
        f"{path}: sft/{args.name} attached to manifest {number}: "
        f"loss {found['loss']:.4f} ({found['loss_before']:.4f} before)"
    )
    return 0


def _refused(given: str, expected: str, fix: str) -> RecipeError:
    return RecipeError.single("recipe finetune", "options", given=given, expected=expected, fix=fix)
