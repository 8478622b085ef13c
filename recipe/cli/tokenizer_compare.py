"""``recipe tokenizer compare``: tokenizers on the same text."""

from __future__ import annotations

import argparse
from pathlib import Path

from recipe.cli.options import add_json
from recipe.cli.output import print_json, print_tables
from recipe.cli.recount import add_sampling, loaded, sampling_of
from recipe.pools.opening import open_pool
from recipe.report.tokenizers import comparison_tables
from recipe.text.comparing import SAMPLES, Comparison
from recipe.text.pool_texts import maker_of
from recipe.text.readers import read_documents
from recipe.text.sources import ReadOptions

EXAMPLE = """\
Examples:
  recipe tokenizer compare tokenizers/gpt2 tokenizers/qwen3
  recipe tokenizer compare bytes ours/tokenizer.json ranks/o200k_base.tiktoken --text 'x = 2024'
  recipe tokenizer compare tokenizers/ours tokenizers/qwen3 --pool pools/web --pool pools/code --json

A token quota means nothing without its tokenizer. A pool's text is what its tokens spell; another tokenizer
counts that. After the choice, count each pool again: recipe pools recount POOL --under X.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the tokenizers and the text."""
    parser.epilog = EXAMPLE
    parser.add_argument("tokenizers", nargs="+", metavar="bytes|PATH", help="at least one; as for prepare")
    parser.add_argument(
        "--eos",
        metavar="TOKEN",
        help="end of a document, where a tokenizer's own is not clear; of all of them",
    )
    parser.add_argument(
        "--text", action="append", default=[], metavar="TEXT", help="also compare this; repeatable"
    )
    parser.add_argument(
        "--file",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="JSON lines or text; repeatable",
    )
    parser.add_argument("--text-key", default="text", metavar="KEY", help="of the records of --file")
    parser.add_argument("--pool", type=Path, action="append", default=[], metavar="POOL", help="repeatable")
    add_sampling(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Compare and show."""
    comparison = Comparison([loaded(spec, args.eos) for spec in args.tokenizers])
    for text in (*SAMPLES, *args.text):
        comparison.add_text(text)
    for path in args.file:
        documents = read_documents([path], ReadOptions(text_key=args.text_key))
        comparison.add_file(str(path), (document.text for document in documents))
    for path in args.pool:
        with open_pool(path, path.name) as pool:
            comparison.add_pool(pool, maker_of(pool, args.tokenizer), sampling_of(args))
    plain = comparison.to_plain()
    if args.json:
        print_json(plain)
    else:
        print_tables(comparison_tables(plain))
    return 0
