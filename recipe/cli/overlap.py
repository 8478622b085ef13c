"""``recipe pools overlap``: what pools share, in documents and tokens."""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import RenderableType

from recipe.cli.file_words import add_file_words, file_words
from recipe.cli.options import add_json
from recipe.cli.output import print_json, print_tables
from recipe.config.places import is_stored, place
from recipe.errors import RecipeError
from recipe.pools.card import CARD_NAME
from recipe.pools.foreign.form import Form
from recipe.pools.opening import open_pool
from recipe.pools.overlap import Overlap, find_overlap
from recipe.report.tables import table

EXAMPLE = """\
Examples:
  recipe pools overlap pools/web pools/code pools/wiki
  recipe pools overlap pools/web pools/wiki --json

Row by column: tokens (documents) of the row's pool whose text the column's pool holds too. On the diagonal:
what stands in the pool a second time. Texts are equal if their tokens are; token files that somebody else
made are hashed as they are. It counts, and passes no judgement: pools that do not say their tokenizer are
named, and the exit code is 0.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the pools."""
    parser.epilog = EXAMPLE
    parser.add_argument(
        "pools", nargs="+", type=place, metavar="POOL", help="folders or URLs of pools, or token files"
    )
    add_file_words(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Count and show."""
    names = _names(args.pools)
    said = file_words(args)
    marks = {key: said.pop(key, None) for key in ("eos", "bos")}
    opened = []
    for path, name in zip(args.pools, names, strict=True):
        own = is_stored(path) or (path / CARD_NAME).is_file()
        opened.append(open_pool(path, name) if own else open_pool(path, name, **marks, form=Form(**said)))
    found = find_overlap(opened)
    if args.json:
        print_json(found.to_plain())
    else:
        print_tables([_table(found)])
        for sentence in found.unchecked:
            print(sentence)
    return 0


def _names(paths: list[Path]) -> list[str]:
    """The last components of the paths, or all of a path where two end alike."""
    short = [path.resolve().name for path in paths]
    names = [str(path) if short.count(name) > 1 else name for path, name in zip(paths, short, strict=True)]
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        fix = "name each pool once: what is in it twice is on the diagonal"
        raise RecipeError.single("overlap", twice[0], given="a pool twice", expected="each once", fix=fix)
    return names


def _table(found: Overlap) -> RenderableType:
    rows = []
    for index, name in enumerate(found.pools):
        total = found.total_tokens[index]
        cells = [
            f"{tokens:,} ({documents:,})"
            for tokens, documents in zip(
                found.tokens[index].tolist(), found.documents[index].tolist(), strict=True
            )
        ]
        rows.append((name, f"{total:,} ({found.total_documents[index]:,})", *cells))
    heads = ("of", "all", *(f"also in {name}" for name in found.pools))
    caption = "tokens (documents); on the diagonal: what is there a second time"
    return table("overlap", heads, rows, caption=caption)
