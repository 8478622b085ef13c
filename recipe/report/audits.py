"""What an audit found, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group

from recipe.report.figures import signed
from recipe.report.tables import table


def audit_tables(plain: Mapping[str, Any]) -> Iterator[Group]:
    """Tables of an audit's plain form: tokens by pool, drift by stage, then what is wrong."""
    kinds = ("body", "overlap", "special", "padding", "labels")
    yield table(
        "tokens recomputed",
        ("pool", *kinds),
        ((pool, *(f"{counts[kind]:,}" for kind in kinds)) for pool, counts in plain["tokens"].items()),
    )
    for stage, drift in plain["drift"].items():
        yield table(
            f"stage {stage}: tokens away from the share at its end",
            ("pool", "difference"),
            ((pool, signed(tokens)) for pool, tokens in drift.items()),
        )
    findings = plain["findings"]
    if findings:
        columns = ("check", "where", "expected", "observed")
        yield table(
            f"{len(findings)} finding{'s' if len(findings) > 1 else ''}",
            columns,
            ([str(finding[column]) for column in columns] for finding in findings),
        )
