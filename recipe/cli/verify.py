"""``recipe audit verify``: the acceptance test, of the program, a run's own data, or a package."""

from __future__ import annotations

import argparse
from pathlib import Path

from recipe.audit.verify import Acceptance, Check
from recipe.cli.options import add_json, is_whole
from recipe.cli.output import print_json, progress, say
from recipe.errors import RecipeError
from recipe.integrations.acceptance import Sample, verify_package, verify_program, verify_run
from recipe.run.handover.receiving import is_package

MARKS = {True: "ok", False: "FAILED", None: "not checked"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what is verified."""
    parser.add_argument(
        "path",
        nargs="?",
        type=Path,
        metavar="RUN|PACKAGE",
        help="a run's folder, or one that was handed over; without it, the program itself on tiny documents",
    )
    parser.add_argument(
        "--sample",
        type=_count,
        metavar="N",
        help="documents of a run that are put together again from all their pieces (default: 256)",
    )
    parser.add_argument("--pools-root", type=Path, metavar="DIR", help="where the pools are on this machine")
    parser.add_argument(
        "--tokenizer",
        type=Path,
        metavar="PATH",
        help="bytes, a tokenizer.json or a folder that holds one; default: the recipe's",
    )
    parser.add_argument(
        "--sources",
        action="append",
        type=Path,
        metavar="DIR",
        help="a folder that held the texts which the pools were made from; may be given again",
    )
    parser.add_argument(
        "--seed", type=_seed, metavar="N", help="of the sample, to repeat one; default: drawn anew each time"
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Verify; 0 every claim holds, 1 one does not."""
    acceptance = _verified(args)
    if args.json:
        print_json(acceptance.to_plain())
    else:
        print("\n".join(_lines(acceptance)))
    return 0 if acceptance.ok else 1


def _verified(args: argparse.Namespace) -> Acceptance:
    if args.path is None:
        _refuse(args, "without a run", ("sample", "pools_root", "sources", "seed"))
        if Path("verify/run.yaml").is_file():
            say("the run folder ./verify is audited by `recipe audit ./verify`", quiet=args.json)
        return verify_program(args.tokenizer)
    if args.path.is_file():
        raise RecipeError.single(
            "recipe audit verify",
            str(args.path),
            given="a file",
            expected="a folder: a run's, or one that was handed over",
            fix="unpack an archive first (tar -xf; a .tar.zst needs tar --zstd), then name the folder",
        )
    if is_package(args.path):
        _refuse(args, "with a package", ("sample", "tokenizer", "sources", "seed"))
        return verify_package(args.path, pools_root=args.pools_root)
    return _of_run(args)


def _of_run(args: argparse.Namespace) -> Acceptance:
    with progress(quiet=args.json) as bars:
        task = bars.add_task("verifying", total=None, note="rows")

        def watch(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        return verify_run(
            args.path,
            sample=Sample(seed=args.seed, **({} if args.sample is None else {"documents": args.sample})),
            pools_root=args.pools_root,
            tokenizer=args.tokenizer,
            sources=args.sources or (),
            progress=watch,
        )


def _refuse(args: argparse.Namespace, when: str, names: tuple[str, ...]) -> None:
    """Say which options mean nothing here."""
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(args, name) is not None]
    if given:
        raise RecipeError.single(
            "recipe audit verify",
            ", ".join(given),
            given=when,
            expected="a run's folder with it",
            fix="leave it out, or name a run",
        )


def _lines(acceptance: Acceptance) -> list[str]:
    """One line a claim, its findings below it, and the verdict."""
    width = max(len(check.name) for check in acceptance.checks)
    lines = [f"acceptance of {acceptance.subject}"]
    for check in acceptance.checks:
        lines.append(f"  {MARKS[check.ok]:<12}{check.name:<{width}}  {check.said}")
        for finding in check.findings:
            lines += [
                f"      {finding.where}",
                f"        expected  {finding.expected}",
                f"        observed  {finding.observed}",
            ]
    if acceptance.seed is not None:
        lines.append(f"steps and documents were chosen with seed {acceptance.seed}")
    return [*lines, _verdict(acceptance.checks)]


def _verdict(checks: tuple[Check, ...]) -> str:
    failed = [check.name for check in checks if check.ok is False]
    if failed:
        return f"{len(failed)} of {len(checks)} claims failed: {', '.join(failed)}"
    left = [check.name for check in checks if check.ok is None]
    if left:
        return f"every claim that could be checked holds; not checked here: {', '.join(left)}"
    return "every claim holds"


def _count(text: str) -> int:
    if not is_whole(text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a number of documents from 1 on, given {text!r}")
    return int(text)


def _seed(text: str) -> int:
    if not is_whole(text) or int(text) >= 1 << 63:
        raise argparse.ArgumentTypeError(f"expected a whole number of 0..2**63-1, given {text!r}")
    return int(text)
