"""Margins: by how much a metric of another arm may be worse than that of the first.

``no_worse_than`` maps a metric to a margin in its own units. Worse is higher for a metric that is
better when lower, and the other way round. Values are compared as the decimals that were recorded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from recipe.errors import Problem, RecipeError
from recipe.run.canonical import Plain
from recipe.run.comparing.effects import Cell, Metric, find_metrics, none_of

Verdict = Literal["holds", "holds on the mean", "not shown", "violated"]
"""``holds on the mean``: no spread is known; ``not shown``: the mean is within the margin, the
interval's worse end is not."""

FIX = "write --no-worse-than code.loss=0.01: a metric, and a number in its units"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """A margin held against one arm."""

    metric: str
    margin: Fraction
    arm: str
    worse_by: Fraction | None
    """Than the first arm; negative: better. None where a value is not finite."""
    at_worst: float | None
    """The interval's worse end; None where no spread is known."""
    verdict: Verdict

    def to_plain(self) -> Plain:
        """As answers hold it."""
        return {
            "metric": self.metric,
            "margin": float(self.margin),
            "arm": self.arm,
            "worse_by": None if self.worse_by is None else float(self.worse_by),
            "at_worst": self.at_worst,
            "verdict": self.verdict,
        }


def read_margins(given: Mapping[str, object]) -> dict[str, Fraction]:
    """Margins by metric, exactly as they were written.

    Raises:
        RecipeError: one is no finite number.

    >>> read_margins({"code.loss": "0.01"})
    {'code.loss': Fraction(1, 100)}
    """
    margins: dict[str, Fraction] = {}
    problems = []
    for name, value in given.items():
        try:
            number = float(str(value))
            if isinstance(value, bool) or not math.isfinite(number):
                raise ValueError
            margins[name] = Fraction(str(value))
        except ValueError:
            problems.append(Problem(f"no_worse_than.{name}", value, "a number in the metric's units", FIX))
    if problems:
        raise RecipeError("margins that are none", problems)
    return margins


def judge(margins: Mapping[str, Fraction], metrics: Sequence[Metric]) -> list[Judgement]:
    """Every margin held against every arm but the first.

    Raises:
        RecipeError: a metric that is not there, or that one of the arms has not.
    """
    judged: list[Judgement] = []
    problems: list[Problem] = []
    for name, margin in margins.items():
        found = find_metrics(name, metrics)
        faults = [fault for metric in found for fault in _faults(metric)]
        problems += faults if found else [none_of(f"no_worse_than.{name}", name, metrics)]
        if not faults:
            judged += [_judgement(metric, margin, cell) for metric in found for cell in metric.cells[1:]]
    if problems:
        raise RecipeError("margins that cannot be held against these runs", problems)
    return judged


def _faults(metric: Metric) -> Iterator[Problem]:
    """Why a metric cannot be held against a margin."""
    if len(metric.cells) < 2:
        fix = "compare with a run that differs in more than its seed"
        yield Problem(metric.name, "one arm", "arms to hold against the first", fix)
    elif lacking := [cell.arm for cell in metric.cells if not cell.values]:
        fix = "attach the metric (recipe attach), or compare at another step"
        yield Problem(metric.name, f"none for {', '.join(lacking)}", "a value for each arm", fix)


def _judgement(metric: Metric, margin: Fraction, cell: Cell) -> Judgement:
    delta = cell.delta
    worse_by = None if delta is None else metric.worse_by(delta)
    half = None if delta is None else delta.half_width
    at_worst = None if worse_by is None or half is None else float(worse_by) + half
    verdict: Verdict = "holds"
    if worse_by is None:
        # Only where the first arm is the one without a finite value is the other no worse.
        verdict = "violated" if cell.estimate is None else "holds"
    elif worse_by > margin:
        verdict = "violated"
    elif at_worst is None:
        verdict = "holds on the mean"
    elif at_worst > float(margin):
        verdict = "not shown"
    return Judgement(
        metric=metric.name,
        margin=margin,
        arm=cell.arm,
        worse_by=worse_by,
        at_worst=at_worst,
        verdict=verdict,
    )
