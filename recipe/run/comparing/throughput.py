"""What a run was measured to need, and what the rest of it needs at that rate (GPU-hours and time).

Measured between two checkpoints that both state their GPU-hours: positions are what the hardware
works through, padding included, so the rest follows from the positions that are left; the counted
tokens per GPU-hour are what packing changes. Time is what the clock showed between the checkpoints,
pauses included. A stage of another context may run at another rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from recipe.config import recipe_from_plain
from recipe.mixing.curriculum import Curriculum
from recipe.run.canonical import Plain
from recipe.run.comparing.history import History, Point, read_history


@dataclass(frozen=True, kw_only=True, slots=True)
class Throughput:
    """What was measured between two checkpoints."""

    steps: tuple[int, int]
    positions: int
    counted: int
    """Tokens that quotas are counted in: what is left of the positions without padding and marks."""
    gpu_hours: float
    seconds: float | None
    """By the clock of whoever wrote the checkpoints; None where it did not go on."""

    @property
    def positions_per_gpu_hour(self) -> float:
        """Positions, padding included."""
        return self.positions / self.gpu_hours

    @property
    def counted_per_gpu_hour(self) -> float:
        """Counted tokens: with packing more of the positions are counted tokens."""
        return self.counted / self.gpu_hours

    def rest(self, positions: int) -> Rest:
        """What so many positions need at this rate."""
        part = positions / self.positions
        seconds = None if self.seconds is None else self.seconds * part
        return Rest(positions=positions, gpu_hours=self.gpu_hours * part, seconds=seconds, measured=self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rest:
    """What is left of a run, at the rate that was measured."""

    positions: int
    gpu_hours: float
    seconds: float | None
    measured: Throughput

    def to_plain(self) -> Plain:
        """As answers hold it, with the two rates."""
        plain: Plain = asdict(self)
        plain["measured"]["steps"] = list(self.measured.steps)
        plain["measured"]["positions_per_gpu_hour"] = self.measured.positions_per_gpu_hour
        plain["measured"]["counted_per_gpu_hour"] = self.measured.counted_per_gpu_hour
        return plain


def rest_of_run(path: str | Path, positions: int | None = None) -> Rest | None:
    """GPU-hours and time of what is left of a run, from its last two checkpoints that state GPU-hours.

    Args:
        path: the run's folder.
        positions: that are left; default: those of the recipe in force after the last checkpoint.

    Returns:
        None where no two checkpoints of different steps state rising GPU-hours.

    Raises:
        RecipeError: no run, or a damaged record.
    """
    history = read_history(path)
    return rest_at(history, max((point.step for point in history.points), default=0), positions)


def rest_at(history: History, step: int, positions: int | None = None) -> Rest | None:
    """As :func:`rest_of_run`, as if the checkpoint at ``step`` were the run's last."""
    pair = _pair([point for point in history.points if point.step <= step])
    if pair is None:
        return None
    if positions is None:
        positions = _positions_left(history.manifest(history.at(step)[-1]), step)
    return _between(history, *pair).rest(positions)


def _positions_left(manifest: Plain, step: int) -> int:
    if manifest["snapshot"]["ended"]:
        return 0
    recipe = recipe_from_plain(manifest["recipe"]["resolved"], source="the manifest")
    curriculum = Curriculum.from_recipe(recipe)
    return curriculum.positions - curriculum.positions_at(step)


def _pair(points: Sequence[Point]) -> tuple[Point, Point] | None:
    """The last two checkpoints of different steps whose GPU-hours are stated and rise."""
    stated = sorted(
        (point for point in points if point.gpu_hours is not None), key=lambda at: (at.step, at.row)
    )
    last = stated[-1] if stated else None
    before = next((point for point in reversed(stated) if last is not None and point.step < last.step), None)
    if last is None or before is None or not (before.gpu_hours or 0) < (last.gpu_hours or 0):
        return None
    return before, last


def _between(history: History, start: Point, end: Point) -> Throughput:
    counted = [
        sum(pool["spent"] for pool in history.row(point).data["cumulative"].values())
        for point in (start, end)
    ]
    seconds = (datetime.fromisoformat(end.time) - datetime.fromisoformat(start.time)).total_seconds()
    return Throughput(
        steps=(start.step, end.step),
        positions=end.positions - start.positions,
        counted=counted[1] - counted[0],
        gpu_hours=float(end.gpu_hours or 0) - float(start.gpu_hours or 0),
        seconds=seconds if seconds > 0 else None,
    )
