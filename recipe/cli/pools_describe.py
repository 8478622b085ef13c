"""``recipe pools describe``: what a pool's card says of where its text comes from."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from recipe.cli.options import add_json, add_yes, here
from recipe.cli.output import confirm, no_write, print_json, print_tables
from recipe.pools.about import card_at, describe_pool, read_about
from recipe.report.pools import about_table
from recipe.report.tables import table

EXAMPLE = """\
Examples:
  recipe pools describe pools/web kind=crawled collected=2023-01..2024-05 languages=en,zh-Hans
  recipe pools describe pools/web about.yaml licence=CC-BY-4.0 url=https://example.org/web
  recipe pools describe pools/lessons kind=synthetic generator='our-teacher-7b'
  recipe pools describe pools/web contact=null
  recipe pools describe pools/web

Keys: kind (public, licensed, crawled, user, synthetic), licence, languages, collected (from, to), generator,
crawler, provider, description, url, contact; null takes one out. The fingerprint stays: what a pool is does
not depend on what is said of it, and runs that read it go on. `recipe report RUN --datasheet` adds it up.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the pool and what is said of it."""
    parser.epilog = EXAMPLE
    parser.add_argument("pool", type=here, metavar="POOL", help="folder of the pool")
    parser.add_argument(
        "words",
        nargs="*",
        metavar="KEY=VALUE|FILE",
        help="what is said: a key, or a YAML file of keys; later ones go over earlier ones; none: show it",
    )
    add_yes(
        parser,
        "change or take out what was said without asking; where nobody can answer, what was said stays and "
        "the exit code is 1; what nobody said yet is written without a question",
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Say it, or show what is said; asks before what was said is changed or taken out."""
    before = dict(card_at(args.pool).about or {})
    about = read_about(args.words, f"pools describe {args.pool}", before)
    lost = {key: value for key, value in before.items() if about.get(key) != value}
    if lost and not args.json:
        print_tables([_changes(lost, about)])
    if lost and not confirm(f"change what the card of {args.pool} says?", yes=args.yes):
        return no_write(dry_run=False)
    if args.words:
        describe_pool(args.pool, about)
    if args.json:
        print_json({"path": str(args.pool), "about": about, "before": before})
    else:
        print_tables([about_table(str(args.pool), about)])
    return 0


def _changes(lost: Mapping[str, Any], about: Mapping[str, Any]) -> Any:
    rows = [(key, str(value), str(about.get(key, "taken out"))) for key, value in lost.items()]
    return table("what was said", ("key", "so far", "from now on"), rows)
