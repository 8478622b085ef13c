"""``recipe inspect``: rows of a run as readable text, with every part of them marked."""

from __future__ import annotations

import argparse
from pathlib import Path

from recipe.cli.options import add_json, add_pools_root, add_row_sources, check_file, check_sources, whole
from recipe.cli.output import print_json, print_tables, progress, say
from recipe.errors import RecipeError
from recipe.report.looks import look_lines, look_page
from recipe.run.tracing.looking import Look, look_at_rows
from recipe.run.tracing.rows import RowSources
from recipe.run.tracing.trace import Wanted, trace_documents
from recipe.run.tracing.values import Progress, Trace
from recipe.run.writes import replace_file

MOST_ROWS = 8
"""Rows of a document that are shown unless all are asked for."""
EXAMPLE = """\
Examples:
  recipe inspect runs/demo --step 12 --row 3
  recipe inspect runs/demo --step 12 --row 3 --sources texts --html row.html
  recipe inspect runs/demo --document asyncio/locks.py --pool code

Overlap, marks, padding and positions without a label have colours of their own; --table lists the same for
eyes without colours. Bytes that are no character stand like ⟨e4⟩. Rows are those of the global batch, in
schedule order, from 0; nothing is locked or written but what --html names.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run and what is looked at."""
    parser.epilog = EXAMPLE
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder, such as runs/demo")
    parser.add_argument("--step", type=whole, metavar="N", help="a step of the run")
    parser.add_argument("--row", type=whole, metavar="R", help="a row of its global batch")
    parser.add_argument("--document", metavar="ID", help="instead: the rows that read this document")
    parser.add_argument("--pool", metavar="POOL", help="of the document; default: every pool that has it")
    parser.add_argument("--all", action="store_true", help=f"more than {MOST_ROWS} rows of a document")
    parser.add_argument("--table", action="store_true", help="also list the stretches of the row")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page instead of showing it here")
    add_row_sources(parser)
    add_pools_root(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Show the rows."""
    if (args.document is None) is (args.step is None or args.row is None):
        raise RecipeError.single(
            "recipe inspect",
            "what to look at",
            given="both" if args.document is not None else "neither a row nor a document",
            expected="--step and --row, or --document",
            fix=f"recipe inspect {args.run} --step N --row R; or --document ID",
        )
    check_sources("recipe inspect", args.sources)
    if args.html is not None:
        check_file("recipe inspect", "--html", args.html, "row.html")
    looks, told = _looks(args)
    if args.json:
        print_json([look.to_plain() for look in looks])
    elif args.html is not None:
        replace_file(args.html, look_page(looks).encode())
        say(f"{args.html}: {len(looks)} rows", quiet=False)
    else:
        for look in looks:
            print_tables(look_lines(look, every=args.table))
            if not look.has_text:
                say("ids instead of text: name the pool's tokenizer with --tokenizer", quiet=False)
    if told:
        say(told, quiet=args.json)
    return 0


def _looks(args: argparse.Namespace) -> tuple[list[Look], str]:
    """The rows, and what is to be said of those left out."""
    with progress(quiet=args.json) as bars:
        task = bars.add_task("walking", total=None, note="steps")

        def watch(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        places, told = [(args.step, args.row)], ""
        if args.document is not None:
            places = _places(args, watch)
            if len(places) > MOST_ROWS and not args.all:
                told = f"{len(places) - MOST_ROWS:,} more rows: --all shows them"
                places = places[:MOST_ROWS]
        where = RowSources(args.sources, args.tokenizer)
        return look_at_rows(args.run, places, where, pools_root=args.pools_root, progress=watch), told


def _places(args: argparse.Namespace, watch: Progress) -> list[tuple[int, int]]:
    """Rows on record that read a document, or if none did, those that will."""
    wanted = Wanted(ids=(args.document,), pool=args.pool)
    for until in (None, "end"):
        trace: Trace = trace_documents(
            args.run, wanted, until=until, pools_root=args.pools_root, progress=watch
        )
        readings = [one for document in trace.documents for one in document.readings if one.run == trace.run]
        if readings:
            return list(dict.fromkeys((one.step, one.row) for one in readings))
    raise RecipeError.single(
        f"{args.run}: a document that no row holds",
        "--document",
        given=args.document,
        expected="a document that the run reads, now or up to its end",
        fix=f"recipe trace {args.run} --document {args.document!r} says why",
    )
