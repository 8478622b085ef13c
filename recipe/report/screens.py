"""Screens as tables: the mixtures and how often each reads its pools; the ranking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from rich.console import Group

from recipe.report.figures import percent, readings
from recipe.report.tables import table

Plain = Mapping[str, Any]
SHOWN = 40
"""Mixtures that a table shows; the file of the screen has them all."""


def screen_tables(plain: Plain) -> Iterator[Group]:
    """The mixtures of a screen in the plain form that ``--json`` prints."""
    drawn = plain["mixtures"]
    names = list(drawn[0]["shares"])
    more = f"{len(drawn) - SHOWN:,} more" if len(drawn) > SHOWN else ""
    yield table(
        f"{plain['screen']}: {len(drawn):,} mixtures of stage {plain['stage']}",
        ("mixture", *names),
        [
            (mixture["name"], *(percent(Fraction(share)) for share in mixture["shares"].values()))
            for mixture in drawn[:SHOWN]
        ],
        caption=more,
    )
    rows = []
    for pool in next(iter(plain["pools"].values())):
        ends = [pools[pool]["epochs_at_end"] for pools in plain["pools"].values()]
        allowed = max(pools[pool]["max_epochs"] for pools in plain["pools"].values())
        rows.append((pool, readings(min(ends)), readings(max(ends)), str(allowed)))
    yield table("readings of each pool at the end", ("pool", "least", "most", "allowed"), rows)


def ranking_table(plain: Plain) -> Group:
    """A ranking in the plain form that ``--json`` prints."""
    ranked = plain["ranked"]
    names = list(ranked[0]["shares"])
    lacking = plain["lacking"]
    shown = ", ".join(lacking[:10]) + (" …" if len(lacking) > 10 else "")
    return table(
        f"{plain['screen']}: {plain['metric']} at step {plain['step']:,}, {plain['direction']} is better",
        ("mixture", "rank", plain["metric"], *names),
        [
            (
                row["name"],
                str(row["rank"]),
                str(row["value"]),
                *(percent(Fraction(share)) for share in row["shares"].values()),
            )
            for row in ranked
        ],
        caption=f"without a value there: {shown}" if lacking else "",
    )
