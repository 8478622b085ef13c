"""What compared runs took, and what the rest of them will take, as a table."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group

from recipe.report.figures import amount
from recipe.report.tables import table
from recipe.run.comparing.comparison import Comparison, RunAtStep

_COLUMNS = (
    "run",
    "device-\nhours",
    "positions\nper hour",
    "counted\nper hour",
    "device-hours\nof the rest",
    "time of\nthe rest",
)


def hours_table(comparison: Comparison) -> Iterator[Group]:
    """What the runs took, where one says so."""
    if all(run.gpu_hours is None for run in comparison.runs):
        return
    rows = [(run.label, *_cells(run)) for run in comparison.runs]
    caption = (
        "device-hours (of GPUs, or of a processor) as the trainers state them; rates and the rest by a run's "
        "last two checkpoints that do"
    )
    yield table("what it takes", _COLUMNS, rows, caption=caption)


def _cells(run: RunAtStep) -> tuple[str, ...]:
    """Its device-hours, its rates, and what the rest will take."""
    hours, rest = "–" if run.gpu_hours is None else f"{run.gpu_hours:,}", run.rest
    if rest is None:
        return hours, "–", "–", "–", "–"
    return (
        hours,
        amount(round(rest.measured.positions_per_gpu_hour)),
        amount(round(rest.measured.counted_per_gpu_hour)),
        figure(rest.gpu_hours),
        "–" if rest.seconds is None else duration(rest.seconds),
    )


def figure(value: float) -> str:
    """A number to four figures.

    >>> [figure(value) for value in (0.0, 12.34567, 123456.7)]
    ['0', '12.35', '123,457']
    """
    return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"


def duration(seconds: float) -> str:
    """A stretch of time in the unit that fits.

    >>> [duration(value) for value in (59, 5400, 200_000)]
    ['59 s', '1.5 h', '2.3 days']
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"
