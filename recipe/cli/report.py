"""``recipe report``: what a run spent, as a datasheet for a public summary of training data."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from recipe.cli.options import add_json, add_pools_root, check_file
from recipe.cli.output import print_json, print_tables, say
from recipe.config.problems import shown
from recipe.config.strict_yaml import read_yaml
from recipe.errors import RecipeError
from recipe.pools.about import KEYS, about_of
from recipe.report.datasheet import NONE, READ, STOCK, TAGS, datasheet_of
from recipe.report.datasheet_pages import datasheet_tables, markdown, page
from recipe.report.datasheet_words import LANGUAGES
from recipe.report.spent import spent_tables, spent_to_plain
from recipe.run.finding import find_place
from recipe.run.folder import RunFolder
from recipe.run.ledger import read_tail
from recipe.run.surviving import surviving
from recipe.run.writes import replace_file

WRITERS = {".md": markdown, ".html": page, ".json": None}
EXAMPLE = """\
Examples:
  recipe report runs/demo
  recipe report runs/demo --datasheet
  recipe report runs/demo --datasheet --out datasheet.md
  recipe report runs/demo --datasheet --lang zh --out datasheet.html
  recipe report runs/demo --datasheet --share read --tag domain --json

Without --datasheet: tokens promised and spent, by stage and pool. With it: tokens spent by where texts come
from, as the pools' cards say (recipe pools describe): kind, licence, language, dates, generator. The numbers
are the ledger's, to the token; what no card says is listed as not stated.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run and what is told of it."""
    parser.epilog = EXAMPLE
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder, such as runs/demo")
    parser.add_argument("--datasheet", action="store_true", help="what was spent, by where it comes from")
    sheet = parser.add_argument_group("of the datasheet")
    sheet.add_argument(
        "--out", type=Path, metavar="FILE", help=f"write it ({', '.join(WRITERS)}) instead of showing it"
    )
    sheet.add_argument("--lang", choices=LANGUAGES, default="en", help="of its labels (default: en)")
    sheet.add_argument(
        "--share",
        choices=(STOCK, READ, NONE),
        default=STOCK,
        help="share out a pool's tokens over its documents' tags: as its stock is made up (default); as what "
        "was read at least once is, walked like recipe audit; or not at all",
    )
    sheet.add_argument(
        "--tag", action="append", default=[], metavar="KEY", help=f"repeatable; default: {', '.join(TAGS)}"
    )
    sheet.add_argument(
        "--about",
        type=Path,
        metavar="FILE",
        help="YAML: what is said of pools that have no card, by name: {web: {kind: crawled, licence: MIT}}",
    )
    add_pools_root(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Show or write it; nothing of the run is locked or written."""
    if not args.datasheet:
        _refuse_alone(args)
        return _spent(args)
    if args.out is not None:
        check_file("recipe report", "--out", args.out, "datasheet.md")
        _check_suffix(args.out)
    about = None if args.about is None else _about(args.about)
    facts = datasheet_of(args.run, pools_root=args.pools_root, share=args.share, tags=args.tag, about=about)
    if args.out is not None:
        write = WRITERS[args.out.suffix]
        text = (
            f"{json.dumps(facts, indent=2, ensure_ascii=False)}\n"
            if write is None
            else write(facts, args.lang)
        )
        replace_file(args.out, text.encode())
        say(f"{args.out}: the datasheet of {args.run}", quiet=args.json)
    if args.json:
        print_json(facts)
    elif args.out is None:
        print_tables(datasheet_tables(facts, args.lang))
    found = {key for pool in facts["pools"].values() for key in pool["tags"]}
    for key in args.tag if args.share != NONE else ():
        if key not in found:
            say(f"note: no document of the run's pools that are here has the tag {key!r}", quiet=args.json)
    return 0


def _about(path: Path) -> dict[str, dict[str, Any]]:
    """What a file says of pools, by name."""
    data = read_yaml(path)
    if not isinstance(data, dict):
        raise RecipeError.single(
            "recipe report", "--about", given=f"{path}: {type(data).__name__}",
            expected="a mapping of pools to what is said of them", fix="write web: {kind: crawled}",
        )  # fmt: skip
    if flat := [str(name) for name, said in data.items() if not isinstance(said, dict)]:
        is_about = flat[0] in KEYS
        raise RecipeError.single(
            "recipe report", "--about", given=f"{path}: {flat[0]}: {shown(data[flat[0]])}",
            expected="what is said of each pool below its name, such as web: {kind: crawled, licence: MIT}",
            fix=f"write POOL: {{{flat[0]}: …}}, with the name of the pool that it is said of" if is_about
            else f"write {flat[0]}: {{kind: …, licence: …}}",
        )  # fmt: skip
    return {str(name): about_of(said, f"{path}: {name}") for name, said in data.items()}


def _check_suffix(path: Path) -> None:
    if path.suffix not in WRITERS:
        raise RecipeError.single(
            "recipe report", "--out", given=path, expected=f"a file that ends in {', '.join(WRITERS)}",
            fix=f"call it {path.with_suffix('.md')}",
        )  # fmt: skip


def _refuse_alone(args: argparse.Namespace) -> None:
    """Options that only a datasheet has."""
    given = [
        name for name, value in (("--out", args.out), ("--tag", args.tag), ("--about", args.about)) if value
    ]
    given += [
        f"--{name}" for name, usual in (("lang", "en"), ("share", STOCK)) if getattr(args, name) != usual
    ]
    if given:
        raise RecipeError.single(
            "recipe report", given[0], given=f"{given[0]} without --datasheet", expected="both, or neither",
            fix=f"recipe report {args.run} --datasheet {given[0]} …",
        )  # fmt: skip


def _spent(args: argparse.Namespace) -> int:
    """The account of the run's own steps: what was promised and spent, by stage and pool."""
    folder = RunFolder(args.run)
    folder.check()
    state = find_place(folder).state
    rows: list[dict[str, Any]] = [row.data for row in surviving(folder.ledger, read_tail(folder.ledger))]
    if args.json:
        print_json({"run": str(args.run), "stages": spent_to_plain(state.recipe, rows)})
    else:
        stock = {name: held.stock for name, held in state.holdings.items()}
        print_tables(spent_tables(state.recipe, rows, stock))
        say("of this run's own steps; --datasheet says where the texts come from, branches' trunks included")
    return 0
