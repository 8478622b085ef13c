"""Which shares were in force over which steps of a stage, and what they plan: by recipe version and leg."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import zip_longest

from recipe.config import Recipe
from recipe.mixing.curriculum import Curriculum, StageLayout
from recipe.run.accounts import Closing
from recipe.run.canonical import Plain
from recipe.run.folder import RunFolder, read_version
from recipe.run.head import closing_of
from recipe.run.row import Row


@dataclass(frozen=True)
class InForce:
    """A recipe version, and the place from which it was in force."""

    version: int
    recipe: Recipe
    curriculum: Curriculum
    since: Closing

    @property
    def step(self) -> int:
        """The first step that it holds for."""
        return self.since.snapshot.step

    def planned_from(self, stage: int) -> int:
        """Positions of a stage that versions before it plan for."""
        return self.since.planned_to if stage == self.since.stage else 0


def versions_in_force(folder: RunFolder, rows: Sequence[Row]) -> list[InForce]:
    """The recipe versions of a record, first to last.

    Args:
        folder: of the run.
        rows: those that no rewind discarded, last first.
    """
    found = []
    for row in reversed(rows):
        if row.kind in ("created", "amend"):
            version = int(row.data["recipe"])
            recipe = read_version(folder, version).recipe
            since = closing_of(row, list(recipe.stages))
            found.append(InForce(version, recipe, Curriculum.from_recipe(recipe), since))
    return found


def legs_in_force(versions: Sequence[InForce], stage: int) -> list[Plain]:
    """Stretches of a stage with constant shares, in order: steps, recipe version, shares, tokens planned.

    What versions have planned is fixed; the last one plans the rest of the stage's stated length.
    """
    legs: list[Plain] = []
    for now, after in zip_longest(versions, versions[1:]):
        if now.since.stage > stage or (after is not None and after.since.stage < stage):
            continue
        layout = now.curriculum.stages[stage]
        grid, steps = [now.planned_from(stage), layout.length], [now.step, layout.stop_step]
        if after is not None and after.since.stage == stage:
            grid[1], steps[1] = after.since.planned_to, min(steps[1], after.step)
        legs += _legs(now, layout, grid, steps)
    return legs


def _legs(now: InForce, layout: StageLayout, grid: list[int], steps: list[int]) -> Iterator[Plain]:
    """The legs of one version in a part of a stage."""
    names, weights = list(now.recipe.pools), now.recipe.loss_weights(layout.name)
    for number, (place, after) in enumerate(zip_longest(layout.legs, layout.legs[1:])):
        first = max(steps[0], place.first_step)
        stop = steps[1] if after is None else min(steps[1], after.first_step)
        begin = max(grid[0], place.planned_from)
        end = grid[1] if after is None else min(grid[1], after.planned_from)
        if first >= stop and begin >= end:
            continue
        planned = layout.planned(begin, end) if begin < end else [0] * len(names)
        shares = (str(Fraction(part, place.race.denominator)) for part in place.race.parts)
        yield {
            "steps": [first, max(first, stop)],
            "recipe": now.version,
            "shares": dict(zip(names, shares, strict=True)),
            "planned": dict(zip(names, planned, strict=True)),
        } | ({} if weights is None else {"loss_weights": {k: str(v) for k, v in weights[number].items()}})
