"""``recipe skip``: leave out the data of some steps, as after a loss spike."""

from __future__ import annotations

import argparse

from rich.text import Text

from recipe.cli.options import (
    add_dry_run,
    add_json,
    add_place,
    add_pools_root,
    add_record_words,
    add_yes,
    is_whole,
)
from recipe.cli.output import confirm, no_write, print_json, print_tables, say
from recipe.report.amendments import discard_lines, skip_lines, skip_tables
from recipe.run.changing.naming import place_named
from recipe.run.changing.skip import Skip, skip_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run and the steps."""
    add_place(parser, at=False)
    parser.add_argument(
        "--steps",
        type=_steps,
        required=True,
        metavar="A..B",
        help="steps A to B - 1; a checkpoint is at A, and the run goes on there with the data from B on",
    )
    parser.add_argument(
        "--returned",
        action="store_true",
        help="the pools give the sequences later, before their epoch turns; default: they are dropped",
    )
    add_pools_root(parser)
    add_record_words(parser)
    add_dry_run(parser)
    add_yes(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Show what will be left out, ask, and put it on record."""
    path, _ = place_named(args.run, args.steps[0], "--steps")

    def agreed(skip: Skip) -> bool:
        if not args.json:
            plain = skip.to_plain()
            print_tables(Text(line) for line in skip_lines(plain))
            print_tables(skip_tables(plain))
            print_tables(Text(line) for line in discard_lines(plain))
        return not args.dry_run and confirm("skip these steps?", yes=args.yes)

    skip = skip_run(
        path,
        args.steps,
        reason=args.reason,
        returned=args.returned,
        approved_by=args.approved_by,
        pools_root=args.pools_root,
        confirm=agreed,
    )
    if args.json:
        print_json(skip.to_plain())
    if skip.manifest is None:
        return no_write(dry_run=args.dry_run)
    weights = f"go on from the weights of step {skip.steps[0]:,}"
    say(f"manifest {skip.manifest} has it; {weights} (recipe run {path})", quiet=args.json)
    return 0


def _steps(text: str) -> tuple[int, int]:
    first, dots, stop = text.partition("..")
    if not dots or not is_whole(first) or not is_whole(stop) or int(first) >= int(stop):
        raise argparse.ArgumentTypeError(f"expected steps such as 1200..1300, given {text!r}")
    return int(first), int(stop)
