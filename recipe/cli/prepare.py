"""``recipe prepare``: text → a pool."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rich.progress import Progress as Bars

from recipe.cli.output import print_json, print_tables, progress, say
from recipe.cli.prepare_words import add_words, options_of
from recipe.cli.prepared import has_any, pool_table, splits_table, summary
from recipe.pools.about import describe_pool, read_about
from recipe.pools.card import CARD_NAME, read_card
from recipe.pools.pool import Pool
from recipe.text.preparation import Progress
from recipe.text.prepare import prepare_pool, prepare_splits
from recipe.text.tokenizers import load_tokenizer

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
s3:// needs the extra 's3'.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the words and options."""
    parser.epilog = EXAMPLE
    add_words(parser)


def execute(args: argparse.Namespace) -> int:
    """Prepare one pool and say what is in it."""
    about = read_about(args.about, f"prepare {args.out} --about") if args.about else None
    tokenizer = load_tokenizer(args.tokenizer, eos=args.eos)
    options = options_of(args)
    with progress(quiet=args.json) as bars:
        watcher = _Watcher(bars, quiet=args.json)
        if options.split is None:
            pools = {"": prepare_pool(args.sources, args.out, tokenizer, options, progress=watcher)}
        else:
            pools = prepare_splits(args.sources, args.out, tokenizer, options, progress=watcher)
    if about is not None:
        for pool in pools.values():
            describe_pool(pool.path, about)
    elif args.extends is not None:
        _say_undescribed(args.extends, pools.values())
    _show(args, pools, watcher.hidden, is_split=options.split is not None)
    for pool in pools.values():
        pool.close()
    return 0


def _show(args: argparse.Namespace, pools: Mapping[str, Pool], hidden: int, *, is_split: bool) -> None:
    """What is in the pools; ``hidden``: files that were not read for their names."""
    if args.json:
        said = {name: summary(pool) for name, pool in pools.items()}
        whole = {"path": str(args.out), "splits": said} if is_split else said[""]
        print_json({**whole, "hidden_files": hidden})
    else:
        sides = [splits_table(args.out, pools)] if is_split else []
        print_tables([*sides, *map(pool_table, pools.values())])
    if args.marker is not None and all(pool.leads is None for pool in pools.values()):
        say(
            "warning: no marker was written: it stands in front of the documents of a group, and no "
            "document has one (--group-key, --group-depth)"
        )
    if args.group_key is not None and not has_any(pools.values(), "group_int", "group_str"):
        say(f"warning: no document has a group: no record has the key {args.group_key!r} (--group-key)")
    if args.tag_key and not has_any(pools.values(), "tags"):
        keys = ", ".join(map(repr, args.tag_key))
        say(f"warning: no document has a tag: no record has the key {keys} (--tag-key)")


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
        self.hidden = 0

    def __call__(self, event: Progress) -> None:
        if event.phase in ("note", "hidden"):
            self.hidden += event.done
            say(event.text, quiet=self._quiet)
            return
        name, unit = ("tokenise", "bytes") if event.phase == "read" else ("write", "documents")
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=event.total, note=unit)
        self._bars.update(self._tasks[name], completed=event.done, total=event.total)
