"""What an audit found, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group

from recipe.report.figures import signed
from recipe.report.tables import table

KINDS = ("body", "overlap", "special", "padding", "labels")


def audit_tables(plain: Mapping[str, Any]) -> Iterator[Group]:
    """Tables of an audit's plain form: tokens by pool, then the largest drift by pool and stage."""
    if not plain["tokens"]:
        return
    yield table(
        "tokens on record",
        ("pool", *KINDS),
        ((pool, *(f"{counts[kind]:,}" for kind in KINDS)) for pool, counts in plain["tokens"].items()),
    )
    drift = plain["drift"]
    yield table(
        "spent less promised, in tokens, at the row's end where it is largest",
        ("pool", *(f"stage {stage}" for stage in drift)),
        ((pool, *(signed(pools.get(pool, 0)) for pools in drift.values())) for pool in plain["tokens"]),
    )


def finding_lines(plain: Mapping[str, Any]) -> Iterator[str]:
    """Findings as text: what was checked and where, then both values whole, a line each."""
    for finding in plain["findings"]:
        yield f"{finding['check']}: {finding['where']}"
        yield f"  expected  {finding['expected']}"
        yield f"  observed  {finding['observed']}"


def limit_lines(plain: Mapping[str, Any]) -> Iterator[str]:
    """What the audit cannot prove, as a short paragraph."""
    yield "what this cannot prove:"
    yield from (f"  - {line}" for line in plain["cannot_prove"])
