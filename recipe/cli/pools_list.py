"""``recipe pools list``: the pools below folders, or of a recipe."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from recipe.cli.found import refuse_missing, refuse_nothing
from recipe.cli.options import add_json, add_recipe_words, is_override, split_words
from recipe.cli.output import print_json, print_tables, say
from recipe.config import Recipe, load_recipe
from recipe.errors import RecipeError
from recipe.mixing.opening import open_named
from recipe.pools.foreign.exported import exported_form
from recipe.pools.foreign.finding import find_foreign
from recipe.pools.foreign.form import NOTHING_SAID
from recipe.pools.listing import Listed, list_folder, listed, wrong
from recipe.report.pools import list_tables

EXAMPLE = """\
Examples:
  recipe pools list pools
  recipe pools list pools/web pools/held --json
  recipe pools list demo
  recipe pools list my.yaml pools_root=/data/pools

Of a recipe's pools with a stock stated beside their path, the stock is a target: target, measured and gap are
shown. Unfinished and damaged folders are listed with what is wrong; the exit code is 1 then. Of token files
made elsewhere, folders list Megatron pairs; the other kinds are listed where a recipe names them.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the folders, or the recipe."""
    parser.epilog = EXAMPLE
    add_recipe_words(parser, also="; or folders that hold pools")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """List them; 1 where one is not whole."""
    folders = [Path(word) for word in args.words if Path(word).is_dir() and not is_override(word)]
    if folders and len(folders) < len(args.words):
        other = next(word for word in args.words if not Path(word).is_dir())
        raise RecipeError.single(
            "pools list", other, given=f"{other} beside {folders[0]}",
            expected="folders that are there, or one recipe with its overrides",
            fix="list them apart, or correct the path",
        )  # fmt: skip
    pools = _below(folders) if folders else _of_recipe(args)
    title = f"pools below {', '.join(map(str, folders))}" if folders else "pools of the recipe"
    others = _token_files(folders) if not pools else []
    if args.json:
        print_json(pools)
    elif pools:
        print_tables(list_tables(pools, title))
    elif not others:
        print(f"no {title}")
    for folder, kind in others:
        say(
            f"{folder} holds {kind} made elsewhere, which are no pools of our own: "
            f"recipe pools show {folder} --eos ID shows them as a recipe reads them"
        )
    return 1 if any(pool["problem"] for pool in pools) else 0


def _token_files(folders: list[Path]) -> list[tuple[Path, str]]:
    """Folders that hold token files of others, and of which kind; what cannot be told is for `pools show`."""
    found = []
    for folder in folders:
        try:
            kinds = [one.kind for one in find_foreign(folder, exported_form(folder, NOTHING_SAID))]
        except RecipeError:
            kinds = ["token files"]
        found += [(folder, kinds[0])] if kinds else []
    return found


def _below(folders: list[Path]) -> list[dict[str, Any]]:
    """Every pool once, called by its path from the folder it is in."""
    found: dict[str, dict[str, Any]] = {}
    for root in folders:
        for one in list_folder(root):
            inner = Path(one.path).relative_to(root).as_posix()
            name = one.name if inner == "." else inner
            found.setdefault(str(Path(one.path).absolute()), {**one.to_plain(), "name": name})
    return list(found.values())


def _of_recipe(args: argparse.Namespace) -> list[dict[str, Any]]:
    source, overrides = split_words(args.words)
    refuse_nothing(source, args.config_dir, verb="pools list", what="a folder that holds pools")
    recipe = load_recipe(source, overrides, config_dir=args.config_dir)
    refuse_missing(recipe, source)
    return [_with_target(recipe, _named(recipe, name)) for name in recipe.pools]


def _named(recipe: Recipe, name: str) -> Listed:
    if recipe.folder(name) is None:
        return Listed(name=name, path="", own=False)
    path = recipe.pool_path(name)
    try:
        with open_named(recipe, name, path) as pool:
            return listed(pool)
    except RecipeError as error:
        return wrong(path, name, error)


def _with_target(recipe: Recipe, one: Listed) -> dict[str, Any]:
    """A recipe's pool beside the stock that it is to have."""
    target = recipe.pools[one.name].stock
    gap = None if target is None or one.tokens is None else one.tokens - target
    return {**one.to_plain(), "target": target, "gap": gap}
