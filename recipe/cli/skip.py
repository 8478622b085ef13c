"""``recipe skip``: leave out the data of some steps, as after a loss spike."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.text import Text

from recipe.cli.options import add_json, add_record_words, add_yes
from recipe.cli.output import confirm, print_json, print_tables, say
from recipe.report.amendments import discard_lines
from recipe.report.tables import table
from recipe.run.changing.skip import Skip, skip_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run and the steps."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder, such as runs/demo")
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
    parser.add_argument("--pools-root", type=Path, metavar="DIR", help="where the pools are on this machine")
    add_record_words(parser)
    add_yes(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Show what will be left out, ask, and put it on record."""

    def agreed(skip: Skip) -> bool:
        if not args.json:
            plain = skip.to_plain()
            what = "returned to the pools" if skip.returned else "dropped"
            rows = [(name, f"{n:,}", f"{skip.tokens[name]:,}") for name, n in skip.sequences.items()]
            print_tables([table(f"left out, {what}", ("pool", "sequences", "fresh tokens"), rows)])
            print_tables(Text(line) for line in discard_lines(plain))
        return confirm("skip these steps?", yes=args.yes)

    skip = skip_run(
        args.run,
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
        say("nothing was written; --yes agrees without asking")
        return 1
    say(f"manifest {skip.manifest} has it; go on from the weights of step {skip.steps[0]:,}", quiet=args.json)
    return 0


def _steps(text: str) -> tuple[int, int]:
    first, dots, stop = text.partition("..")
    if not dots or not first.isdecimal() or not stop.isdecimal() or int(first) >= int(stop):
        raise argparse.ArgumentTypeError(f"expected steps such as 1200..1300, given {text!r}")
    return int(first), int(stop)
