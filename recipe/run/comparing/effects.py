"""What arms differ in: every metric's mean by arm, and its difference to the first, with intervals.

Arms with the same seeds are compared pair by pair: the runs of a seed share their chance (common
random numbers), so what both owe to it cancels out. Others are compared by Welch's test. Below three
seeds no spread is known, and none is stated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from typing import Any

from recipe.errors import Problem
from recipe.maths.intervals import Estimate, estimate, independent_difference, paired_difference
from recipe.run.canonical import Plain
from recipe.run.comparing.arms import Arm, Seeds
from recipe.run.comparing.measured import Direction, better, exact

Number = int | float | str
"""A recorded number; the texts ``nan``, ``inf`` and ``-inf`` stand for what is not finite."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One metric of one arm."""

    arm: str
    values: Mapping[int, Number]
    """By place of the run in the comparison; runs without the metric are left out."""
    estimate: Estimate | None
    """None without a value, or with one that is not finite."""
    delta: Estimate | None = None
    """Against the first arm; None for that one itself, and where either has no estimate."""
    paired: bool = False
    """Whether the difference was taken seed by seed."""

    def to_plain(self) -> Plain:
        """As answers hold it."""
        return {
            "arm": self.arm,
            "count": len(self.values),
            **_estimate_to_plain(self.estimate),
            "delta": self.delta and {**_estimate_to_plain(self.delta), "paired": self.paired},
        }


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric over all arms."""

    set: str
    key: str
    better: Direction
    cells: tuple[Cell, ...]

    @property
    def name(self) -> str:
        """``SET.NAME``."""
        return f"{self.set}.{self.key}"

    def worse_by(self, delta: Estimate) -> Fraction:
        """By how much a difference is for the worse; negative: for the better."""
        return delta.mean if self.better == "lower" else -delta.mean

    def to_plain(self) -> Plain:
        """As answers hold it."""
        arms = [cell.to_plain() for cell in self.cells]
        for cell, plain in zip(self.cells, arms, strict=True):
            if cell.delta is not None:
                plain["delta"]["worse_by"] = float(self.worse_by(cell.delta))
        return {"set": self.set, "name": self.key, "better": self.better, "arms": arms}


def effects(
    arms: Sequence[Arm], metrics: Sequence[Mapping[str, Plain]], directions: Mapping[str, Direction]
) -> list[Metric]:
    """Every metric that some run has, by set and name.

    Args:
        arms: the first is what the others are compared with.
        metrics: of every run, ``{set: {name: value}}``.
        directions: by ``NAME`` or ``SET.NAME``, where the rule of names is not meant.
    """
    return [
        Metric(
            set=set_name,
            key=key,
            better=directions.get(f"{set_name}.{key}") or directions.get(key) or better(key),
            cells=tuple(_cells(arms, [told.get(set_name, {}).get(key) for told in metrics])),
        )
        for set_name, key in _names(metrics)
    ]


def find_metrics(name: str, metrics: Sequence[Metric]) -> list[Metric]:
    """The metric of a ``SET.NAME``, or those of a ``NAME`` in every set."""
    exactly = [metric for metric in metrics if metric.name == name]
    return exactly or [metric for metric in metrics if metric.key == name]


def none_of(where: str, name: str, metrics: Sequence[Metric]) -> Problem:
    """The problem that no such metric was measured."""
    known = sorted({metric.name for metric in metrics})
    near = get_close_matches(name, known, n=1)
    return Problem(
        where,
        name,
        f"a metric at this step that may be seen: {', '.join(known) or 'there is none'}",
        f"did you mean {near[0]!r}?" if near else "name one of these as SET.NAME, or NAME for every set",
    )


def ranked(metric: Metric) -> list[Cell]:
    """The arms, best first; without a finite value last."""
    sign = 1 if metric.better == "lower" else -1
    finite = [cell for cell in metric.cells if cell.estimate is not None]
    rest = [cell for cell in metric.cells if cell.estimate is None]
    return [*sorted(finite, key=lambda cell: sign * cell.estimate.mean if cell.estimate else 0), *rest]


def _names(metrics: Sequence[Mapping[str, Plain]]) -> list[tuple[str, str]]:
    """Sets and names in the order of their first mention."""
    found = {(name, key): None for told in metrics for name, values in told.items() for key in values}
    order = {name: place for place, name in enumerate(dict.fromkeys(name for name, _ in found))}
    return sorted(found, key=lambda item: order[item[0]])


def _cells(arms: Sequence[Arm], values: Sequence[Number | None]) -> Iterator[Cell]:
    first: dict[Seeds, list[Fraction]] | None = None
    for place, arm in enumerate(arms):
        mine = {run: value for run in arm.runs if (value := values[run]) is not None}
        by_seed = _by_seed(arm, mine)
        made = None if by_seed is None else estimate([v for each in by_seed.values() for v in each])
        delta, paired = (None, False) if not place else _difference(by_seed, first)
        yield Cell(arm=arm.name, values=mine, estimate=made, delta=delta, paired=paired)
        first = by_seed if not place else first


def _by_seed(arm: Arm, values: Mapping[int, Number]) -> dict[Seeds, list[Fraction]] | None:
    """Exact values by seed; None when there is none, or one is not finite."""
    found: dict[Seeds, list[Fraction]] = {}
    for run, seeds in zip(arm.runs, arm.seeds, strict=True):
        if run in values:
            number = exact(values[run])
            if number is None:
                return None
            found.setdefault(seeds, []).append(number)
    return found or None


def _difference(
    mine: dict[Seeds, list[Fraction]] | None, first: dict[Seeds, list[Fraction]] | None
) -> tuple[Estimate | None, bool]:
    """What an arm has more than the first one, and whether seed by seed."""
    if mine is None or first is None:
        return None, False
    one_each = all(len(each) == 1 for side in (mine, first) for each in side.values())
    if one_each and mine.keys() == first.keys():
        return paired_difference([mine[seed][0] for seed in first], [first[seed][0] for seed in first]), True
    sides = [[value for each in side.values() for value in each] for side in (mine, first)]
    return independent_difference(sides[0], sides[1]), False


def _estimate_to_plain(made: Estimate | None) -> dict[str, Any]:
    if made is None:
        return {"mean": None, "spread": None, "half_width": None}
    return {"mean": float(made.mean), "spread": made.spread, "half_width": made.half_width}
