"""Pools that share a folder, for a person: who reads which of its documents, where, and how often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group

from recipe.report.figures import amount, readings
from recipe.report.tables import table

Plain = Mapping[str, Any]


def family_tables(plain: Plain) -> Iterator[Group]:
    """Tables of the families in a plan's plain form."""
    for name, family in plain.get("families", {}).items():
        yield _cell_table(name, family, list(plain["stages"]))


def _cell_table(name: str, family: Plain, stages: list[str]) -> Group:
    rows = []
    for cell in family["cells"]:
        by = cell["stages"]
        rows.append(
            (
                ", ".join(cell["held_by"]) or "no pool",
                f"{cell['documents']:,}",
                amount(cell["tokens"]),
                *(f"{by[s]['owner']} {readings(by[s]['readings'])}" if s in by else "–" for s in stages),
                readings(cell["readings"]),
            )
        )
    columns = ("held by", "documents", "tokens", *(f"stage {stage}" for stage in stages), "readings")
    routed = [
        f"{route['source']} routes {route['units']:,} longer units ({amount(route['tokens'])} tokens) to "
        f"{route['target']}, read in {', '.join(route['stages'])}"
        for route in family["routes"]
    ]
    caption = "; ".join([f"at most {family['allowed']} readings of a document", *routed])
    return table(f"folder of {name}: who reads its documents, and how often", columns, rows, caption=caption)
