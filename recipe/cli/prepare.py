"""``recipe prepare``: text → a pool."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.progress import Progress as Bars

from recipe.cli.options import add_json, number, whole
from recipe.cli.output import print_json, print_tables, progress, say
from recipe.cli.prepared import pool_table, splits_table, summary
from recipe.errors import RecipeError
from recipe.pools.about import describe_pool, read_about
from recipe.pools.card import CARD_NAME, read_card
from recipe.pools.pool import Pool
from recipe.pools.splits import parse_split
from recipe.text.kinds import FORMATS
from recipe.text.preparation import ENGINES, PrepareOptions, Progress
from recipe.text.prepare import prepare_pool, prepare_splits
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import load_tokenizer

_positive = number(1, grouped=True)

REPEATED_TOKENS = 64
"""Tokens of a stretch, unless somebody says otherwise."""

EXAMPLE = """\
Examples:
  recipe prepare pools/web texts/web.jsonl.zst texts/more/
  recipe prepare pools/code src/ --include '*.py' --group-depth 1 --tokenizer tokenizers/ours
  recipe prepare pools/zh zh.jsonl.gz --text-key content --id-key doc_id --on-bad skip
  recipe prepare pools/books books/ --include '*.md' --sections markdown
  recipe prepare pools/mail mail.jsonl --group-key thread --repeats 64
  recipe prepare pools/wiki s3://corpora/wiki --include '*.parquet' --text-key page.body --tag-key lang
  recipe prepare pools/saved datasets/saved/train
  recipe prepare pools/notes notes.tar.zst --text-member md
  recipe prepare pools/web-2 texts/new.jsonl.zst --extends pools/web
  recipe prepare pools/web texts/ --duplicates drop --split train=97%,validation=2%,test=1%
  recipe prepare pools/big s3://corpora/big --engine ray --ray-address auto
  recipe prepare pools/news news.jsonl --about kind=licensed --about languages=en --about collected=2024

