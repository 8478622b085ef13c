"""What an amendment changes, as tables: spent, left, and how often pools are read, before and after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group

from recipe.report.outlooks import outlook_tables

Plain = dict[str, Any]


def amendment_tables(plain: Plain) -> Iterator[Group]:
    """Tables of an amendment in the plain form that ``--json`` prints."""
    yield from outlook_tables(plain["step"], [("before", plain["before"]), ("after", plain["after"])])


def amendment_lines(plain: Plain) -> Iterator[str]:
    """What changes, line by line, and what is to be known about it."""
    for change in plain["changes"]:
        yield f"  {change}"
    rest = plain["rest"]
    if rest is not None:
        hours = "" if rest["seconds"] is None else f", {rest['seconds'] / 3600:,.1f} hours by the clock"
        first, last = rest["measured"]["steps"]
        yield f"the rest takes {rest['gpu_hours']:,.1f} GPU-hours{hours}, as steps {first:,} to {last:,} did"
    for warning in plain["after"]["warnings"]:
        yield f"warning: {warning}"
    yield from discard_lines(plain)


def discard_lines(plain: Plain) -> Iterator[str]:
    """What going on from the step discards."""
    if plain["discards"]:
        yield (f"{plain['discards']:,} steps on record after it are discarded: load the weights of that step")
