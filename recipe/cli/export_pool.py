"""``recipe export`` of a pool: its documents as files for other programs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from glob import has_magic
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from recipe.cli.file_words import file_words
from recipe.cli.options import split_words
from recipe.cli.output import print_json, progress
from recipe.config import PoolConfig, parse_yaml
from recipe.config.files import READ_KEYS
from recipe.config.places import is_stored, place
from recipe.config.problems import faults_of
from recipe.config.sources import locate
from recipe.config.view import filter_of
from recipe.config.vocabulary import VOCABULARY
from recipe.errors import Problem, RecipeError, counted
from recipe.integrations.exporting.pools import TOKENS_ALONE, PoolDone, PoolWanted, export_pool
from recipe.integrations.exporting.pools_formats import ROWS_NAME
from recipe.pools import Pool, open_pool
from recipe.pools.card import CARD_NAME
from recipe.pools.foreign.form import form_of
from recipe.pools.views import View
from recipe.report.figures import byte_size
from recipe.run.folder import RunFolder

_OF_SEQUENCES = {
    "--steps": "steps", "--dp-size": "dp_size", "--dp-rank": "dp_rank", "--micro-batch": "micro_batch",
    "--rows-per-file": "rows_per_file", "--pools-root": "pools_root", "--config-dir": "config_dir",
}  # fmt: skip
_OF_POOLS = {"--where": "where", "--tokens-per-file": "tokens_per_file"}
_OF_POOLS |= {f"--{key}": key for key in READ_KEYS}


def is_pool(words: Sequence[str], config_dir: Path | None) -> bool:
    """Whether the first word is a pool: a folder with a card, or token files that are no run or recipe."""
    source = split_words(words)[0]
    path = place(source)
    if is_stored(path) or (path / CARD_NAME).is_file():
        return True
    if RunFolder(path).is_run:
        return False
    is_there = path.is_dir() or path.is_file() or path.with_name(path.name + ".idx").is_file()
    if not (is_there or has_magic(source)) or path.suffix in (".yaml", ".yml"):
        return False
    try:
        return locate(source, config_dir).file == path.absolute()
    except RecipeError:
        return True


def refuse_options(args: argparse.Namespace, *, of_pool: bool) -> None:
    """Refuse options that say nothing of what is exported.

    Raises:
        RecipeError: with every one that was given.
    """
    options, what = (_OF_SEQUENCES, "a pool") if of_pool else (_OF_POOLS, "sequences")
    given = [name for name, key in options.items() if getattr(args, key) not in (None, [])]
    expected = f"options for {what}" if of_pool else "options for sequences of a run or a recipe"
    problems = [Problem(name, f"with {what}", expected, f"leave {name} out") for name in given]
    if not of_pool and args.format == "datatrove":
        fix = "choose another --format, or name a pool"
        problems.append(Problem("--format", "datatrove, with sequences", "a format for sequences", fix))
    if problems:
        raise RecipeError("recipe export", problems)


def execute(args: argparse.Namespace) -> int:
    """Export a pool."""
    refuse_options(args, of_pool=True)
    source, overrides = split_words(args.words)
    if overrides:
        fix = "leave it out; --where KEY=VALUE chooses documents"
        raise RecipeError.single(
            source, "KEY=VALUE", given=" ".join(overrides), expected="a pool, alone", fix=fix
        )
    wanted = PoolWanted(format=args.format, tokens_per_file=args.tokens_per_file, lossy=args.lossy)
    with _opened(source, args) as pool, progress(quiet=args.json) as bars:
        task = bars.add_task("exporting", total=None, note=wanted.format)
        done = export_pool(
            pool, args.out, wanted, lambda at, total: bars.update(task, completed=at, total=total)
        )
    if args.json:
        print_json(done.to_plain())
    else:
        print("\n".join(_lines(done)))
    return 0


def _opened(source: str, args: argparse.Namespace) -> Pool:
    said = {"path": source, **file_words(args)} | ({"where": _where(args.where)} if args.where else {})
    try:
        config = PoolConfig.model_validate(said)
    except ValidationError as error:
        found = faults_of(error, VOCABULARY)
        problems = [replace(fault, place=(f"--{fault.place[0]}", *fault.place[1:])) for fault in found]
        raise RecipeError("recipe export", [fault.problem() for fault in problems]) from None
    path = place(source)
    pool, chosen = (
        open_pool(path, path.name, eos=args.eos, bos=args.bos, form=form_of(config)),
        filter_of(config),
    )
    return pool if chosen is None else View(pool, chosen)


def _where(texts: Sequence[str]) -> dict[str, Any]:
    """Conditions by column; those of one column are alternatives.

    >>> _where(["language=en", "language=no", "quality={min: 0.5}"])
    {'language': ['en', 'no'], 'quality': {'min': '0.5'}}
    """
    found = dict[str, Any]()
    for text in texts:
        column, equals, value = text.partition("=")
        if not column or not equals:
            raise RecipeError.single(
                "recipe export", "--where", given=text, expected="KEY=VALUE", fix="write it like language=en"
            )
        read = parse_yaml(f"value: {value}", "--where")["value"]
        found.setdefault(column, []).append(read)
    return {column: values[0] if len(values) == 1 else values for column, values in found.items()}


def _lines(done: PoolDone) -> list[str]:
    lines = [
        f"{done.path}: {counted(done.documents, 'document')}, {counted(done.tokens, 'token')} with end marks "
        f"as {done.format} in {counted(done.files, 'file')}, {byte_size(done.bytes)}"
    ]
    if done.format in TOKENS_ALONE and done.documents:
        lines.append(f"ids, groups, tags and sources of the documents: {ROWS_NAME}")
    if done.erased:
        lines.append(f"left out: {counted(done.erased, 'document')} withdrawn and erased")
    lost = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in done.lost.items())
    if lost:
        lines.append(f"lost, as {done.format} has no place for them: {lost}")
    return [*lines, f"SHA-256 of _manifest.json: {done.sha256}"]
