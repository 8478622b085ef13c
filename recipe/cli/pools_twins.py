"""``recipe pools twins``: whether two pools hold the same documents, tokenised otherwise."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from recipe.cli.options import add_json
from recipe.cli.output import print_json, print_tables
from recipe.config.places import place
from recipe.pools.opening import open_pool
from recipe.pools.twins import compare_twins
from recipe.report.tables import table

EXAMPLE = """\
Examples:
  recipe pools twins pools/web pools/web-qwen3
  recipe pools twins pools/web pools/web-qwen3 --json

Twins hold documents of the same ids, in the same groups and order. Under one name and seed they are read
unit by unit in the same order wherever their extents agree. They never replace each other in a run: ids of
different tokenizers do not mix; branch with --data fresh, or start a run from the weights (start:).
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the two pools."""
    parser.epilog = EXAMPLE
    parser.add_argument("first", type=place, metavar="A", help="folder of a pool")
    parser.add_argument("second", type=place, metavar="B", help="folder of another one")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Compare; 1 where they are no twins."""
    paths = (args.first, args.second)
    with open_pool(paths[0], paths[0].name) as one, open_pool(paths[1], paths[1].name) as other:
        twins = compare_twins(one, other)
    plain = {"paths": [str(path) for path in paths], **twins.to_plain()}
    if args.json:
        print_json(plain)
    else:
        print("\n".join(_lines(plain)))
    if twins.are_twins and not args.json:
        rows = [
            (f"{one['least']:,}..{one['most']:,}", f"{one['documents']:,}", *_ratio(one["tokens"]))
            for one in plain["lengths"]
        ]
        rows.append(("all", f"{plain['documents'][0]:,}", *_ratio(plain["tokens"])))
        heads = (f"tokens in {paths[0]}", "documents", "tokens", f"tokens in {paths[1]}", "ratio")
        print_tables([table("tokens by document length", heads, rows)])
    return 0 if twins.are_twins else 1


def _ratio(tokens: list[int]) -> tuple[str, str, str]:
    return f"{tokens[0]:,}", f"{tokens[1]:,}", f"{tokens[1] / tokens[0]:.4f}" if tokens[0] else "—"


def _lines(plain: dict[str, Any]) -> Iterator[str]:
    if not plain["twins"]:
        yield f"no twins: {plain['different']:,} documents differ in id, group or place"
        for number, here, there in plain["differences"]:
            yield f"  document {number}: {_named(here)} in the first, {_named(there)} in the second"
        return
    yield "twins: the same documents, in the same groups and order"
    if plain["tokenizers"][0] == plain["tokenizers"][1]:
        yield "both were made with one tokenizer"
    if plain["same_order"]:
        yield "under one name and seed their units are read in the same order"
    else:
        yield (
            f"their extents have {plain['extent_units'][0]:,} and {plain['extent_units'][1]:,} units: under "
            "one name and seed their units are read in other orders"
        )


def _named(key: Any) -> str:
    if key is None:
        return "none"
    id, group = key
    return repr(id) if group is None else f"{id!r} of group {group!r}"
