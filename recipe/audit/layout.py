"""Steps, positions and chunks of a run, laid out anew from its recipe.

Written apart from the layout that the stream uses: places are found by searching monotone
functions of the step, not by following the stream's walk.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from math import lcm

from recipe.config import Recipe, Stage


@dataclass(frozen=True, slots=True)
class Plateau:
    """Steps of one stage with one batch size."""

    first_step: int
    num_steps: int
    first_position: int
    batch: int


@dataclass(frozen=True, slots=True)
class StageLayout:
    """One stage: steps ``first_step..stop_step - 1``, positions ``first_position..stop_position - 1``."""

    name: str
    context: int
    plateaus: tuple[Plateau, ...]
    stop_step: int
    stop_position: int
    length: int
    """Stated length in positions; the whole batches may hold more."""
    chunk: int
    parts: tuple[int, ...]
    """Shares of the pools over their sum."""

    @property
    def first_step(self) -> int:
        """First step of the stage."""
        return self.plateaus[0].first_step

    @property
    def first_position(self) -> int:
        """Positions of the run before the stage."""
        return self.plateaus[0].first_position

    def _plateau(self, step: int) -> Plateau:
        return self.plateaus[bisect_right(self.plateaus, step, key=lambda p: p.first_step) - 1]

    def positions_at(self, step: int) -> int:
        """Positions of the run consumed when ``step`` steps of it are."""
        here = self._plateau(step)
        return here.first_position + (step - here.first_step) * here.batch * self.context

    def sequences_between(self, start: int, stop: int) -> int:
        """Sequences of steps ``start..stop - 1``."""
        return (self.positions_at(stop) - self.positions_at(start)) // self.context

    def whole_steps(self, start: int, sequences: int) -> int:
        """The last step boundary reached ``sequences`` sequences after step ``start``."""
        reached = self.positions_at(start) + sequences * self.context
        return bisect_right(range(self.stop_step + 1), reached, lo=start, key=self.positions_at) - 1

    def close_of(self, chunk: int) -> int:
        """The first batch end at which chunk ``chunk`` is full, or the end of the stage."""
        full = self.first_position + (chunk + 1) * self.chunk
        steps = range(self.stop_step)
        return bisect_left(steps, full, lo=self.first_step, key=self.positions_at)

    def closed_by(self, step: int) -> int:
        """Chunks closed when ``step`` steps of the run are consumed; the stage's end closes its last one."""
        full = (self.positions_at(step) - self.first_position) // self.chunk
        return full + (step == self.stop_step and self.close_of(full - 1) < step)


def lay_out(recipe: Recipe) -> tuple[StageLayout, ...]:
    """The stages of a settled recipe in steps and positions.

    Raises:
        ValueError: the recipe is not settled.
    """
    layouts: list[StageLayout] = []
    step = position = 0
    for name, stage in recipe.stages.items():
        plateaus: list[Plateau] = []
        begin = position
        while (left := _steps_left(stage, position - begin, position, plateaus)) != 0:
            batch, change = _batch(stage, position)
            size = batch * stage.context
            steps = left if change is None else min(left, -((position - change) // size))
            plateaus.append(Plateau(step, steps, position, batch))
            step, position = step + steps, position + steps * size
        layouts.append(_stage_layout(recipe, name, tuple(plateaus), (step, position)))
    return tuple(layouts)


def _batch(stage: Stage, position: int) -> tuple[int, int | None]:
    """Sequences of a batch that begins at a position, and the position where that changes next."""
    batch = next(size for at, size in reversed(stage.ramp) if at <= position)
    return batch, next((at for at, _ in stage.ramp if at > position), None)


def _steps_left(stage: Stage, done: int, position: int, plateaus: list[Plateau]) -> int:
    """Steps of a stage still to come, if the batch stayed as it is."""
    if stage.steps is not None:
        return stage.steps - sum(plateau.num_steps for plateau in plateaus)
    missing = stage.tokens - done if stage.tokens is not None else (stage.until or 0) - position
    size = _batch(stage, position)[0] * stage.context
    return max(0, -(-missing // size))


def _stage_layout(
    recipe: Recipe, name: str, plateaus: tuple[Plateau, ...], stop: tuple[int, int]
) -> StageLayout:
    stage = recipe.stages[name]
    begin = plateaus[0].first_position
    length = stop[1] - begin
    if stage.tokens is not None:
        length = stage.tokens
    elif stage.until is not None:
        length = stage.until - begin
    if stage.chunk is None:
        raise ValueError(f"stage {name!r} has no chunk: a stored recipe has")
    parts = whole_parts(list(recipe.shares(name).values()))
    return StageLayout(name, stage.context, plateaus, stop[0], stop[1], length, stage.chunk, parts)


def whole_parts(shares: list[Fraction]) -> tuple[int, ...]:
    """Shares as the smallest whole numbers with the same proportions; their sum is the denominator.

    >>> whole_parts([Fraction(77, 125), Fraction(48, 125)])
    (77, 48)
    """
    denominator = lcm(*(share.denominator for share in shares))
    return tuple(share.numerator * (denominator // share.denominator) for share in shares)


def stage_at(layouts: tuple[StageLayout, ...], step: int) -> int:
    """Index of the stage that step ``step`` belongs to; the number of stages when all steps are done."""
    return bisect_right([layout.stop_step for layout in layouts], step)
