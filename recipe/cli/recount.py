"""``recipe pools recount``: tokens of a pool's text under another tokenizer."""

from __future__ import annotations

import argparse

from recipe.cli.options import add_json, number, whole
from recipe.cli.output import print_json, print_tables
from recipe.config.places import place
from recipe.pools.opening import open_pool
from recipe.report.tokenizers import recount_table
from recipe.text.pool_texts import maker_of
from recipe.text.recount import DRAWS, Sampling, recount
from recipe.text.tokenizers import Tokenizer, load_tokenizer

EXAMPLE = """\
Examples:
  recipe pools recount pools/web --under tokenizers/qwen3
  recipe pools recount pools/web --under tokenizers/qwen3 --exact --json
  recipe pools recount pools/zh --tokenizer tokenizers/ours --under ranks/o200k_base.tiktoken

Documents are drawn as often as they have tokens; the interval holds the true count in 95 of 100 samples. The
text is what the pool's own tokens spell. The pool stays as it is: prepare it again to train with another one.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the pool and the tokenizer."""
    parser.epilog = EXAMPLE
    parser.add_argument("pool", type=place, metavar="POOL", help="folder or URL of the pool")
    parser.add_argument(
        "--under", required=True, metavar="bytes|PATH", help="the one to count with; as for prepare"
    )
    parser.add_argument("--eos", metavar="TOKEN", help="end of a document under it, where that is not clear")
    add_sampling(parser)
    add_json(parser)


def add_sampling(parser: argparse.ArgumentParser) -> None:
    """Declare who made the pools and how much of them is looked at."""
    parser.add_argument(
        "--tokenizer", metavar="bytes|PATH", help="the one that made the pools (default: bytes)"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--exact", action="store_true", help="count every document of a pool")
    how.add_argument(
        "--sample",
        type=number(3, amounts=True),
        default=DRAWS,
        metavar="N",
        help=f"draws from a pool (default: {DRAWS:,}); one with no more documents is counted whole",
    )
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="of the draws")


def sampling_of(args: argparse.Namespace) -> Sampling:
    """What the options say."""
    return Sampling(draws=None if args.exact else args.sample, seed=args.seed)


def loaded(spec: str, eos: str | None) -> Tokenizer:
    """A tokenizer by its word or path."""
    return load_tokenizer(spec, eos=None if spec == "bytes" else eos)


def execute(args: argparse.Namespace) -> int:
    """Count and show."""
    tokenizer = loaded(args.under, args.eos)
    with open_pool(args.pool, args.pool.name) as pool:
        made_by = maker_of(pool, args.tokenizer)
        counted = recount(pool, made_by, [tokenizer], sampling_of(args)).to_plain()
    if args.json:
        one = {"name": tokenizer.name, "fingerprint": tokenizer.fingerprint(), **counted.pop("recounts")[0]}
        print_json({**counted, "recount": one})
    else:
        print_tables([recount_table(counted, tokenizer.name, made_by.name)])
    return 0
