"""``recipe pools dedup``: each text in the first pool that has it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import RenderableType

from recipe.cli.options import add_json
from recipe.cli.output import print_json, print_tables, say
from recipe.config.places import place
from recipe.errors import RecipeError
from recipe.pools.chosen_ids import ChosenIds
from recipe.pools.dedup import Deduplicated, dedup_pools
from recipe.pools.reasons import NEAR_DUPLICATE
from recipe.report.tables import table
from recipe.text.handing import read_ids

EXAMPLE = """\
Examples:
  recipe pools dedup --out pools/unique pools/code pools/web
  recipe pools dedup --out pools/unique pools/code pools/web --dry-run --json
  recipe pools dedup --out pools/unique pools/web --keep-ids kept/
  recipe pools dedup --out pools/good pools/web --drop-ids bad.txt --reason low_quality

The pools come by priority: a text stays in the first one that has it, with the tags of all copies. Documents
are equal if their tokens are. A document leaves its group alone; one whose sections its group needs stays.
Near-duplicates are found by other tools: `recipe pools texts` hands the texts to datatrove, --keep-ids takes
what it kept; of a list that was made otherwise, --reason says by what. Interrupted, the same command goes on.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the pools and where they go."""
    parser.epilog = EXAMPLE
    parser.add_argument(
        "pools", nargs="+", type=place, metavar="POOL", help="folders or URLs of pools, by priority"
    )
    parser.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="DIR",
        help="folder of the new pools, called as the old ones",
    )
    ids = parser.add_mutually_exclusive_group()
    what = "ids, one a line; JSON lines with an id; or a folder of these"
    ids.add_argument("--keep-ids", type=Path, metavar="FILE", help=f"of one pool, keep these at most: {what}")
    ids.add_argument("--drop-ids", type=Path, metavar="FILE", help="of one pool, leave these out; likewise")
    parser.add_argument(
        "--reason",
        metavar="WORD",
        help=f"what the card counts those under that the list leaves out (default: {NEAR_DUPLICATE})",
    )
    parser.add_argument("--dry-run", action="store_true", help="count, and write nothing")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Write the pools and say what stayed."""
    ids = None
    if (listed := args.keep_ids or args.drop_ids) is not None:
        ids = ChosenIds.of(
            read_ids(listed),
            keep=args.keep_ids is not None,
            reason=NEAR_DUPLICATE if args.reason is None else args.reason,
            again=lambda: read_ids(listed),
        )
    elif args.reason is not None:
        raise RecipeError.single(
            "recipe pools dedup", "--reason", given=args.reason, expected="--keep-ids or --drop-ids with it",
            fix="leave it out: equal documents are counted as duplicate",
        )  # fmt: skip
    found = dedup_pools(
        args.pools, args.out, ids=ids, dry_run=args.dry_run, tell=lambda text: say(text, quiet=args.json)
    )
    if args.json:
        print_json(
            {"out": str(args.out), "written": not args.dry_run, "pools": [_plain(one) for one in found]}
        )
    else:
        print_tables(_tables(args.out, found))
        if args.dry_run:
            say("nothing was written")
    return 0


def _plain(one: Deduplicated) -> dict[str, Any]:
    return {
        "name": one.name,
        "path": str(one.path),
        "documents": one.documents,
        "tokens": one.tokens,
        "kept": {"documents": one.kept_documents, "tokens": one.kept_tokens},
        "left_out": dict(one.left_out),
        "duplicates_of": dict(one.duplicates_of),
        "kept_because_needed": one.needed,
        "fingerprint": one.fingerprint,
    }


def _tables(out: Path, found: Sequence[Deduplicated]) -> list[RenderableType]:
    reasons = sorted({reason for one in found for reason in one.left_out})
    heads = ("pool", "documents", "tokens", "documents kept", "tokens kept")
    rows = [
        (
            one.name,
            *(f"{count:,}" for count in (one.documents, one.tokens, one.kept_documents, one.kept_tokens)),
            *(f"{one.left_out.get(reason, 0):,}" for reason in reasons),
            ", ".join(f"{name}: {count:,}" for name, count in one.duplicates_of.items()),
        )
        for one in found
    ]
    more = tuple(f"left out: {reason.replace('_', ' ')}" for reason in reasons)
    kept = sum(one.needed for one in found)
    caption = f"{kept:,} duplicates stay: their groups need sections of them" if kept else ""
    return [table(f"pools {out}", (*heads, *more, "their text is in"), rows, caption=caption)]
