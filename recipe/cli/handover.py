"""``recipe handover``: a run as a folder and an archive that another team can check and go on with."""

from __future__ import annotations

import argparse
from pathlib import Path

from recipe.cli.options import add_json, add_pools_root
from recipe.cli.output import confirm, print_json, progress, say
from recipe.errors import counted
from recipe.report.figures import amount
from recipe.run.handover import Handover, Wanted, hand_over_run
from recipe.run.handover.staging import ARCHIVES


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run, where the package goes, and what is in it."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder, for example runs/demo")
    parser.add_argument("out", type=Path, metavar="OUT", help="the package: a folder that is not there yet")
    parser.add_argument(
        "--archive",
        choices=ARCHIVES,
        default="tar.zst",
        help="also pack it beside the folder (default: tar.zst)",
    )
    parser.add_argument(
        "--with-tokenizer",
        metavar="PATH",
        help="add the files of a tokenizer.json, or of a folder that holds one; default: the recipe's own",
    )
    parser.add_argument(
        "--with-documents",
        action="store_true",
        help="add the pools' document tables: ids, groups, tags, places in the source",
    )
    parser.add_argument(
        "--with-tokens",
        action="store_true",
        help="copy the pools whole; they may be licensed and are large, so it asks first",
    )
    add_pools_root(parser)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Hand the run over; 0 done, 1 not wanted after all."""
    question = f"copy every token of the run's pools into {args.out}?"
    if args.with_tokens and not confirm(question, yes=args.yes):
        say("nothing was written: --with-tokens copies the texts of the pools; --yes says that it may")
        return 1
    wanted = Wanted(
        archive=args.archive,
        tokenizer=args.with_tokenizer,
        tokens=args.with_tokens,
        documents=args.with_documents,
        pools_root=args.pools_root,
    )
    with progress(quiet=args.json) as bars:
        task = bars.add_task("handing over", total=None, note="")

        def watch(size: int) -> None:
            bars.update(task, advance=size, note="bytes")

        done = hand_over_run(args.run, args.out, wanted, watch=watch)
    if args.json:
        print_json(done.to_plain())
    else:
        print("\n".join(_lines(done)))
    return 0


def _lines(done: Handover) -> list[str]:
    lines = [f"{done.path}: step {done.step:,}, {counted(done.files, 'file')}, {amount(done.bytes)} bytes"]
    if done.archive is not None:
        lines.append(f"{done.archive}: SHA-256 {done.archive_sha256}")
    lines.append(f"SHA-256 of its SHA256SUMS, to tell apart from the package: {done.sums_sha256}")
    lines += [f"note: {note}" for note in done.notes]
    return [
        *lines,
        f"check it with `recipe audit verify {done.path}`, here or on a machine without the pools",
    ]
