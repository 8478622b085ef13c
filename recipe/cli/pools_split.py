"""``recipe pools split``: a pool's documents as pools for training and validation."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from recipe.cli.options import add_json, whole
from recipe.cli.output import print_json, print_tables, say
from recipe.config.places import place
from recipe.pools.opening import open_pool
from recipe.pools.reasons import OTHER_SPLIT
from recipe.pools.splits import parse_split
from recipe.pools.splitting import split_pool
from recipe.report.tables import table

EXAMPLE = """\
Examples:
  recipe pools split pools/web --into train=97%,validation=2%,test=1% --out pools/web-split
  recipe pools split pools/code --into train=2/3,test=1/3 --split-salt 7 --out pools/code-split --json

A document is where `recipe prepare --split` would put it: by its group, or else by its tokens: no text is in
two. Where groups of two splits hold the same, the smaller split keeps it; the rest is counted as
other_split. Interrupted, the same command goes on.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the pool and its parts."""
    parser.epilog = EXAMPLE
    parser.add_argument("pool", type=place, metavar="POOL", help="folder or URL of the pool")
    parser.add_argument(
        "--into",
        required=True,
        metavar="NAME=SHARE,…",
        help="exact percentages or fractions that sum to 100%%",
    )
    parser.add_argument(
        "--split-salt", type=whole, default=0, metavar="N", help="another one splits otherwise (default: 0)"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="DIR", help="folder of the new pools")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Write the parts and count them."""
    split = parse_split(args.into, args.split_salt)
    with open_pool(args.pool, args.pool.name) as pool:
        found = split_pool(pool, split, args.out, tell=lambda text: say(text, quiet=args.json))
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "share": str(split.shares[name]),
            "documents": new.card.num_documents,
            "tokens": new.card.body_tokens,
            "left_out": dict(new.card.dropped),
            "fingerprint": new.fingerprint,
        }
        for name, new in found.items()
    ]
    if args.json:
        print_json({"out": str(args.out), **split.to_plain(), "pools": rows})
        return 0
    heads = ("pool", "share", "documents", "tokens", "left out: in another split")
    cells = [
        (row["name"], row["share"], f"{row['documents']:,}", f"{row['tokens']:,}",
         f"{row['left_out'].get(OTHER_SPLIT, 0):,}")
        for row in rows
    ]  # fmt: skip
    print_tables([table(f"splits {args.out}", heads, cells)])
    return 0
