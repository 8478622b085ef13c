"""``recipe audit leakage``: whether training reads text of the pools that measure it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePath

import numpy as np
from numpy.typing import NDArray

from recipe.audit.leakage import NGRAM, Leakage, Search, find_leakage
from recipe.cli.file_words import add_file_words, file_words
from recipe.cli.found import refuse_missing
from recipe.cli.options import add_json, add_pools_root, add_recipe_words, run_alone, split_words, whole
from recipe.cli.output import print_json, print_tables, progress
from recipe.config import Recipe, load_recipe
from recipe.config.drawing import drawing_stages
from recipe.config.evaluation import HeldOutConfig
from recipe.config.held_out import held_out_entries
from recipe.errors import RecipeError
from recipe.mixing.opening import close_pools, open_pools
from recipe.pools import Pool
from recipe.pools.same_tokenizer import Stated, unstated
from recipe.report.figures import amount
from recipe.report.leaks import leak_tables, verdict
from recipe.run.evaluation import open_held_out
from recipe.run.folder import RunFolder
from recipe.run.holdings import Holding
from recipe.run.tracing.courses import Lineage
from recipe.run.tracing.tokenizers import said_for
from recipe.run.tracing.trace import Wanted, trace_documents

EXAMPLE = """\
Examples:
  recipe audit leakage demo --against pools/held/english pools/held/code
  recipe audit leakage runs/demo --ngram 30
  recipe audit leakage my.yaml --json

