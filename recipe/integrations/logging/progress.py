"""Numbers of a run at a step, by the names they have in a log, and what the run is called there."""

from __future__ import annotations

from fractions import Fraction

from recipe.config.identity import fingerprint
from recipe.errors import RecipeError
from recipe.run.manifests import run_manifests
from recipe.run.run import Run
from recipe.run.stream import RunStream


def progress(stream: RunStream, step: int) -> dict[str, float | int]:
    """Where the run stands with steps ``0..step - 1`` consumed, over all ranks: log it on one.

    Taken from the stream's snapshot, as a checkpoint there would be: what the trainer's tokens were, none of
    held-out sets, and every row once however many replicas of the model there are.

    Returns:
        ``recipe/step``, ``recipe/stage`` (index), ``recipe/context``, ``recipe/positions``; for every pool
        ``recipe/tokens/<pool>`` (the counted kind), ``recipe/labels/<pool>``, ``recipe/epochs/<pool>``
        (readings completed), ``recipe/debt/<pool>`` (tokens ahead of its share, or behind), and, once a token
        was counted, ``recipe/share/<pool>`` and ``recipe/planned_share/<pool>`` of the run so far.

    Raises:
        ValueError: the run has no such step, or ended before it.
    """
    at = stream.snapshot(step)
    stage = stream.recipe.stages[list(stream.recipe.stages)[at.stage]]
    found: dict[str, float | int] = {
        "recipe/step": at.step,
        "recipe/stage": at.stage,
        "recipe/context": stage.context,
        "recipe/positions": at.positions,
    }
    spent, owed = sum(pool.spent for pool in at.pools), sum(pool.owed for pool in at.pools)
    for name, pool in zip(stream.pools, at.pools, strict=True):
        found[f"recipe/tokens/{name}"] = pool.spent
        found[f"recipe/labels/{name}"] = pool.labels
        found[f"recipe/epochs/{name}"] = pool.cursor.epoch
        found[f"recipe/debt/{name}"] = pool.spent - pool.owed
        if spent and owed:
            found[f"recipe/share/{name}"] = float(Fraction(pool.spent, spent))
            found[f"recipe/planned_share/{name}"] = float(Fraction(pool.owed, owed))
    return found


def identity(run: Run) -> dict[str, str]:
    """What a log calls the run: its name and place, its recipe's fingerprint, its last manifest (0: none)."""
    last = run_manifests(run.path, 1)
    return {
        "recipe.run": run.name,
        "recipe.path": str(run.path.resolve()),
        "recipe.fingerprint": fingerprint(run.recipe),
        "recipe.manifest": str(last[0].manifest if last else 0),
        "recipe.step": str(run.step),
    }


def missing(package: str) -> RecipeError:
    """The error where a logger's package is not installed."""
    return RecipeError.single(
        "a log that cannot be written",
        package,
        given="not installed",
        expected=f"the package {package}",
        fix=f"pip install {package}, or leave this log out",
    )
