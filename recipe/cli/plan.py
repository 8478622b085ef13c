"""``recipe plan``: what a recipe will draw, before any step."""

from __future__ import annotations

import argparse
import sys

from rich.text import Text

from recipe.cli.found import refuse_missing
from recipe.cli.options import add_allow_target, add_json, add_recipe_words, split_words
from recipe.cli.output import print_json, print_tables, say
from recipe.config import load_recipe
from recipe.mixing.plan import make_plan
from recipe.report.plans import plan_tables
from recipe.report.starts import policy_line, prior_line
from recipe.run.statement import prior_of


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the recipe and how exact the answer is."""
    add_recipe_words(parser)
    parser.add_argument(
        "--exact",
        action="store_true",
        help="walk the whole run over metadata instead of estimating from blocks",
    )
    add_allow_target(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Plan; 1 when the plan cannot be carried out."""
    source, overrides = split_words(args.words)
    recipe = load_recipe(source, overrides, config_dir=args.config_dir)
    refuse_missing(recipe, source)
    plan = make_plan(recipe, exact=args.exact, allow_targets=args.allow_target)
    prior = prior_of(plan.recipe)
    plain = {**plan.to_plain(), "prior": prior}
    if args.json:
        print_json(plain)
    else:
        print_tables(plan_tables(plain))
        print_tables([] if prior is None else [Text(prior_line(prior))])
    if recipe.policy is not None:
        say(policy_line(recipe.policy.target), quiet=args.json)
    for warning in plan.warnings:
        say(f"warning: {warning}", quiet=args.json)
    for problem in plan.problems:
        print(problem, file=sys.stderr)
    return 1 if plan.problems else 0
