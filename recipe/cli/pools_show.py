"""``recipe pools show``: what is in one pool."""

from __future__ import annotations

import argparse
from typing import Any

from recipe.cli.file_words import add_file_words, open_worded
from recipe.cli.options import add_json, number, whole
from recipe.cli.output import print_json, print_tables, say
from recipe.errors import RecipeError
from recipe.pools.pool import Pool
from recipe.pools.sheet import LARGEST, VALUES, sheet_of
from recipe.report.pool_sheet import sheet_tables
from recipe.text.pool_samples import SHOWN_TOKENS, samples_of
from recipe.text.pool_texts import maker_of
from recipe.text.tokenizers import Tokenizer

SAMPLES = 3
EXAMPLE = """\
Examples:
  recipe pools show pools/web
  recipe pools show pools/web --samples 10 --seed 7 --tokens 500 --tokenizer tokenizers/ours
  recipe pools show megatron/part_00 --eos 0 --samples 0 --json

Tags are counted exactly, in memory that does not grow with the pool. Of samples, characters that move a
cursor, hide or reorder text are named, like ⟨U+001B⟩; what cannot be decoded is shown as ids.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the pool and how much of it is shown."""
    parser.epilog = EXAMPLE
    parser.add_argument("pool", metavar="POOL", help="folder or URL of the pool, or what a recipe names")
    parser.add_argument(
        "--samples", type=whole, default=SAMPLES, metavar="N", help=f"documents drawn (default: {SAMPLES})"
    )
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="of the draws")
    parser.add_argument(
        "--tokens",
        type=number(1),
        default=SHOWN_TOKENS,
        metavar="N",
        help=f"tokens shown of a sample (default: {SHOWN_TOKENS})",
    )
    parser.add_argument(
        "--tokenizer", metavar="bytes|PATH", help="the pool's; default: bytes, where it is the pool's"
    )
    parser.add_argument(
        "--values", type=number(1), default=VALUES, metavar="N", help=f"values of a tag (default: {VALUES})"
    )
    parser.add_argument(
        "--largest", type=whole, default=LARGEST, metavar="N", help=f"largest ones (default: {LARGEST})"
    )
    add_file_words(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Show it."""
    with open_worded(args.pool, args) as pool:
        sheet = sheet_of(pool, largest=args.largest, values=args.values)
        tokenizer = _tokenizer(pool, args.tokenizer)
        sheet["samples"] = samples_of(pool, args.samples, args.seed, tokenizer, args.tokens)
    if args.json:
        print_json(sheet)
    else:
        print_tables(sheet_tables(sheet))
        if tokenizer is None and args.samples:
            say(f"ids instead of text: name the pool's tokenizer with --tokenizer ({_name(sheet)})")
    return 0


def _tokenizer(pool: Pool, spec: str | None) -> Tokenizer | None:
    """The pool's tokenizer; None where nobody named it and it is none that needs no file."""
    try:
        return maker_of(pool, spec, "--tokenizer")
    except RecipeError:
        if spec is not None:
            raise
        return None


def _name(sheet: dict[str, Any]) -> str:
    return sheet["tokenizer"] or "its card does not say which"
