"""``recipe export``: sequences of a run or a recipe, or a pool, as files for other programs."""

from __future__ import annotations

import argparse
from contextlib import AbstractContextManager
from pathlib import Path

from recipe.cli import export_pool
from recipe.cli.file_words import add_file_words
from recipe.cli.found import refuse_nothing
from recipe.cli.options import (
    add_json,
    add_pools_root,
    add_recipe_words,
    add_yes,
    is_whole,
    number,
    run_alone,
    split_words,
    whole,
)
from recipe.cli.output import confirm, no_write, print_json, progress, say
from recipe.config import load_recipe
from recipe.errors import RecipeError, counted
from recipe.integrations.exporting import Done, Subject, Wanted, export, of_recipe, of_run
from recipe.integrations.exporting.pools_formats import POOL_FORMATS
from recipe.integrations.exporting.target import Target
from recipe.report.figures import byte_size
from recipe.run.folder import RunFolder

EXAMPLE = """\
Examples:
  recipe export runs/demo --format parquet --out out/parquet
  recipe export runs/demo --format mds --out out/mds --steps 0..48
  recipe export demo --format npy --out out/rank3 --dp-size 4 --dp-rank 3
  recipe export runs/demo --format megatron --out out/megatron --lossy
  recipe export pools/web --format npy --out out/web
  recipe export pools/web --format datatrove --out out/english --where language=en

A run is exported with every step under the recipe then in force. Each stretch of steps has a manifest in
_manifests, with the SHA-256 of its files; _manifest.json is the index over them. The same command goes on
where it was stopped. Megatron's files hold ids alone: where a loss mask or isolation would be lost, that is
refused without --lossy, and counted with it.

A pool is exported document by document, in stored order and with the marks that are stored, into a folder
that is there whole or not at all; _manifest.json has the pool's fingerprint and the SHA-256 of every file.
Token files (megatron, npy, datatrove) get _rows.parquet beside them, with ids, groups, tags and sources.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what is exported, as what, and where to."""
    parser.epilog = EXAMPLE
    add_recipe_words(parser, also="; or the folder of a run or a pool, alone")
    parser.add_argument(
        "--format", choices=POOL_FORMATS, required=True, help="what the files are; datatrove: of a pool alone"
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="where they go")
    parser.add_argument("--steps", type=_steps, metavar="A..B", help="steps A to B - 1; default: all")
    parser.add_argument("--dp-size", type=whole, metavar="W", help="data-parallel ranks; default: 1")
    parser.add_argument("--dp-rank", type=whole, metavar="R", help="whose rows; default: 0")
    parser.add_argument("--micro-batch", type=whole, metavar="N", help="deal micro-batches of N rows")
    parser.add_argument(
        "--rows-per-file",
        type=whole,
        metavar="N",
        help="sequences in a file, about; default: 8192",
    )
    parser.add_argument("--lossy", action="store_true", help="leave out what the format cannot hold")
    of_pool = parser.add_argument_group("a pool")
    of_pool.add_argument(
        "--where", action="append", default=[], metavar="KEY=VALUE",
        help="only documents whose tag, id, group or source is so, such as language=en or "
        "'quality={min: 0.5}'; repeatable: all must hold, those of one key are alternatives",
    )  # fmt: skip
    of_pool.add_argument(
        "--tokens-per-file", type=number(1, amounts=True), metavar="N",
        help="stored tokens in a file at most, unless a document has more; default: what suits the format",
    )  # fmt: skip
    add_file_words(parser)
    add_pools_root(parser)
    add_yes(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Export; 1 where nobody agreed to a folder that is not empty."""
    if export_pool.is_pool(args.words, args.config_dir):
        return export_pool.execute(args)
    export_pool.refuse_options(args, of_pool=False)
    wanted = _wanted(args)
    with _subject(args) as subject:
        strangers = Target(args.out).strangers()
        if strangers:
            shown = ", ".join(strangers[:3]) + (
                f" and {len(strangers) - 3:,} more" if len(strangers) > 3 else ""
            )
            say(f"{args.out} is not empty: {shown}", quiet=args.json and args.yes)
            if not confirm("write there all the same?", yes=args.yes):
                return no_write(dry_run=False)
        with progress(quiet=args.json) as bars:
            task = bars.add_task("exporting", total=None, note=wanted.format)
            done = export(
                subject, args.out, wanted, lambda at, total: bars.update(task, completed=at, total=total)
            )
    if args.json:
        print_json(done.to_plain())
    else:
        print("\n".join(_lines(done)))
    return 0


def _subject(args: argparse.Namespace) -> AbstractContextManager[Subject]:
    source, overrides = split_words(args.words)
    if not RunFolder(Path(source)).is_run:
        refuse_nothing(source, args.config_dir, verb="recipe export", what="a folder of a run or a pool")
        return of_recipe(
            load_recipe(source, overrides, config_dir=args.config_dir, pools_root=args.pools_root)
        )
    run_alone(source, overrides, args.config_dir, "leave it out: a run is exported as its record says")
    return of_run(source, args.pools_root)


def _wanted(args: argparse.Namespace) -> Wanted:
    size, rank = (1 if args.dp_size is None else args.dp_size), args.dp_rank or 0
    rows = 8192 if args.rows_per_file is None else args.rows_per_file
    for option, value in (("--dp-size", size), ("--rows-per-file", rows)):
        if value < 1:
            raise _refused(option, value, "1 or more")
    if args.micro_batch == 0:
        raise _refused("--micro-batch", 0, "1 or more")
    if rank >= size:
        raise _refused("--dp-rank", rank, f"0..{size - 1} (--dp-size {size})")
    return Wanted(
        format=args.format, steps=args.steps, dp_rank=rank, dp_size=size,
        micro_batch=args.micro_batch, rows_per_file=rows, lossy=args.lossy,
    )  # fmt: skip


def _refused(option: str, given: int, expected: str) -> RecipeError:
    return RecipeError.single(
        "recipe export", option, given=given, expected=expected, fix=f"correct {option}"
    )


def _lines(done: Done) -> list[str]:
    first, stop = done.steps
    lines = [
        f"{done.path}: steps {first:,} to {stop - 1:,} as {done.format}, {done.sequences:,} sequences in "
        f"{counted(done.files, 'file')}, {byte_size(done.bytes)} ("
        f"{counted(done.written, 'part')} written, {done.kept:,} kept)"
    ]
    lost = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in done.lost.items() if count)
    if lost:
        lines.append(f"lost, as {done.format} holds ids alone: {lost}")
    return [*lines, f"SHA-256 of _manifest.json: {done.sha256}"]


def _steps(text: str) -> tuple[int, int]:
    first, dots, stop = text.partition("..")
    if not dots or not is_whole(first) or not is_whole(stop) or int(first) >= int(stop):
        raise argparse.ArgumentTypeError(f"expected steps such as 0..48, given {text!r}")
    return int(first), int(stop)
