"""``recipe status``: where a run stands and what it has spent."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from rich.console import Group
from rich.text import Text

from recipe.cli.options import add_json
from recipe.cli.output import print_json, print_tables
from recipe.report.figures import percent
from recipe.report.listing import listing
from recipe.report.spent import BEGUN
from recipe.report.starts import start_lines
from recipe.report.tables import table
from recipe.run.comparing.measured import AMOUNTS
from recipe.run.manifests import ManifestStatus, run_manifests
from recipe.run.status import Status, run_status

ALL, SHOWN_MANIFESTS = "all", 20
_LONGEST_NUMBER = 9


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of ``recipe status``."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder, such as runs/demo")
    parser.add_argument(
        "--manifests",
        nargs="?",
        const=SHOWN_MANIFESTS,
        type=_number,
        metavar="N|all",
        help=f"list the last N manifests, or all, in place of the tables (default: {SHOWN_MANIFESTS}); "
        "late ones, and those that a rewind discarded, are marked, and what became of the weights: kept, "
        "removed, or forgotten on record",
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the status; nothing is locked or written."""
    status = run_status(args.run)
    listed = None
    if args.manifests is not None:
        listed = run_manifests(args.run, None if args.manifests == ALL else args.manifests)
    if args.json:
        plain = status.to_plain()
        told = [{**one.to_plain(), "weights": one.weights(args.run)} for one in listed or ()]
        print_json(plain if listed is None else {**plain, "manifests": told})
    elif listed is not None:
        print_tables([_heading(status)])
        print("\n".join(_manifests(listed, args.run)))
    else:
        print_tables([_heading(status), *map(Text, start_lines(status.to_plain()))])
        print_tables([_pools(status), *_measured(status), *_turns(status), *_checkpoints(status)])
        print_tables(Text(line) for line in _remarks(status))
    return 0


def _number(text: str) -> int | str:
    if text == ALL:
        return ALL
    if not text.isdecimal() or len(text) > _LONGEST_NUMBER:
        raise argparse.ArgumentTypeError(f"expected a number of manifests, or {ALL}, given {text!r}")
    return int(text)


def _heading(status: Status) -> Text:
    if status.complete and status.step == status.num_steps:
        where = "complete"
    elif status.complete:
        where = f"ended early: {status.ending}"
    else:
        where = f"next in stage {status.stage}"
    part = status.step / status.num_steps
    return Text(
        f"{status.name}: step {status.step:,} of {status.num_steps:,} ({part:.1%}), {where}; "
        f"{status.positions:,} positions\n"
        f"recipe version {status.version}, in force since step {status.version_since:,}"
    )


def _pools(status: Status) -> Group:
    total = sum(pool.spent for pool in status.pools.values())
    columns = (
        "pool",
        "share\nin force",
        "owed",
        "spent",
        "difference",
        "share\nspent",
        "documents\nbegun",
        "begun in the\nfirst epoch",
        "epoch",
    )
    rows = [
        (
            name,
            percent(Fraction(status.shares[name])),
            f"{pool.owed:,}",
            f"{pool.spent:,}",
            f"{pool.spent - pool.owed:+,}",
            f"{pool.spent / total:.2%}" if total else "",
            f"{pool.documents:,}",
            f"{pool.begun_in_first_epoch:,}",
            str(pool.epoch),
        )
        for name, pool in status.pools.items()
    ]
    return table(f"spent against owed, in {status.count} tokens", columns, rows, caption=BEGUN)


def _measured(status: Status) -> list[Group]:
    """What the last checkpoint states of each set that is not sealed."""
    amounts = [key for key in AMOUNTS if any(key in values for values in status.measured.values())]
    rows = [
        (
            name,
            *(_number_text(values.get(key, "")) for key in amounts),
            ", ".join(f"{key} {_number_text(value)}" for key, value in values.items() if key not in AMOUNTS),
        )
        for name, values in status.measured.items()
    ]
    columns = ("set", *(f"{key}\nscored" for key in amounts), "metrics")
    caption = "as the checkpoint states it; recipe compare shows what was attached later too"
    return [table("measured at the last checkpoint", columns, rows, caption=caption)] if rows else []


def _number_text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _turns(status: Status) -> list[Group]:
    """Where the run's course turned, and what was decided about it; nothing where it only began."""
    rows = [
        (
            turn["kind"],
            f"{turn['step']:,}",
            "" if turn["manifest"] is None else str(turn["manifest"]),
            turn["what"],
            turn["approved_by"] or "",
            turn["reason"] or "",
        )
        for turn in status.turns
    ]
    rows += [
        (
            "decision",
            "",
            str(decision["manifest"]),
            f"{decision['run']}, as {decision['as']}",
            decision["approved_by"],
            decision["reason"],
        )
        for decision in status.decisions
    ]
    if len(rows) == 1 and status.num_turns == 1 and status.turns[0]["kind"] == "created":
        return []
    more = status.num_turns - len(status.turns)
    columns = ("turn", "step", "manifest", "what", "approved by", "reason")
    return [table("turns of the run", columns, rows, caption=f"and {more:,} before" if more else "")]


def _checkpoints(status: Status) -> list[Group]:
    rows = [
        (
            at.uri or "",
            at.weights or "",
            f"{at.step:,}",
            str(at.manifest),
            at.time,
            "" if at.gpu_hours is None else f"{at.gpu_hours:,}",
        )
        for at in status.checkpoints
    ]
    columns = ("weights", "", "step", "manifest", "time", "device-hours")
    more = status.num_manifests - len(rows)
    caption = f"{len(rows)} of {status.num_manifests:,} manifests: --manifests all lists them" if more else ""
    return [table("last checkpoints", columns, rows, caption=caption)] if rows else []


def superseded(decision: Mapping[str, Any]) -> str:
    """One line about a branch that goes on as the trunk in place of this run."""
    return (
        f"the trunk went on in {decision['run']} (manifest {decision['manifest']}), approved by "
        f"{decision['approved_by']} at {decision['time']}: {decision['reason']}"
    )


def _manifests(listed: list[ManifestStatus], run: Path) -> Iterator[str]:
    rows = [
        (
            str(one.manifest),
            f"{one.step:,}",
            one.time,
            one.uri or "",
            "" if one.gpu_hours is None else f"{one.gpu_hours:,}",
            str(one.version),
            ", ".join(_marks(one, run)),
        )
        for one in listed
    ]
    columns = ("manifest", "step", "time", "weights", "device-hours", "version", "")
    return listing(columns, rows)


def _marks(one: ManifestStatus, run: Path) -> Iterator[str]:
    if one.late:
        yield "late"
    if one.forgotten is not None:
        yield f"forgotten: {one.forgotten}" if one.forgotten else "forgotten"
    elif (fate := one.weights(run)) in ("kept", "removed"):
        yield fate
    if one.discarded:
        yield "discarded by a rewind"


def _remarks(status: Status) -> list[str]:
    lines = [
        f"warning: pool {row['pool']} {row['what']} ({row['max_epochs']}), by step {row['step']}"
        for row in status.warnings
    ]
    if status.went_on_in is not None:
        lines.append(superseded(status.went_on_in))
    if status.served is not None:
        lines.append(f"last step handed to the trainer: {status.served['step']:,} at {status.served['time']}")
    if status.unfinished is not None:
        lines.append(
            f"a checkpoint was cut short ({status.unfinished}); the next one goes on from what counts"
        )
    if status.writer is not None:
        lines.append(f"{status.writer} is writing, or stopped while writing")
    return lines
