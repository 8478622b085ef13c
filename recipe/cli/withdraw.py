"""``recipe withdraw``: documents that are not served any more, as after a take-down request."""

from __future__ import annotations

import argparse
import shlex

from rich.text import Text

from recipe.cli.options import (
    add_documents,
    add_dry_run,
    add_json,
    add_place,
    add_pools_root,
    add_record_words,
    add_yes,
    named_documents,
    recordable,
)
from recipe.cli.output import confirm, no_write, print_json, print_tables, say
from recipe.errors import RecipeError
from recipe.report.amendments import discard_lines, withdrawal_lines, withdrawal_tables
from recipe.run.changing.naming import place_named
from recipe.run.changing.withdraw import Ticket, Withdrawal, withdraw_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run and the documents."""
    add_place(parser)
    add_documents(parser)
    parser.add_argument(
        "--again",
        action="store_true",
        help="what the run withdrew before, at a step that does not know of it: with --at, to go back there",
    )
    parser.add_argument(
        "--erased",
        action="store_true",
        help="what was erased from the run's pools (recipe pools withdraw) and the run would still serve",
    )
    parser.add_argument("--pool", metavar="POOL", help="where to look; default: in every pool")
    parser.add_argument("--ticket", type=recordable, metavar="TEXT", help="of the request")
    add_pools_root(parser)
    add_record_words(parser)
    add_dry_run(parser)
    add_yes(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Show what will be withdrawn, ask, put it on record, and say where it was read before."""
    path, at = place_named(args.run, args.at)
    ids = _ids(args)

    def agreed(withdrawal: Withdrawal) -> bool:
        if not args.json:
            plain = withdrawal.to_plain()
            print_tables(withdrawal_tables(plain))
            print_tables(Text(line) for line in (*withdrawal_lines(plain), *discard_lines(plain)))
        return not args.dry_run and confirm("withdraw these documents?", yes=args.yes)

    withdrawal = withdraw_run(
        path,
        ids,
        ticket=Ticket(reason=args.reason, ticket=args.ticket, approved_by=args.approved_by),
        pool=args.pool,
        again=args.again,
        erased=args.erased,
        at=at,
        pools_root=args.pools_root,
        confirm=agreed,
    )
    if args.json:
        print_json(withdrawal.to_plain())
    if withdrawal.manifest is None:
        return no_write(dry_run=args.dry_run)
    words = [f"--documents {shlex.quote(str(args.documents))}"] * (args.documents is not None)
    words += [f"--document {shlex.quote(name)}" for name in args.document[:1]]
    where = f"; where they were read: recipe trace {path} {words[0]}" if words else ""
    say(f"manifest {withdrawal.manifest} has it{where}", quiet=args.json)
    return 0


def _ids(args: argparse.Namespace) -> list[str]:
    """The ids that are named, in a file and one by one."""
    is_named = args.documents is not None or bool(args.document)
    if is_named == (args.again or args.erased):
        raise RecipeError.single(
            "recipe withdraw",
            "--documents, --document, --again, --erased",
            given=f"--{'again' if args.again else 'erased'} beside documents" if is_named else "none of them",
            expected="documents (--document ID, --documents FILE), or --again, or --erased",
            fix="name the documents; --again alone withdraws what the run withdrew before, --erased what its "
            "pools lost",
        )
    return named_documents(args)
