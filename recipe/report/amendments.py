"""What an amendment changes, as tables: spent, left, and how often pools are read, before and after."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Group

from recipe.report.tables import table

Plain = dict[str, Any]


def amendment_tables(plain: Plain) -> Iterator[Group]:
    """Tables of an amendment in the plain form that ``--json`` prints."""
    before, after = plain["before"], plain["after"]
    columns = (
        "pool",
        "spent",
        "left before",
        "left after",
        "difference",
        "read before",
        "after",
        "allowed",
    )
    yield table(
        f"the rest of the run from step {plain['step']:,} on, in counted tokens",
        columns,
        [_pool(name, before["pools"].get(name), pool) for name, pool in after["pools"].items()],
    )
    rows = [
        ("before", f"{before['num_steps']:,}", f"{before['end_positions']:,}"),
        ("after", f"{after['num_steps']:,}", f"{after['end_positions']:,}"),
    ]
    yield table("the end of the run", ("", "step", "position"), rows)


def _pool(name: str, before: Plain | None, after: Plain) -> tuple[str, ...]:
    left = before["left"] if before is not None else 0
    return (
        name,
        f"{after['spent']:,}",
        f"{left:,}",
        f"{after['left']:,}",
        f"{after['left'] - left:+,}",
        "" if before is None else f"{before['epochs_at_end']:.3f}",
        f"{after['epochs_at_end']:.3f}",
        str(after["max_epochs"]),
    )


def amendment_lines(plain: Plain) -> Iterator[str]:
    """What changes, line by line, and what is to be known about it."""
    for change in plain["changes"]:
        yield f"  {change}"
    for warning in plain["after"]["warnings"]:
        yield f"warning: {warning}"
    yield from discard_lines(plain)


def discard_lines(plain: Plain) -> Iterator[str]:
    """What going on from the step discards."""
    if plain["discards"]:
        yield (f"{plain['discards']:,} steps on record after it are discarded: load the weights of that step")