Interrupted, the same command goes on where it stopped. A pool made from the same is left as it is.
Every record read is a document, a duplicate, empty, or left out for a reason: the numbers printed add up.
Stores are opened by fsspec, with its own settings and variables of the environment (AWS_ENDPOINT_URL, …);
for s3:// install token-recipe[s3].
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the words and options."""
    parser.epilog = EXAMPLE
    parser.add_argument("out", type=Path, metavar="OUT", help="folder of the pool")
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="JSON lines or text, plain, .gz or .zst; .parquet; .arrow; .tar, .tar.gz or .tar.zst as "
        "WebDataset writes them; a folder of these, or one that 'datasets' saved; or a URL, such as s3://bucket/folder",
    )
    parser.add_argument(
        "--tokenizer",
        default="bytes",
        metavar="bytes|PATH",
        help="'bytes' (built in); or a tokenizer.json, tiktoken ranks, a SentencePiece model, a folder that "
        "holds one of them. Special tokens written in a text are text; with #specials behind the path, ids",
    )
    parser.add_argument("--eos", metavar="TOKEN", help="token stored after each document")
    _add_reading(parser)
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="of the document shuffle")
    parser.add_argument(
        "--workers",
        type=_positive,
        metavar="N",
        help="processes (default: one a core, or a CPU of a Ray cluster that runs already)",
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default="local",
        help="where they are: on this machine (default), or on a Ray cluster; changes no byte",
    )
    parser.add_argument(
        "--ray-address",
        metavar="ADDRESS",
        help="of a cluster that runs: auto, HOST:PORT or ray://HOST:PORT (default: RAY_ADDRESS; without "
        "it, or with local, one is started here and ended)",
    )
    parser.add_argument("--part-tokens", type=_positive, metavar="N", help="stored tokens of a file at most")
    parser.add_argument("--overwrite", action="store_true", help="replace a pool made from something else")
    parser.add_argument(
        "--extends", type=Path, metavar="POOL", help="append to this pool's documents; its files are linked"
    )
    parser.add_argument(
        "--repeats",
        type=_positive,
        nargs="?",
        const=REPEATED_TOKENS,
        metavar="N",
        help="find what repeats inside documents and groups, in stretches of at least N tokens (default: "
        f"{REPEATED_TOKENS}); for slicing: {{duplicates: drop}}",
    )
    parser.add_argument(
        "--duplicates",
        choices=("keep", "drop"),
        default="keep",
        help="drop: of documents with equal tokens one stays, with the tags of all; counted as duplicate",
    )
    parser.add_argument(
        "--split",
        metavar="NAME=SHARE,…",
        help="pools OUT/NAME in one reading, such as train=97%%,validation=2%%,test=1%%, or a=2/3,b=1/3: "
        "exact, by group or else by content, so that no text is in two; with --extends, of a folder like it",
    )
    parser.add_argument(
        "--split-salt", type=whole, metavar="N", help="another one splits otherwise (default: 0)"
    )
    parser.add_argument(
        "--about",
        action="append",
        default=[],
        metavar="KEY=VALUE|FILE",
        help="said of the texts in the pool's card: kind=crawled, licence=MIT, languages=en,zh …, or a YAML "
        "file; repeatable; see recipe pools describe",
    )
    add_json(parser)


def _add_reading(parser: argparse.ArgumentParser) -> None:
    reading = parser.add_argument_group("reading")
    reading.add_argument("--format", choices=FORMATS, default="auto", help="default: by the file's suffix")
    reading.add_argument(
        "--text-key", default="text", metavar="KEY", help="key or column of the text; 'a.b' is b inside a"
    )
    reading.add_argument(
        "--text-member",
        metavar="SUFFIX",
        help="of a tar: the member that is a record's text, such as md; or json, whose --text-key is it "
        "(default: txt where there is one, else json; the other keys are always those of json)",
    )
    reading.add_argument(
        "--id-key", metavar="KEY", help="default: 'id', or else file and line (row, member), from 1"
    )
    reading.add_argument(
        "--place-ids",
        action="store_true",
        help="ids are file and line (row, member), whatever the records say",
    )
    reading.add_argument("--group-key", metavar="KEY", help="documents of one group stay together")
    reading.add_argument(
        "--group-depth",
        type=_positive,
        metavar="N",
        help="a group for the files under the same first N folders",
    )
    reading.add_argument(
        "--tag-key", action="append", default=[], metavar="KEY", help="kept with the document; repeatable"
    )
    reading.add_argument(
        "--marker",
        metavar="TEXT",
        help="special tokens in front of each document of a group: '<|file_sep|>{path}'; also {id}, {group}",
    )
    reading.add_argument(
        "--units-key",
        metavar="KEY",
        help="sections of the text: a list of {start, id, needs}, start in characters; for align: section",
    )
    reading.add_argument(
        "--sections",
        choices=("markdown", "python"),
        help="find sections by headings, or by top-level definitions; for align: section",
    )
    reading.add_argument("--include", action="append", default=[], metavar="GLOB", help="repeatable")
    reading.add_argument("--exclude", action="append", default=[], metavar="GLOB", help="repeatable")
    reading.add_argument(
        "--on-bad",
        choices=("error", "skip", "replace"),
        default="error",
        help="stop (default); leave out and count, with place and reason in the pool's quarantine.jsonl; or "
        "put U+FFFD for what is no character, and leave out what that does not repair",
    )
    reading.add_argument(
        "--max-line-bytes",
        type=_positive,
        default=256 << 20,
        metavar="N",
        help="longer lines, files, texts of rows and members are bad records (default: 256 MiB); a text "
        "takes about 4 times its size of memory, about 100 times with a tokenizer.json of unusual rules",
    )


def execute(args: argparse.Namespace) -> int:
    """Prepare one pool and say what is in it."""
    about = read_about(args.about, f"prepare {args.out} --about") if args.about else None
    tokenizer = load_tokenizer(args.tokenizer, eos=args.eos)
    split = None if args.split is None else parse_split(args.split, args.split_salt or 0)
    if split is None and args.split_salt is not None:
        given, fix = f"--split-salt {args.split_salt}", "add --split, or leave the salt out"
        raise RecipeError.single("prepare", "--split-salt", given=given, expected="a --split", fix=fix)
    options = PrepareOptions(
        seed=args.seed,
        workers=args.workers,
        engine=args.engine,
        ray_address=args.ray_address,
        part_tokens=args.part_tokens,
        overwrite=args.overwrite,
        extends=args.extends,
        repeats=args.repeats,
        duplicates=args.duplicates,
        split=split,
        read=ReadOptions(
            format=args.format,
            text_key=args.text_key,
            text_member=args.text_member,
            id_key=args.id_key,
            place_ids=args.place_ids,
            group_key=args.group_key,
            group_depth=args.group_depth,
            tag_keys=tuple(args.tag_key),
            units_key=args.units_key,
            marker=args.marker,
            sections=args.sections,
            include=tuple(args.include),
            exclude=tuple(args.exclude),
            on_bad=args.on_bad,
            max_line_bytes=args.max_line_bytes,
        ),
    )
    with progress(quiet=args.json) as bars:
        watcher = _Watcher(bars, quiet=args.json)
        if split is None:
            pools = {"": prepare_pool(args.sources, args.out, tokenizer, options, progress=watcher)}
        else:
            pools = prepare_splits(args.sources, args.out, tokenizer, options, progress=watcher)
    if about is not None:
        for pool in pools.values():
            describe_pool(pool.path, about)
    elif args.extends is not None:
        _say_undescribed(args.extends, pools.values())
    if args.json:
        said = {name: summary(pool) for name, pool in pools.items()}
        print_json(said[""] if split is None else {"path": str(args.out), "splits": said})
    else:
        whole = [] if split is None else [splits_table(args.out, pools)]
        print_tables([*whole, *map(pool_table, pools.values())])
    if args.marker is not None and all(pool.leads is None for pool in pools.values()):
        say(
            "warning: no marker was written: it stands in front of the documents of a group, and no "
            "document has one (--group-key, --group-depth)"
        )
    for pool in pools.values():
        pool.close()
    return 0


def _say_undescribed(extends: Path, pools: Iterable[Pool]) -> None:
    """What was said of a pool is not said of one that holds other documents, too."""
    for pool in pools:
        old = extends / pool.path.name if (extends / pool.path.name).is_dir() else extends
        if pool.card.about is None and (old / CARD_NAME).is_file() and read_card(old).about:
            say(f"note: {old} says where its text is from; of {pool.path} nothing is said (--about)")


class _Watcher:
    """Draws what a preparation tells."""

    def __init__(self, bars: Bars, *, quiet: bool) -> None:
        self._bars, self._quiet = bars, quiet
        self._tasks: dict[str, Any] = {}

    def __call__(self, event: Progress) -> None:
        if event.phase == "note":
            say(event.text, quiet=self._quiet)
            return
        name, unit = ("tokenise", "bytes") if event.phase == "read" else ("write", "documents")
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=event.total, note=unit)
        self._bars.update(self._tasks[name], completed=event.done, total=event.total)
