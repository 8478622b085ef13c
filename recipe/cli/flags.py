"""``recipe flags``: settings of a trainer that keep to a recipe's sequence rules."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from recipe.cli.found import refuse_missing
from recipe.cli.options import add_json, add_recipe_words, run_alone, split_words
from recipe.cli.output import print_json
from recipe.config import Recipe, load_recipe
from recipe.mixing.plan import make_plan
from recipe.run.finding import find_place
from recipe.run.folder import RunFolder, read_version
from recipe.run.handover.trainer import trainer_settings

TRAINERS = ("megatron", "transformers", "flash_attention", "pytorch")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the recipe or run, and the trainer."""
    add_recipe_words(parser, also="; or the folder of a run, alone")
    parser.add_argument("--trainer", choices=TRAINERS, default="megatron", help="default: megatron")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Print them, each with what it is for."""
    settings = trainer_settings(_recipe(args))
    if args.json:
        print_json({"trainer": args.trainer, "feed": settings["feed"], "settings": settings[args.trainer]})
        return 0
    found = settings[args.trainer]
    if isinstance(found, list):
        print("\n".join(_line(setting) for setting in found))
        return 0
    for stage, own in found["stages"].items():
        print(f"# stage {stage}")
        print("\n".join(_line(setting) for setting in [*own, *found["all_stages"]]), end="\n\n")
    return 0


def _recipe(args: argparse.Namespace) -> Recipe:
    """The recipe, with every share, block and chunk a number."""
    source, overrides = split_words(args.words)
    folder = RunFolder(Path(source))
    if not folder.is_run:
        recipe = load_recipe(source, overrides, config_dir=args.config_dir)
        refuse_missing(recipe, source)
        return make_plan(recipe, compare_packing=False).recipe
    run_alone(source, overrides, args.config_dir, "give the recipe's name or file to try changes")
    place = find_place(folder)
    return read_version(folder, place.state.version, place.version_hash).recipe


def _line(setting: dict[str, Any]) -> str:
    """A setting as it is typed, and why."""
    option, value = setting["option"], setting["value"]
    if value == "leave out":
        return f"# {option}: leave out, {setting['why']}"
    text = (
        option if value is True else f"{option} {value}" if option.startswith("--") else f"{option} = {value}"
    )
    return f"{text}  # {setting['why']}"
