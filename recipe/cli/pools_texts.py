"""``recipe pools texts``: the documents of a pool as JSON lines, for tools that read text."""

from __future__ import annotations

import argparse
from pathlib import Path

from recipe.cli.options import add_json, number
from recipe.cli.output import print_json, progress, say
from recipe.config.places import place
from recipe.errors import counted
from recipe.pools.opening import open_pool
from recipe.text.handing import FILE_DOCUMENTS, write_texts
from recipe.text.pool_texts import maker_of

EXAMPLE = """\
Examples:
  recipe pools texts pools/web --out texts/web
  recipe pools texts pools/zh --out texts/zh --tokenizer tokenizers/ours --file-documents 10000

Lines of {id, text, metadata}: datatrove's JsonlReader reads them as they are. What it keeps goes back by
`recipe pools dedup --keep-ids`, or is prepared anew with --tag-key metadata. Interrupted, the same command
goes on behind the last file that was whole.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the pool and the folder."""
    parser.epilog = EXAMPLE
    parser.add_argument("pool", type=place, metavar="POOL", help="folder or URL of the pool")
    parser.add_argument(
        "--out", required=True, type=Path, metavar="DIR", help="folder of the files; it is new"
    )
    parser.add_argument(
        "--tokenizer", metavar="bytes|PATH", help="the one that made the pool (default: bytes)"
    )
    parser.add_argument(
        "--file-documents",
        type=number(1, amounts=True),
        default=FILE_DOCUMENTS,
        metavar="N",
        help=f"documents of a file (default: {FILE_DOCUMENTS:,})",
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Write the files and say where they are."""
    with open_pool(args.pool, args.pool.name) as pool, progress(quiet=args.json) as bars:
        tokenizer = maker_of(pool, args.tokenizer)
        task = bars.add_task("write", total=pool.num_documents, note="documents")
        paths = write_texts(
            pool,
            tokenizer,
            args.out,
            file_documents=args.file_documents,
            tell=lambda done: bars.update(task, completed=done),
        )
        count = pool.num_documents - len(pool.erased)
    if args.json:
        print_json({"out": str(args.out), "documents": count, "files": [str(path) for path in paths]})
    else:
        say(f"{counted(count, 'document')} in {counted(len(paths), 'file')} of {args.out}")
    return 0
