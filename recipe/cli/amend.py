"""``recipe amend``: another recipe from a checkpoint on."""

from __future__ import annotations

import argparse
from fractions import Fraction

from rich.text import Text

from recipe.cli.options import (
    add_allow_target,
    add_dry_run,
    add_json,
    add_place,
    add_pools_root,
    add_record_words,
    add_yes,
)
from recipe.cli.output import confirm, no_write, print_json, print_tables, say
from recipe.errors import RecipeError
from recipe.report.amendments import amendment_lines, amendment_tables
from recipe.run.changing.amend import amend_run
from recipe.run.changing.amending import Amendment
from recipe.run.changing.approval import Approval
from recipe.run.changing.naming import place_named
from recipe.run.changing.totals import Goal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run, what changes, and who wants it."""
    add_place(parser)
    parser.add_argument(
        "changes",
        nargs="*",
        metavar="KEY=VALUE",
        help="such as stages.base.quotas.code=20%%",
    )
    parser.add_argument(
        "--from",
        dest="from_pool",
        metavar="POOL",
        help="the pool that gives, or gets, the difference",
    )
    totals = parser.add_mutually_exclusive_group()
    totals.add_argument(
        "--total",
        action="store_const",
        const="stage",
        help="the quotas are what the whole stage shall reach; default: they hold from now on",
    )
    totals.add_argument(
        "--total-run",
        dest="total",
        action="store_const",
        const="run",
        help="the quotas are what the whole run shall reach",
    )
    parser.add_argument(
        "--max-rise",
        type=_rise,
        default=argparse.SUPPRESS,
        metavar="TIMES",
        help="with totals: how many times its share in force a share may become (default 2, or any)",
    )
    parser.add_argument(
        "--grown",
        choices=("next-epoch", "now"),
        help="pools that have more parts now: read them from the pool's next epoch on, or begin it now",
    )
    add_pools_root(parser)
    add_allow_target(parser)
    add_record_words(parser)
    add_dry_run(parser)
    add_yes(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Show what will change, ask, and put it on record."""
    path, at = place_named(args.run, args.at)
    goal = _goal(args)

    def agreed(amendment: Amendment) -> bool:
        if not args.json:
            plain = {**amendment.to_plain(), "said": args.changes}
            title = f"{path}: recipe version {amendment.version} from step {amendment.step:,} on"
            print_tables([Text(title)])
            print_tables(Text(line) for line in amendment_lines(plain))
            print_tables(amendment_tables(plain))
        return not args.dry_run and confirm("amend the run?", yes=args.yes)

    amendment = amend_run(
        path,
        args.changes,
        approval=Approval(reason=args.reason, approved_by=args.approved_by),
        at=at,
        from_pool=args.from_pool,
        goal=goal,
        opens=args.grown,
        allow_targets=args.allow_target,
        pools_root=args.pools_root,
        confirm=agreed,
    )
    if args.json:
        print_json(amendment.to_plain())
    if amendment.manifest is None:
        return no_write(dry_run=args.dry_run)
    say(
        f"manifest {amendment.manifest} has it. A run that is training goes on as before until it is opened "
        f"again at step {amendment.step:,}, or every rank has the new state.",
        quiet=args.json,
    )
    return 0


def _goal(args: argparse.Namespace) -> Goal | None:
    """What the quotas are to reach, where they are totals."""
    if args.total is not None:
        return Goal(of=args.total, max_rise=getattr(args, "max_rise", Fraction(2)))
    if "max_rise" in args:
        raise RecipeError.single(
            "recipe amend",
            "--max-rise",
            given="without totals",
            expected="--total or --total-run beside it",
            fix="add one of them, or leave it out: shares that hold from now on rise as they say",
        )
    return None


def _rise(text: str) -> Fraction | None:
    if text == "any":
        return None
    try:
        value = Fraction(text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a number from 1 on, or any, given {text!r}")
    return value
