"""Branches before they are created: how each differs from its parent, and what it will read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group

from recipe.config.identity import in_short
from recipe.report.outlooks import outlook_tables

Plain = Mapping[str, Any]


def branch_lines(plain: Plain) -> Iterator[str]:
    """What a branch is, line by line, from the plain form that ``--json`` prints."""
    parent = plain["parent"]
    data = "" if parent["data"] == "continue" else ", its data from the beginning"
    place = f"manifest {parent['manifest']} (step {parent['step']:,})"
    yield f"{plain['run']}: from {parent['run']}, {place}{data}"
    if not plain["differs"]:
        yield "  no change: a control"
    for line in in_short(plain["differs"]):
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
    before, parent = plains[0]["before"], plains[0]["parent"]
    trunk = [] if before is None else [(parent["run"], before)]
    yield from outlook_tables(
        parent["step"], [*trunk, *((plain["name"], plain["after"]) for plain in plains)]
    )
