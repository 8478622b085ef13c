"""Runs to compare: small ones, with checkpoints and metrics at the same steps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import recipe
from recipe.config import Recipe

STEPS = (4, 8, 12)


def started(recipe_: Recipe, path: Path, steps: Sequence[int] = STEPS, **metrics: Any) -> Path:
    """A run with checkpoints at some steps, a GPU-hour each; the last one has the metrics."""
    with recipe.start_run(recipe_, path) as run:
        advance(run, steps, metrics)
    return path


def advance(run: Any, steps: Sequence[int], metrics: Any) -> None:
    """Checkpoints at some steps; GPU-hours are a quarter of the step."""
    for step in steps:
        last = step == steps[-1]
        run.checkpoint(step, uri=f"ckpt/{step}", gpu_hours=step / 4, metrics=metrics if last else None)


def loss(value: float, **more: float) -> dict[str, Any]:
    """One metric of the area ``code``."""
    return {"code": {"loss": value, **more}}
