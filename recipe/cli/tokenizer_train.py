"""``recipe tokenizer train``: text → a tokenizer."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from rich.console import Group

from recipe.cli.options import add_json, number, whole
from recipe.cli.output import print_json, print_tables
from recipe.errors import RecipeError
from recipe.maths.shares import parse_percent
from recipe.pools.opening import open_pool
from recipe.report.tables import table
from recipe.text.pool_texts import maker_of, text_of
from recipe.text.readers import read_documents
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers.splitting import SPLITS
from recipe.text.training import TrainOptions, train_tokenizer

EXAMPLE = """\
Examples:
  recipe tokenizer train tokenizers/ours texts/ --vocab-size 32000
  recipe tokenizer train tokenizers/ours --pool pools/web --pool pools/zh --sample 10% --vocab-size 64000
  recipe tokenizer train tokenizers/ours zh.jsonl.gz --text-key content --split cl100k --nfc --vocab-size 9000

The same texts, in any order and on any number of cores, give the same file. The folder has tokenizer.json,
tokenizer_config.json (for AutoTokenizer) and training.json, the record of what it was made from.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where it goes, the text, and what decides the tokenizer."""
    parser.epilog = EXAMPLE
    parser.add_argument("out", type=Path, metavar="OUT", help="a new folder")
    parser.add_argument(
        "sources", nargs="*", metavar="SOURCE", help="JSON lines or text, or a folder of them"
    )
    parser.add_argument(
        "--pool", type=Path, action="append", default=[], metavar="POOL", help="text of a pool; repeatable"
    )
    parser.add_argument(
        "--tokenizer", metavar="bytes|PATH", help="the one that made the pools (default: bytes)"
    )
    parser.add_argument("--text-key", default="text", metavar="KEY", help="of the records")
    parser.add_argument("--include", action="append", default=[], metavar="GLOB", help="repeatable")
    parser.add_argument("--exclude", action="append", default=[], metavar="GLOB", help="repeatable")
    parser.add_argument(
        "--on-bad", choices=("error", "skip", "replace"), default="error", help="as for prepare"
    )
    parser.add_argument(
        "--vocab-size",
        type=number(amounts=True),
        required=True,
        metavar="N",
        help="rows: bytes, merges and marks together",
    )
    parser.add_argument(
        "--split",
        choices=tuple(SPLITS),
        default="qwen",
        help="how texts are split: digits together (gpt2), by three (cl100k, o200k), alone (qwen; default)",
    )
    parser.add_argument("--nfc", action="store_true", help="compose texts first (Unicode NFC)")
    parser.add_argument("--eos", default="<|endoftext|>", metavar="TOKEN", help="end of a document")
    parser.add_argument(
        "--mark", action="append", default=[], metavar="TOKEN", help="another mark; repeatable"
    )
    parser.add_argument(
        "--sample", type=_share, default=Fraction(1), metavar="SHARE", help="of the texts: 10%%"
    )
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="of the sample")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Train and say what came of it."""
    if not args.sources and not args.pool:
        raise RecipeError.single(
            "recipe tokenizer train", "SOURCE", given="no text", expected="sources, or --pool",
            fix=f"recipe tokenizer train {args.out} texts/ --vocab-size {args.vocab_size}",
        )  # fmt: skip
    options = TrainOptions(
        vocab_size=args.vocab_size,
        split=args.split,
        nfc=args.nfc,
        eos=args.eos,
        marks=tuple(args.mark),
        sample=args.sample,
        seed=args.seed,
    )
    made_from: dict[str, Any] = {"sources": list(args.sources), "pools": []}
    record = train_tokenizer(_texts(args, made_from), args.out, options, made_from=made_from)
    if args.json:
        print_json({"path": str(args.out), **record})
    else:
        print_tables([_table(args.out, record)])
    return 0


def _texts(args: argparse.Namespace, made_from: dict[str, Any]) -> Iterator[str]:
    """Texts of all sources and pools; pools are put on record as they are opened."""
    if args.sources:
        read = ReadOptions(
            text_key=args.text_key,
            include=tuple(args.include),
            exclude=tuple(args.exclude),
            on_bad=args.on_bad,
        )
        for document in read_documents(args.sources, read):
            yield document.text
    for path in args.pool:
        with open_pool(path, path.name) as pool:
            tokenizer = maker_of(pool, args.tokenizer)
            made_from["pools"].append(
                {"path": str(path), "fingerprint": pool.fingerprint, "tokenizer": tokenizer.fingerprint()}
            )
            for number in range(pool.num_documents):
                yield text_of(pool, tokenizer, number)


def _table(out: Path, record: dict[str, Any]) -> Group:
    rows = [
        ("rows of the input and output tables", f"{record['vocab_size']:,}"),
        ("end of a document", str(record["eos"])),
        ("documents", f"{record['texts']['documents']:,}"),
        ("bytes of text", f"{record['texts']['bytes']:,}"),
        ("fingerprint", record["fingerprint"]),
    ]
    return table(f"tokenizer {out}", ("what", "how many"), rows)


def _share(text: str) -> Fraction:
    try:
        share = parse_percent(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"expected a share such as 10%, given {text!r}")
    return share
