"""``recipe audit``: recompute what a run says it spent, and name what is wrong."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

from recipe.audit import Audit, audit_run
from recipe.audit.coverage import Coverage
from recipe.cli.options import add_json, add_pools_root, number, sample_of, whole
from recipe.cli.output import print_json, print_tables, progress
from recipe.errors import Problem, RecipeError, counted
from recipe.report.audits import audit_tables, finding_lines, limit_lines
from recipe.report.figures import amount
from recipe.run.served import compare_served


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run, how much of it is computed again, and what else is compared."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder, for example runs/demo")
    _add_depth(parser)
    _add_sources(parser)
    add_json(parser)


def _add_depth(parser: argparse.ArgumentParser) -> None:
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument(
        "--full", action="store_true", help="compute every row again, read every byte of the pools"
    )
    depth.add_argument(
        "--sample",
        type=sample_of,
        metavar="N|SHARE",
        help="rows to compute again: a number, or a share such as 5%%; the answer says what that finds",
    )
    depth.add_argument(
        "--chain-only", action="store_true", help="hashes, order and numbers alone: seconds for any run"
    )
    parser.add_argument(
        "--since",
        type=_since,
        metavar="STEP|@N",
        help="compute only rows behind a step, or behind manifest N",
    )
    parser.add_argument("--stage", metavar="NAME", help="compute only rows of one stage")
    parser.add_argument("--workers", type=number(1), metavar="N", help="default: one a core")
    parser.add_argument(
        "--seed", type=whole, metavar="N", help="of the sample, to repeat one; default: drawn anew each time"
    )


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--head",
        metavar="HASH",
        help="a hash that was published (also head=HASH, or the whole line of `recipe seal`): prove what "
        "came before it",
    )
    add_pools_root(parser)
    parser.add_argument(
        "--tokenizer",
        metavar="bytes|PATH",
        help="where the pools' tokenizer is, for cuts that are aligned at texts; default: the recipe's",
    )
    parser.add_argument(
        "--metadata-only",
        action="store_true",
        help="open no token file: pools may be metadata alone (card.json, offsets.npy, units.npy …)",
    )
    parser.add_argument(
        "--served",
        action="store_true",
        help="compare the batch digests that the ranks kept with what the run serves",
    )
    parser.add_argument(
        "--digests", type=Path, metavar="DIR", help="where they are; default: the run's folder `digests`"
    )


def execute(args: argparse.Namespace) -> int:
    """Audit the run; 0 nothing is wrong in what was covered, 1 something is."""
    _check_options(args)
    audit = _audited(args)
    if args.served:
        audit = _with_served(audit, args)
    plain = audit.to_plain()
    if args.json:
        print_json(plain)
        return 0 if audit.ok else 1
    verdict = _verdict(len(audit.findings), audit.checked)
    print(f"{args.run}: {verdict}\n")
    print_tables(audit_tables(plain))
    print("\n".join([*audit.checked.lines(), "", *limit_lines(plain), "", *finding_lines(plain), verdict]))
    return 0 if audit.ok else 1


def _audited(args: argparse.Namespace) -> Audit:
    with progress(quiet=args.json) as bars:
        task = bars.add_task("auditing", total=None, note="")

        def watch(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total, note=f"{amount(total)} positions")

        return audit_run(
            args.run,
            full=args.full,
            sample=args.sample,
            workers=args.workers,
            pools_root=args.pools_root,
            seed=args.seed,
            progress=watch,
            chain_only=args.chain_only,
            since=args.since,
            stage=args.stage,
            head=args.head,
            metadata_only=args.metadata_only,
            tokenizer=args.tokenizer,
        )


def _with_served(audit: Audit, args: argparse.Namespace) -> Audit:
    """The audit, and what batch digests say: another program's answer, said apart."""
    try:
        served = compare_served(
            args.run,
            digests=args.digests,
            pools_root=args.pools_root,
            full=args.full,
            seed=args.seed,
            workers=args.workers,
        )
    except RecipeError as error:
        if audit.ok:
            raise
        # what the audit found is why the run cannot be opened
        said = f"batch digests: not compared, for the run cannot be opened ({error.title})"
        return replace(audit, checked=replace(audit.checked, served=said))
    findings = (*audit.findings, *served.findings)
    return replace(audit, findings=findings, checked=replace(audit.checked, served=served.said))


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that would have no effect, all at once."""
    of_rows = ("--since", "--stage", "--metadata-only", "--pools-root", "--served", "--seed", "--workers")
    given = [name for name in of_rows if _value(args, name) not in (None, False)]
    fix = "leave one of them out"
    problems = []
    if args.chain_only and given:
        expected = "nothing that is about rows computed again, or about pools"
        problems.append(Problem("--chain-only", f"with {', '.join(given)}", expected, fix))
    if args.metadata_only and args.full:
        expected = "one of them: --full reads every byte of the pools; --sample 100% computes every row"
        problems.append(Problem("--metadata-only", "with --full", expected, fix))
    if args.metadata_only and args.served:
        expected = "one of them: batches cannot be assembled without tokens"
        problems.append(Problem("--metadata-only", "with --served", expected, fix))
    if args.digests is not None and not args.served:
        fix = "add --served: digests are compared only when asked for"
        problems.append(Problem("--digests", str(args.digests), "--served beside it", fix))
    if problems:
        raise RecipeError("recipe audit", problems)


def _value(args: argparse.Namespace, option: str) -> object:
    return getattr(args, option.removeprefix("--").replace("-", "_"))


def _verdict(findings: int, checked: Coverage) -> str:
    if findings:
        return f"{counted(findings, 'finding')}; nothing was changed"
    if checked.chain_only:
        return "nothing is wrong with the chain; its numbers were not looked at"
    open_pools = [name for name, how in checked.pools.items() if _is_open(how)]
    left = ["the ledger it branched from"] if checked.is_parent_gone else []
    left += ["the files it wrote"] if checked.are_files_gone else []
    left += [f"{counted(checked.unavailable, 'row')} without their pools"] if checked.unavailable else []
    left += [f"{checked.outside:,} rows that were not asked for"] if checked.outside else []
    sampled = checked.replayable - len(checked.replayed) if checked.sample_seed is not None else 0
    left += [f"{counted(sampled, 'row')} outside the sample"] if sampled else []
    left = [*([f"the contents of {', '.join(open_pools)}"] if open_pools else []), *left]
    if left:
        return f"nothing is wrong in what was covered; not covered: {'; '.join(left)}"
    return "nothing is wrong"


def _is_open(how: str) -> bool:
    """Whether what is said of a pool means that its contents were not looked at."""
    return "not covered" in how or "not looked at" in how


def _since(text: str) -> str:
    """A step, or a manifest: its number, or the path of its file."""
    if not text.isascii() and not text.endswith(".yaml"):
        raise argparse.ArgumentTypeError(
            f"expected a step such as 96, or a manifest such as @3, given {text!r}"
        )
    return text
