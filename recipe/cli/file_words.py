"""Options that say of token files made elsewhere what they do not say themselves, as a recipe's pools do."""

from __future__ import annotations

import argparse
from pathlib import PurePosixPath
from typing import Any, get_args

from recipe.cli.options import whole
from recipe.config.files import READ_KEYS, Delimiter, TokenType
from recipe.pools.foreign.form import Form
from recipe.pools.opening import open_pool
from recipe.pools.pool import Pool


def add_file_words(parser: argparse.ArgumentParser, of: str = "a pool of token files made elsewhere") -> None:
    """Declare them."""
    files = parser.add_argument_group(of)
    files.add_argument("--eos", type=whole, metavar="ID", help="its end mark")
    files.add_argument("--bos", type=whole, metavar="ID", help="its begin mark")
    files.add_argument(
        "--dtype", choices=get_args(TokenType), help="type of tokens in files without a header"
    )
    files.add_argument("--column", metavar="NAME", help="column that holds the ids")
    files.add_argument("--documents", choices=get_args(Delimiter), help="what ends a document")
    files.add_argument(
        "--boundaries", metavar="ENDING", help="ending of files that say where documents end: .csv.gz"
    )


def open_worded(path: str, args: argparse.Namespace) -> Pool:
    """The pool at a path or URL, files made elsewhere read as the options say."""
    said = file_words(args)
    marks = {key: said.pop(key, None) for key in ("eos", "bos")}
    return open_pool(path, PurePosixPath(path).name or path, **marks, form=Form(**said))


def file_words(args: argparse.Namespace) -> dict[str, Any]:
    """What was said, by key of a pool."""
    return {key: getattr(args, key) for key in READ_KEYS if getattr(args, key) is not None}