Every stretch of --ngram tokens of a held-out document is looked for in every document of the pools that the
recipe draws from, and shorter documents as a whole (of fewer than 8 tokens: only where a document is just
that); what is found was compared token by token. Without --against, the pools of the recipe's `evaluation:`,
`trainer.validation` and `trainer.final` are held out. Of a run, documents that were withdrawn before they
were read do not count. Pools that do not say their tokenizer (token files made elsewhere) are compared as if
it were the same, and never cleared: the answer names them. --tokenizer, or `tokenizer:` in the recipe, says
what made them; their ids are looked at all the same.
Exit code 1: something leaks, or a pool is not cleared; with --allow-unchecked only what leaks counts.
"""

SAY_IT = "tokenizer: in the recipe, or --tokenizer"
_ALLOW = "--allow-unchecked"
_HELD = "held-out pools"
_KINDS = ("validation", "final")
Held = dict[str, HeldOutConfig]
Texts = tuple[Recipe, dict[str, Pool], dict[str, NDArray[np.int64]]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run or recipe, and what is held out."""
    parser.epilog = EXAMPLE
    add_recipe_words(parser, also="; or the folder of a run, alone")
    parser.add_argument(
        "--against",
        nargs="+",
        action="extend",
        default=[],
        metavar="POOL",
        help="folders of held-out pools; default: those that the recipe names",
    )
    parser.add_argument(
        "--ngram", type=whole, default=NGRAM, metavar="N", help=f"tokens of a stretch; default: {NGRAM}"
    )
    parser.add_argument(
        "--tokenizer",
        metavar="SPEC",
        help="that made the pools that do not say theirs: bytes or a path; default: the recipe's",
    )
    add_file_words(parser, "held-out pools of token files made elsewhere, named by --against")
    add_pools_root(parser)
    parser.add_argument(
        _ALLOW,
        action="store_true",
        help="exit with 0 although a pool is not cleared; it is named all the same",
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Look for held-out text; 0 there is none, 1 there is, or nobody can tell."""
    if args.ngram < 1:
        raise RecipeError.single(
            "recipe audit leakage", "--ngram", given=args.ngram, expected="1 or more", fix=f"try {NGRAM}"
        )
    with _training(args) as texts:
        found = _found(args, texts)
    ok = found.num_leaks == 0 and (args.allow_unchecked or not found.unchecked)
    plain = found.to_plain() | {"ok": ok}
    if args.json:
        print_json(plain)
        return 0 if ok else 1
    print_tables(leak_tables(plain))
    print(verdict(plain))
    if not ok and not found.num_leaks:
        print(f"if {_made(found)} by the tokenizer of the others, say it: {SAY_IT}")
        print(f"exit code 1: not every pool is cleared; {_ALLOW} accepts that")
    return 0 if ok else 1


def _made(found: Leakage) -> str:
    return "they were made" if len(found.unchecked) > 1 else "it was made"


def _found(args: argparse.Namespace, texts: Texts) -> Leakage:
    recipe, pools, left_out = texts
    entries = _against(args) if args.against else held_out(recipe)
    if not entries:
        fix = "name them: --against pools/held/code, or evaluation: {pools: {code: pools/held/code}}"
        raise _unclear(args, "nothing", "held-out pools", fix)
    holdings = {name: Holding.of(pool) for name, pool in pools.items()}
    where = "--against" if args.against else _HELD
    root = recipe.model_copy(update={"pools_root": None}) if args.against else recipe
    with _in_the_recipe(args):
        held = open_held_out(root, entries, holdings, where=where, may_be_trained_on=True)
    try:
        with progress(quiet=args.json) as bars:
            task = bars.add_task("comparing", total=None, note="")

            def watch(done: int, total: int) -> None:
                bars.update(task, completed=done, total=total, note=f"{amount(total)} tokens")

            search = Search(ngram=args.ngram, left_out=left_out, said=_said(args, recipe, [pools, held]))
            return find_leakage(pools, held, search, watch)
    finally:
        close_pools(held.values())


@contextmanager
def _in_the_recipe(args: argparse.Namespace) -> Iterator[None]:
    """What is wrong with a held-out pool that the recipe names is told by its key there."""
    try:
        yield
    except RecipeError as error:
        if args.against:
            raise
        raise RecipeError(
            error.title, [replace(one, where=_key_of(one.where)) for one in error.problems]
        ) from error


def _key_of(where: str) -> str:
    """The dotted key of a held-out pool.

    >>> _key_of("held-out pools.final/code: a.bin"), _key_of("held-out pools.code: a.bin")
    ('trainer.final.code: a.bin', 'evaluation.pools.code: a.bin')
    """
    area = where.removeprefix(f"{_HELD}.")
    for kind in _KINDS if area != where else ():
        if area.startswith(f"{kind}/"):
            return f"trainer.{kind}.{area.removeprefix(f'{kind}/')}"
    return where if area == where else f"evaluation.pools.{area}"


def _said(args: argparse.Namespace, recipe: Recipe, pools: Sequence[Mapping[str, Pool]]) -> Stated | None:
    """The tokenizer of pools that say none: as the option says, else the recipe, if it is on this machine."""
    every = {f"{at}/{name}": pool for at, some in enumerate(pools) for name, pool in some.items()}
    if args.tokenizer is not None:
        return said_for(every, args.tokenizer)
    if recipe.tokenizer is None or not unstated(every):
        return None
    spec = recipe.tokenizer.builtin or str(Path(recipe.tokenizer.path or "").expanduser())
    with suppress(RecipeError):
        return said_for(every, spec)
    return None


def _against(args: argparse.Namespace) -> Held:
    """The pools that are named, by the names of their folders or files."""
    said = file_words(args)
    entries = {PurePath(path).name: HeldOutConfig(path=path, **said) for path in args.against}
    if len(entries) < len(args.against):
        raise _unclear(args, "two pools of one name", "folders with different names", "rename one of them")
    return entries


def _unclear(args: argparse.Namespace, given: str, expected: str, fix: str) -> RecipeError:
    told = " ".join(map(str, args.against)) or given
    return RecipeError.single(
        "recipe audit leakage", "--against", given=f"{given}: {told}" if args.against else given,
        expected=expected, fix=fix,
    )  # fmt: skip


def held_out(recipe: Recipe) -> Held:
    """The held-out pools that a recipe names, by area."""
    found: Held = {}
    for kind in _KINDS:
        named = (recipe.trainer or {}).get(kind)
        if isinstance(named, Mapping):
            entries = held_out_entries(named, f"trainer.{kind}")
            found |= {f"{kind}/{area}": entry for area, entry in entries.items()}
    return found if recipe.evaluation is None else found | recipe.evaluation.pools


@contextmanager
def _training(args: argparse.Namespace) -> Iterator[Texts]:
    """The recipe, the pools that it draws from, and documents of them that are never read."""
    source, overrides = split_words(args.words)
    if RunFolder(Path(source)).is_run:
        fix = "give the recipe's name or file to try changes: a run is looked at as its record says"
        run_alone(source, overrides, args.config_dir, fix)
        with Lineage(Path(source), args.pools_root) as lineage:
            recipes = [course.stream.recipe for course in lineage.courses]
            pools = {
                name: pool
                for course, recipe in zip(lineage.courses, recipes, strict=True)
                for name, pool in course.pools.items()
                if drawing_stages(recipe, name)
            }
            yield (
                _found_below(recipes[-1], args.pools_root),
                pools,
                _unread(Path(source), lineage, args.pools_root),
            )
        return
    recipe = load_recipe(source, overrides, config_dir=args.config_dir, pools_root=args.pools_root)
    refuse_missing(recipe, source)
    pools = open_pools(recipe)
    try:
        yield recipe, {name: pool for name, pool in pools.items() if drawing_stages(recipe, name)}, {}
    finally:
        close_pools(pools.values())


def _found_below(recipe: Recipe, root: Path | None) -> Recipe:
    """The recipe with its pools, held-out ones too, where they are on this machine."""
    return recipe if root is None else recipe.model_copy(update={"pools_root": str(root)})


def _unread(run: Path, lineage: Lineage, pools_root: Path | None) -> dict[str, NDArray[np.int64]]:
    """Documents that were withdrawn before any step on record read them, by pool."""
    unread = {}
    for name, pool in lineage.last.pools.items():
        withdrawn = lineage.last.stream.ground.withdrawn_of(name).documents
        if not len(withdrawn):
            continue
        ids = pool.ids(withdrawn)
        trace = trace_documents(run, Wanted(ids=tuple(ids), pool=name), pools_root=pools_root)
        read = {one.document for one in trace.documents if one.readings}
        unread[name] = withdrawn[[id not in read for id in ids]]
    return unread
