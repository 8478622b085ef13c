"""``recipe pools withdraw``: a pool without the text of documents that were taken down."""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipe.cli.options import add_documents, add_json, named_documents, recordable
from recipe.cli.output import print_json
from recipe.config.places import place
from recipe.errors import RecipeError
from recipe.pools import Pool
from recipe.pools.adopting import refuse_pairs
from recipe.pools.erasing import erase_documents
from recipe.pools.opening import open_pool
from recipe.pools.reasons import WITHDRAWN
from recipe.pools.renumbering import copy_without
from recipe.run.tracing.documents import find_ids, unknown_ids, ways_of

EXAMPLE = """\
Examples:
  recipe pools withdraw pools/web --documents ids.txt --reason 'request 12' --out pools/web-2
  recipe pools withdraw pools/web --document page/17 --reason 'request 13' --renumber --out pools/web-3

The text of the documents is in no file of the new pool. Without --renumber zeros stand in their place, which
take no room on most disks: numbers, order and fingerprint stay, and a run goes on over the new folder once it
withdrew the same documents (recipe withdraw RUN --erased); a new run begins without them. With --renumber the
new pool is another one, for new runs: nothing is left of the documents, neither ids nor tags.
The old folder stays as it is: remove it when nothing reads it any more.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the pool and the documents."""
    parser.epilog = EXAMPLE
    parser.add_argument("pool", type=place, metavar="POOL", help="folder or URL of the pool")
    add_documents(parser)
    parser.add_argument("--reason", required=True, type=recordable, metavar="TEXT", help="for the card")
    parser.add_argument(
        "--renumber", action="store_true", help="leave nothing of them, not even their places: another pool"
    )
    parser.add_argument("--out", required=True, type=Path, metavar="NEW", help="folder of the new pool")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Write the pool without the documents."""
    with open_pool(args.pool, args.pool.name) as old:
        refuse_pairs(old, args.out)
        numbers = _numbers(old, args)
        if args.renumber:
            new = copy_without(old, numbers, args.out, reason=args.reason)
        else:
            new = erase_documents(old, numbers, args.out, reason=args.reason)
        is_same = new.fingerprint == old.fingerprint
    said = new.card.withdrawn or new.card.source[WITHDRAWN]
    plain = {"path": str(args.out), "fingerprint": new.fingerprint, "same_pool": is_same, "withdrawn": said}
    if args.json:
        print_json(plain)
        return 0
    print(f"{args.out}: withdrawn documents: {said['documents']:,}, of {said['tokens']:,} body tokens")
    if is_same:
        print(
            f"the same pool to runs (fingerprint {new.fingerprint[:16]}…); a run that reads it withdraws "
            "them, too: recipe withdraw RUN --erased"
        )
    else:
        print(f"another pool (fingerprint {new.fingerprint[:16]}…), for new runs")
    print(f"the text is still in {args.pool}: remove it when nothing reads it any more")
    return 0


def _numbers(pool: Pool, args: argparse.Namespace) -> NDArray[np.int64]:
    ids = named_documents(args)
    if not ids:
        raise RecipeError.single(
            "recipe pools withdraw", "--documents, --document", given="none of them",
            expected="documents (--document ID, --documents FILE)", fix="name the documents by their ids",
        )  # fmt: skip
    pools = {pool.name: pool}
    found, unknown = find_ids(pools, [ways_of(one) for one in dict.fromkeys(ids)])
    if unknown:
        raise unknown_ids(pools, unknown)
    return np.unique(np.array([one.number for one in found], np.int64))
