"""``recipe pools repart``: other token files for the same pool."""

from __future__ import annotations

import argparse
from pathlib import Path

from recipe.cli.options import add_json, number
from recipe.cli.output import print_json
from recipe.config.places import place
from recipe.pools.opening import open_pool
from recipe.pools.reparting import repart_pool

EXAMPLE = """\
Examples:
  recipe pools repart pools/web --part-tokens 1Gi --out pools/web-merged
  recipe pools repart pools/web --part-tokens 64Mi --out pools/web-cut

Documents, their order and the fingerprint stay: a run whose pool's folder is replaced by the new one goes on
as if nothing had happened (move it there, or --pools-root). Parts are cut between documents. The card keeps
the parts that the pool was written with; `recipe pools verify --full` proves them from the new files.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the pool and its parts."""
    parser.epilog = EXAMPLE
    parser.add_argument("pool", type=place, metavar="POOL", help="folder of the pool")
    parser.add_argument(
        "--part-tokens",
        type=number(1, amounts=True),
        required=True,
        metavar="N",
        help="stored tokens of a part at most: 1Gi, 500M, 20000",
    )
    parser.add_argument("--out", required=True, type=Path, metavar="NEW", help="folder of the new pool")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Write the pool with other parts."""
    with open_pool(args.pool, args.pool.name) as old:
        new = repart_pool(old, args.out, part_tokens=args.part_tokens)
        plain = {
            "path": str(args.out),
            "fingerprint": new.fingerprint,
            "documents": new.num_documents,
            "tokens": new.stock,
            "parts": {
                "before": old.num_parts,
                "after": new.num_parts,
                "written": len(new.card.written_parts),
            },
        }
    if args.json:
        print_json(plain)
    else:
        parts = f"parts: {new.num_parts:,}, before {old.num_parts:,}"
        same = f"documents: {new.num_documents:,}, fingerprint {new.fingerprint[:16]}… as before"
        print(f"{args.out}: {parts}; {same}")
    return 0
