"""``recipe trace``: from a document to the steps that read it, and from a row back to its sources."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from recipe.cli.options import add_json, add_pools_root, add_row_sources, check_sources, whole
from recipe.cli.output import print_json, print_tables, progress
from recipe.errors import RecipeError
from recipe.report.traces import row_tables, trace_tables
from recipe.run.changing.withdraw import read_ids
from recipe.run.tracing.rows import trace_row
from recipe.run.tracing.trace import Until, Wanted, trace_documents
from recipe.run.tracing.values import Progress

EXAMPLE = """\
Examples:
  recipe trace runs/demo --document asyncio/locks.py
  recipe trace runs/demo --documents ids.txt --json
  recipe trace runs/demo --text page.txt --pool english --until end
  recipe trace runs/demo --step 12 --row 3 --sources texts

Nothing is read from logs: the order of the pools is inverted, and only steps that may hold a document are
walked. Steps up to the last checkpoint are "read"; with --until, later ones are walked too, and "will be
read" if nothing changes the run's course. Rows are those of the global batch, in schedule order, from 0.
Exit code 1: some steps cannot be traced here; what is missing is named.
"""
_DIRECTIONS = ("--document, --documents or --text", "--step and --row")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run, and what is to be found."""
    parser.epilog = EXAMPLE
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder, such as runs/demo")
    documents = parser.add_argument_group("from documents to steps")
    documents.add_argument(
        "--document", action="append", default=[], metavar="ID", help="id of a document; repeatable"
    )
    documents.add_argument("--documents", type=Path, metavar="FILE", help="ids of documents, one a line")
    documents.add_argument(
        "--text", metavar="FILE|-", help="a document's whole text; every document with its tokens"
    )
    documents.add_argument("--pool", metavar="POOL", help="where to look; default: in every pool")
    documents.add_argument(
        "--until",
        type=_until,
        metavar="STEP|end",
        help="steps to look at; default: those on record, up to the last checkpoint",
    )
    documents.add_argument(
        "--all", action="store_true", help="a line for every reading, also of a document that has many"
    )
    rows = parser.add_argument_group("from a row to documents")
    rows.add_argument("--step", type=whole, metavar="N", help="a step of the run")
    rows.add_argument("--row", type=whole, metavar="R", help="a row of its global batch")
    add_row_sources(parser, rows)
    add_pools_root(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Print what was found; 0 all of it, 1 some steps cannot be traced."""
    _check(args)
    check_sources("recipe trace", args.sources)
    with progress(quiet=args.json) as bars:
        task = bars.add_task("walking", total=None, note="steps")

        def watch(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        return _row(args, watch) if args.step is not None else _documents(args, watch)


def _documents(args: argparse.Namespace, watch: Progress) -> int:
    ids = [*args.document, *(read_ids(args.documents) if args.documents is not None else [])]
    wanted = Wanted(
        ids=tuple(ids),
        text=None if args.text is None else _text(args.text),
        tokenizer=args.tokenizer,
        pool=args.pool,
    )
    trace = trace_documents(args.run, wanted, until=args.until, pools_root=args.pools_root, progress=watch)
    if args.json:
        print_json(trace.to_plain())
    else:
        print_tables(trace_tables(trace, every=args.all))
    return 1 if trace.gaps else 0


def _row(args: argparse.Namespace, watch: Progress) -> int:
    pieces = trace_row(
        args.run,
        args.step,
        args.row,
        sources=args.sources,
        tokenizer=args.tokenizer,
        pools_root=args.pools_root,
        progress=watch,
    )
    if args.json:
        plain = [one.to_plain() for one in pieces]
        print_json({"run": str(args.run), "step": args.step, "row": args.row, "pieces": plain})
    else:
        print_tables(row_tables((args.step, args.row), pieces))
    return 0


def _check(args: argparse.Namespace) -> None:
    """Refuse words of both directions, or of none."""
    documents = [*args.document, *(one for one in (args.documents, args.text) if one is not None)]
    places = [one for one in (args.step, args.row) if one is not None]
    if len(places) == 1 and not documents:
        here, lacking, word = ("--row", "--step", "N") if args.step is None else ("--step", "--row", "R")
        raise RecipeError.single(
            "trace",
            lacking,
            given=f"{here} {places[0]} alone",
            expected="a step and a row of its global batch",
            fix=f"add {lacking} {word}",
        )
    if bool(documents) is bool(places):
        given = "both" if documents else "neither"
        raise RecipeError.single(
            "trace",
            "what to find",
            given=given,
            expected=f"documents ({_DIRECTIONS[0]}), or a row ({_DIRECTIONS[1]})",
            fix=f"recipe trace {args.run} --document ID; or recipe trace {args.run} --step N --row R",
        )


def _text(place: str) -> str:
    """The text of a file, or of what is piped in."""
    try:
        data = sys.stdin.buffer.read() if place == "-" else Path(place).read_bytes()
        return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError.single(
            "trace",
            "--text",
            given=f"{place}: {getattr(error, 'strerror', None) or error}",
            expected="the text of a document, in UTF-8",
            fix="give a file that holds the whole text of one document, or - and pipe it in",
        ) from error


def _until(text: str) -> Until:
    return "end" if text == "end" else whole(text)
