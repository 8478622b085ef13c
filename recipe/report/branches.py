"""Branches before they are created: how each differs from its parent, and what it will read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group

from recipe.report.figures import amount, readings, signed
from recipe.report.tables import table

Plain = Mapping[str, Any]


def branch_lines(plain: Plain) -> Iterator[str]:
    """What a branch is, line by line, from the plain form that ``--json`` prints."""
    parent = plain["parent"]
    data = "" if parent["data"] == "continue" else ", its data from the beginning"
    place = f"manifest {parent['manifest']} (step {parent['step']:,})"
    yield f"{plain['run']}: from {parent['run']}, {place}{data}"
    if not plain["differs"]:
        yield "  no change: a control"
    for line in plain["differs"]:
        yield f"  {line}"
    for note in plain["notes"]:
        yield f"  note: {note}"
    yield from control_lines(plain)


def control_lines(plain: Plain) -> Iterator[str]:
    """That a comparison with the parent is not controlled, and why, where it is not."""
    if plain["controlled"]:
        return
    yield "  UNCONTROLLED: more differs than what was named, or something that a comparison must hold fixed"
    for reason in plain["against"]:
        yield f"    {reason}"


def branch_tables(plains: Sequence[Plain]) -> Iterator[Group]:
    """What is left to read by pool, the parent's first, then each branch's; and where each ends."""
    before = plains[0]["before"]
    names = list(dict.fromkeys(name for plain in plains for name in plain["after"]["pools"]))
    many = [(plain["name"], plain["after"]) for plain in plains]
    trunk = [] if before is None else [(plains[0]["parent"]["run"], before)]
    yield table(
        f"left from step {plains[0]['parent']['step']:,} on, by share of the positions",
        ("pool", "spent", *(name for name, _ in (*trunk, *many)), *(["difference"] * _is_pair(trunk, many))),
        [_left(name, [*trunk, *many], is_pair=_is_pair(trunk, many)) for name in names],
    )
    yield table(
        "readings of each pool at the end",
        ("pool", "so far", *(name for name, _ in (*trunk, *many)), "allowed"),
        [_read(name, [*trunk, *many]) for name in names],
    )
    yield table(
        "the end of the run",
        ("", "step", "position"),
        [
            (name, f"{outlook['num_steps']:,}", f"{outlook['end_positions']:,}")
            for name, outlook in (*trunk, *many)
        ],
    )


def _is_pair(trunk: Sequence[Any], many: Sequence[Any]) -> bool:
    return len(trunk) == len(many) == 1


def _left(name: str, outlooks: Sequence[tuple[str, Plain]], *, is_pair: bool) -> tuple[str, ...]:
    pools = [outlook["pools"].get(name) for _, outlook in outlooks]
    left = [0 if pool is None else int(pool["left"]) for pool in pools]
    spent = next((pool["spent"] for pool in pools if pool is not None), 0)
    return (name, amount(spent), *map(amount, left), *([signed(left[1] - left[0])] if is_pair else []))


def _read(name: str, outlooks: Sequence[tuple[str, Plain]]) -> tuple[str, ...]:
    pools = [outlook["pools"].get(name) for _, outlook in outlooks]
    known = [pool for pool in pools if pool is not None]
    return (
        name,
        readings(known[0]["epochs_read"]),
        *("–" if pool is None else readings(pool["epochs_at_end"]) for pool in pools),
        str(known[-1]["max_epochs"]),
    )
