"""What a benchmark says: one number, what it was measured against in the same run, and its goal."""

from __future__ import annotations

import json
import operator
import os
import platform
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numba
import numpy as np

CMP = {">=": operator.ge, "<=": operator.le}


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One measured number.

    ``goal`` is written as ``">= 0.8"``; empty where there is none. ``spread`` is the smallest and the
    largest of the slices; ``beside`` holds whatever else was seen in the same run.
    """

    name: str
    value: float
    unit: str
    goal: str = ""
    spread: tuple[float, float] | None = None
    against: str = ""
    beside: dict[str, float] = field(default_factory=dict)

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None without one."""
        if not self.goal:
            return None
        sign, number = self.goal.split()
        return bool(CMP[sign](self.value, float(number)))


def table(figures: Iterable[Figure]) -> str:
    """The figures as text, one a line."""
    rows = [("figure", "value", "goal", "", "slices", "against; beside")]
    for one in figures:
        mark = {None: "", True: "reached", False: "MISSED"}[one.reached]
        spread = "" if one.spread is None else f"{_short(one.spread[0])}–{_short(one.spread[1])}"
        beside = ", ".join(f"{key} {_short(value)}" for key, value in one.beside.items())
        told = "; ".join(text for text in (one.against, beside) if text)
        rows.append((one.name, f"{_short(one.value)} {one.unit}", one.goal, mark, spread, told))
    widths = [max(len(row[k]) for row in rows) for k in range(5)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[5]]).rstrip()
        for row in rows
    )


def _short(value: float) -> str:
    if value and abs(value) < 0.001:
        return f"{value:.1e}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def machine() -> dict[str, object]:
    """Where the figures were measured."""
    return {
        "python": sys.version.split()[0],
        "numpy": np.__version__,
        "numba": numba.__version__,
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "system": platform.system(),
        "load": [round(one, 2) for one in os.getloadavg()],
    }


def write_json(path: Path, figures: Iterable[Figure]) -> None:
    """The figures and the machine, for comparing runs."""
    plain = [{**asdict(one), "reached": one.reached} for one in figures]
    path.write_text(json.dumps({"machine": machine(), "figures": plain}, indent=2), encoding="utf-8")
