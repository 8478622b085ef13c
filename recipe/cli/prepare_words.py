"""Words and options of ``recipe prepare``, and what they ask for."""

from __future__ import annotations

import argparse
from pathlib import Path

from recipe.cli.options import add_json, number, whole
from recipe.errors import RecipeError
from recipe.pools.splits import Split, parse_split
from recipe.text.kinds import FORMATS
from recipe.text.preparation import ENGINES, PrepareOptions
from recipe.text.sources import ReadOptions

_positive = number(1, amounts=True)

REPEATED_TOKENS = 64
"""Tokens of a stretch, unless somebody says otherwise."""


def add_words(parser: argparse.ArgumentParser) -> None:
    """Declare the pool, its sources and all options."""
    parser.add_argument("out", type=Path, metavar="OUT", help="folder of the pool")
    parser.add_argument(
        "sources",
        nargs="+",
        metavar="SOURCE",
        help="JSON lines or text, plain, .gz or .zst; .parquet; .arrow; .tar, .tar.gz or .tar.zst as "
        "WebDataset writes them; a folder of these (hidden files are counted, not read), or one that "
        "'datasets' saved; or a URL, such as s3://bucket/folder",
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
    _add_grouping(parser)
    _add_work(parser)
    _add_pool(parser)
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
    reading.add_argument(
        "--include",
        action="append",
        default=[],
        metavar="GLOB",
        help="files of folders, by name or path; a file that is named must match, too; repeatable",
    )
    reading.add_argument(
        "--exclude", action="append", default=[], metavar="GLOB", help="likewise; repeatable"
    )
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
        help="longer lines, files, texts of rows and members are bad records (default: 256 MiB); so is text "
        "that the tokenizer can only encode whole, above N/16 (tiktoken), N/21 "
        "(SentencePiece) or N/85 (tokenizers), and tables with a page, or compressed batch, above 5/4 N. "
        "Memory stays below 1.5 GiB with two workers at the default; above it, at most about 5 more bytes "
        "for each",
    )


def _add_grouping(parser: argparse.ArgumentParser) -> None:
    grouping = parser.add_argument_group("groups, tags and sections")
    grouping.add_argument("--group-key", metavar="KEY", help="documents of one group stay together")
    grouping.add_argument(
        "--group-depth",
        type=_positive,
        metavar="N",
        help="a group for the files under the same first N folders",
    )
    grouping.add_argument(
        "--tag-key", action="append", default=[], metavar="KEY", help="kept with the document; repeatable"
    )
    grouping.add_argument(
        "--marker",
        metavar="TEXT",
        help="special tokens in front of each document of a group: '<|file_sep|>{path}'; also {id}, {group}",
    )
    grouping.add_argument(
        "--units-key",
        metavar="KEY",
        help="sections of the text: a list of {start, id, needs}, start in characters; for align: section",
    )
    grouping.add_argument(
        "--sections",
        choices=("markdown", "python"),
        help="find sections by headings, or by top-level definitions; for align: section",
    )


def _add_work(parser: argparse.ArgumentParser) -> None:
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


def _add_pool(parser: argparse.ArgumentParser) -> None:
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


def options_of(args: argparse.Namespace) -> PrepareOptions:
    """What they ask for.

    Raises:
        RecipeError: a split that is none, or a salt without one.
    """
    return PrepareOptions(
        seed=args.seed,
        workers=args.workers,
        engine=args.engine,
        ray_address=args.ray_address,
        part_tokens=args.part_tokens,
        overwrite=args.overwrite,
        extends=args.extends,
        repeats=args.repeats,
        duplicates=args.duplicates,
        split=_split_of(args),
        read=_reading_of(args),
    )


def _split_of(args: argparse.Namespace) -> Split | None:
    if args.split is not None:
        return parse_split(args.split, args.split_salt or 0)
    if args.split_salt is not None:
        given, fix = f"--split-salt {args.split_salt}", "add --split, or leave the salt out"
        raise RecipeError.single("prepare", "--split-salt", given=given, expected="a --split", fix=fix)
    return None


def _reading_of(args: argparse.Namespace) -> ReadOptions:
    return ReadOptions(
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
    )
