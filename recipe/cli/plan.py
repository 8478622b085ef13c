"""``recipe plan``: what a recipe will draw, before any step."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.text import Text

from recipe.cli.found import refuse_missing
from recipe.cli.options import add_allow_target, add_json, add_recipe_words, check_file, split_words
from recipe.cli.output import print_json, print_tables, say
from recipe.config import load_recipe
from recipe.errors import RecipeError
from recipe.mixing.diagnosis import diagnose
from recipe.mixing.plan import make_plan
from recipe.mixing.planned import Plan
from recipe.report.diagnoses import diagnosis_page, diagnosis_tables
from recipe.report.plans import plan_tables
from recipe.report.starts import policy_line, prior_line
from recipe.report.traffic import traffic_tables
from recipe.run.evaluation import held_out_problems
from recipe.run.statement import prior_of
from recipe.run.writes import replace_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the recipe and how exact the answer is."""
    add_recipe_words(parser)
    parser.add_argument(
        "--exact",
        action="store_true",
        help="walk the whole run over metadata instead of estimating from blocks; a run that takes about a "
        "second to walk always is",
    )
    parser.add_argument(
        "--diagnose",
        action="store_true",
        help="also how often tokens are read, where documents are cut, how rows fill, what each epoch gives",
    )
    parser.add_argument("--figures", type=Path, metavar="FILE", help="write that as a page of figures (HTML)")
    parser.add_argument(
        "--step-seconds",
        type=seconds,
        metavar="SECONDS",
        help="what a step of the trainer takes, such as 0.5: then what is read from stores is told a second",
    )
    add_allow_target(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Plan; 1 when the plan cannot be carried out, 2 when its pools do not go together or cannot be read."""
    if args.figures is not None:
        check_file("recipe plan", "--figures", args.figures, "plan.html")
    source, overrides = split_words(args.words)
    recipe = load_recipe(source, overrides, config_dir=args.config_dir)
    refuse_missing(recipe, source)
    plan = make_plan(recipe, exact=args.exact or None, allow_targets=args.allow_target)
    held_out = held_out_problems(recipe, plan.opened)
    prior = prior_of(plan.recipe)
    traffic = _traffic(plan)
    plain = {**plan.to_plain(), "prior": prior, **({} if traffic is None else {"stores": traffic})}
    found = _diagnosed(plan, args)
    problems = (*plan.problems, *held_out)
    if problems:  # before tables that may be long
        print(RecipeError(f"{recipe.name} is refused", problems), file=sys.stderr, flush=True)
    if args.json:
        print_json(plain if found is None else {**plain, "diagnosis": found})
    else:
        print_tables(plan_tables(plain))
        print_tables(diagnosis_tables(found) if found is not None and args.diagnose else [])
        print_tables([] if traffic is None else traffic_tables(traffic, args.step_seconds))
        print_tables([] if prior is None else [Text(prior_line(prior))])
    if recipe.policy is not None:
        say(policy_line(recipe.policy.target), quiet=args.json)
    for kind, sentences in (("warning", plan.warnings), ("advice", plan.advice)):
        for sentence in sentences:
            say(f"{kind}: {sentence}", quiet=args.json)
    if problems:
        say(f"{recipe.name} is refused: the reasons stand first", quiet=args.json)
    return 2 if plan.unfit or held_out else int(bool(problems))


def _traffic(plan: Plan) -> dict[str, Any] | None:
    """What it asks of stores, if it can be carried out and a pool lies in one."""
    if plan.problems or all(pool.layout.remote is None for pool in plan.opened.values()):
        return None
    # what talks to stores: only pools that lie in one have a use for it
    from recipe.mixing.traffic import traffic_of

    found = traffic_of(plan.recipe, plan.opened)
    return None if found is None else found.to_plain()


def seconds(text: str) -> float:
    """An amount of seconds, as an option gives it."""
    given = float(text)
    if not 0 < given < float("inf"):
        raise ValueError(text)
    return given


def _diagnosed(plan: Plan, args: argparse.Namespace) -> dict[str, Any] | None:
    """What the rules do to the texts, if it is asked for; written as a page where one is named."""
    if not args.diagnose and args.figures is None:
        return None
    found = {
        stage: {name: one.to_plain() for name, one in pools.items()}
        for stage, pools in diagnose(plan).items()
    }
    if args.figures is not None:
        page = diagnosis_page(f"{plan.recipe.name}: what its rules do", found)
        replace_file(args.figures, page.encode())
        say(f"{args.figures}: figures of {sum(map(len, found.values()))} pools", quiet=args.json)
    return found
