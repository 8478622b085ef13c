"""``recipe audit``: recompute what a run says it spent, and name what is wrong."""

from __future__ import annotations

import argparse
from pathlib import Path

from recipe.audit import audit_run
from recipe.audit.findings import Coverage
from recipe.cli.options import add_json
from recipe.cli.output import print_json, print_tables, progress
from recipe.report.audits import audit_tables, finding_lines
from recipe.report.figures import amount


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run and how much of it is computed again."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder, for example runs/demo")
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument(
        "--full", action="store_true", help="compute every row again, read every byte of the pools"
    )
    depth.add_argument(
        "--sample",
        type=_sample,
        metavar="N|SHARE",
        help="rows to compute again: a number, or a share such as 5%%",
    )
    parser.add_argument("--workers", type=_count, metavar="N", help="default: one a core")
    parser.add_argument("--pools-root", type=Path, metavar="DIR", help="where the pools are on this machine")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Audit the run; 0 nothing is wrong, 1 something is."""
    with progress(quiet=args.json) as bars:
        task = bars.add_task("auditing", total=None, note="")

        def watch(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total, note=f"{amount(total)} positions")

        audit = audit_run(
            args.run,
            full=args.full,
            sample=args.sample,
            workers=args.workers,
            pools_root=args.pools_root,
            progress=watch,
        )
    plain = audit.to_plain()
    if args.json:
        print_json(plain)
        return 0 if audit.ok else 1
    print_tables(audit_tables(plain))
    lines = [*audit.checked.lines(), "", *finding_lines(plain), _verdict(len(audit.findings), audit.checked)]
    print("\n".join(lines))
    return 0 if audit.ok else 1


def _verdict(findings: int, checked: Coverage) -> str:
    if not findings:
        open_pools = [name for name, how in checked.pools.items() if "not covered" in how]
        if open_pools or checked.unavailable:
            rows = [f"{checked.unavailable} rows without their pools"] if checked.unavailable else []
            pools = [f"the contents of {', '.join(open_pools)}"] if open_pools else []
            return f"nothing is wrong in what was covered; not covered: {'; '.join(pools + rows)}"
        return "nothing is wrong"
    return f"{findings} finding{'s' if findings > 1 else ''}; nothing was changed"


def _sample(text: str) -> float | int:
    """``20`` rows, or ``5%`` of them."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else int(text)
    except ValueError:
        value = 0
    if value <= 0 or (text.endswith("%") and value > 1):
        raise argparse.ArgumentTypeError(f"expected a number of rows, or a share such as 5%, given {text!r}")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, given {text!r}")
    return int(text)
