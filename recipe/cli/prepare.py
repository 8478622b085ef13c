"""``recipe prepare``: text → a pool."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.progress import Progress as Bars

from recipe.cli.options import add_json, number, whole
from recipe.cli.output import print_json, print_tables, progress, say
from recipe.pools.about import describe_pool, read_about
from recipe.pools.pool import Pool
from recipe.report.tables import table
from recipe.text.kinds import FORMATS
from recipe.text.preparation import ENGINES, PrepareOptions, Progress
from recipe.text.prepare import QUARANTINE_NAME, prepare_pool
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
  recipe prepare pools/big s3://corpora/big --engine ray --ray-address auto
  recipe prepare pools/news news.jsonl --about kind=licensed --about languages=en --about collected=2024

Interrupted, the same command goes on where it stopped. A pool made from the same is left as it is.
Every record read is a document, empty, or left out for a reason: the numbers printed add up.
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
    options = PrepareOptions(
        seed=args.seed,
        workers=args.workers,
        engine=args.engine,
        ray_address=args.ray_address,
        part_tokens=args.part_tokens,
        overwrite=args.overwrite,
        extends=args.extends,
        repeats=args.repeats,
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
        pool = prepare_pool(
            args.sources, args.out, tokenizer, options, progress=_Watcher(bars, quiet=args.json)
        )
    if about is not None:
        describe_pool(pool.path, about)
    with pool:
        if args.json:
            print_json(_summary(pool))
        else:
            print_tables([_table(pool)])
        if args.marker is not None and pool.leads is None:
            say(
                "warning: no marker was written: it stands in front of the documents of a group, and no "
                "document has one (--group-key, --group-depth)"
            )
    return 0


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
        self._bars.update(self._tasks[name], completed=event.done)


def _summary(pool: Pool) -> dict[str, Any]:
    card = pool.card
    return {
        "path": str(pool.path),
        "documents": card.num_documents,
        "units": card.num_units,
        "tokens": card.body_tokens,
        "special": card.special_tokens,
        "longest": card.max_document_tokens,
        "parts": pool.num_parts,
        **({} if pool.sections is None else {"sections": len(pool.sections)}),
        **({} if pool.repeats is None else {"repeated": _repeated(pool)}),
        "tokenizer": {
            "name": card.tokenizer_name,
            "fingerprint": card.tokenizer,
            "vocab_size": card.vocab_size,
        },
        "read": card.source["read"],
        "left_out": dict(card.dropped),
        "fingerprint": pool.fingerprint,
    }


def _repeated(pool: Pool) -> int:
    spans = pool.repeats
    assert spans is not None
    return int((spans[:, 1] - spans[:, 0]).sum())


def _table(pool: Pool) -> Group:
    card, read = pool.card, pool.card.source["read"]
    rows = [("records read", read["read"]), ("documents", card.num_documents)]
    if card.num_units != card.num_documents:
        rows.append(("units (groups stay together)", card.num_units))
    rows.append(("tokens", card.body_tokens))
    if pool.sections is not None:
        rows.append(("sections that begin inside documents", len(pool.sections)))
    if pool.needs is not None:
        rows.append(("needs of sections", len(pool.needs)))
    if pool.repeats is not None:
        rows.append(("tokens that repeat others of their document or group", _repeated(pool)))
    rows.append(("end marks" if pool.leads is None else "marks and markers", card.special_tokens))
    rows.append(("longest document", card.max_document_tokens))
    if read["repaired"]:
        rows.append(("kept with U+FFFD", read["repaired"]))
    rows += [(f"left out: {reason.replace('_', ' ')}", count) for reason, count in card.dropped.items()]
    caption = f"records left out are in {pool.path / QUARANTINE_NAME}" if read["quarantined"] else ""
    counts = [(what, f"{count:,}") for what, count in rows]
    return table(f"pool {pool.path}", ("what", "how many"), counts, caption=caption)
