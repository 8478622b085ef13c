"""``recipe withdraw``: documents that are not served any more, as after a take-down request."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.text import Text

from recipe.cli.options import add_json, add_record_words, add_yes, recordable
from recipe.cli.output import confirm, print_json, print_tables, say
from recipe.report.amendments import discard_lines
from recipe.report.tables import table
from recipe.run.changing.withdraw import Ticket, Withdrawal, read_ids, withdraw_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run and the documents."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder, such as runs/demo")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--documents", type=Path, metavar="FILE", help="ids of documents, one a line")
    which.add_argument(
        "--again",
        action="store_true",
        help="what the run withdrew before, at a step that does not know of it: with --at, to go back there",
    )
    parser.add_argument("--pool", metavar="POOL", help="where to look; default: in every pool")
    parser.add_argument("--ticket", type=recordable, metavar="TEXT", help="of the request")
    parser.add_argument(
        "--at", type=int, metavar="STEP", help="a step with a checkpoint; default: the last one"
    )
    parser.add_argument("--pools-root", type=Path, metavar="DIR", help="where the pools are on this machine")
    add_record_words(parser)
    add_yes(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Show what will be withdrawn, ask, put it on record, and say where it was read before."""
    ids = [] if args.again else read_ids(args.documents)

    def agreed(withdrawal: Withdrawal) -> bool:
        if not args.json:
            plain = withdrawal.to_plain()
            rows = [
                (name, f"{n:,}", f"{withdrawal.tokens[name]:,}") for name, n in withdrawal.documents.items()
            ]
            title = f"withdrawn from step {withdrawal.step:,} on"
            print_tables([table(title, ("pool", "documents", "body tokens"), rows)])
            print_tables(Text(line) for line in discard_lines(plain))
        return confirm("withdraw these documents?", yes=args.yes)

    withdrawal = withdraw_run(
        args.run,
        ids,
        ticket=Ticket(reason=args.reason, ticket=args.ticket, approved_by=args.approved_by),
        pool=args.pool,
        again=args.again,
        at=args.at,
        pools_root=args.pools_root,
        confirm=agreed,
    )
    if args.json:
        print_json(withdrawal.to_plain())
    if withdrawal.manifest is None:
        say("nothing was written; --yes agrees without asking")
        return 1
    where = (
        "" if args.again else f"; where they were read: recipe trace {args.run} --documents {args.documents}"
    )
    say(f"manifest {withdrawal.manifest} has it{where}", quiet=args.json)
    return 0
