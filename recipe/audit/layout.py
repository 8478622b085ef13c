"""Steps, positions, legs and chunks of a run, laid out anew from its recipe.

Written apart from the layout that the stream uses: a place is found from its position alone, not by
following the stream's walk.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, lcm

from recipe.config import Recipe, Stage
from recipe.maths.rounding import owed


@dataclass(frozen=True, slots=True)
class Plateau:
    """Steps of one stage with one batch size."""

    first_step: int
    num_steps: int
    first_position: int
    batch: int


@dataclass(frozen=True, slots=True)
class Leg:
    """Constant shares of the pools, over their sum, from a place in a stage on."""

    begin: int
    """Positions of the stage from which it is planned."""
    first_step: int
    """Step of the run that it is served from: the first batch end at or after ``begin``."""
    parts: tuple[int, ...]

    @property
    def whole(self) -> int:
        """The denominator of the shares."""
        return sum(self.parts)


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
    legs: tuple[Leg, ...]
    """One; several where the shares change in steps."""

    @property
    def first_step(self) -> int:
        """First step of the stage."""
        return self.plateaus[0].first_step

    @property
    def first_position(self) -> int:
        """Positions of the run before the stage."""
        return self.plateaus[0].first_position

    def _plateau(self, step: int) -> Plateau:
        if len(self.plateaus) == 1:
            return self.plateaus[0]
        return self.plateaus[bisect_right(self.plateaus, step, key=lambda p: p.first_step) - 1]

    def end_at(self, position: int) -> int:
        """The first batch end of the stage at or after a position of the run, or the end of the stage."""
        before = bisect_left(self.plateaus, position, key=lambda p: p.first_position) - 1
        if before < 0:
            return self.first_step
        here = self.plateaus[before]
        steps = -((here.first_position - position) // (here.batch * self.context))
        return min(here.first_step + steps, self.stop_step)

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

    def leg_of(self, step: int) -> int:
        """Index of the leg that a step of the stage is served in."""
        return bisect_right(self.legs, step, key=lambda leg: leg.first_step) - 1

    def leg_before(self, step: int) -> int:
        """Index of the leg that a state at ``step`` stands in: the next is entered with its first step."""
        return self.leg_of(max(step - 1, self.first_step))

    def planned(self, start: int, stop: int) -> list[int]:
        """Tokens planned by pool between two places of the stated length, by the shares of each leg."""
        total = [0] * len(self.legs[0].parts)
        for leg, after in zip(self.legs, (*self.legs[1:], None), strict=True):
            a, b = max(start, leg.begin), stop if after is None else min(stop, after.begin)
            if a < b:
                before, here = (_owed(leg.parts, at - leg.begin) for at in (a, b))
                total = [x + y - z for x, y, z in zip(total, here, before, strict=True)]
        return total

    def drawn(self, start: int, stop: int) -> list[bool]:
        """By pool: whether it has a share in any leg that steps ``start..stop - 1`` are served in."""
        legs = self.legs[self.leg_of(start) : self.leg_of(max(start, stop - 1)) + 1]
        return [any(parts) for parts in zip(*(leg.parts for leg in legs), strict=True)]

    def close_of(self, chunk: int) -> int:
        """The first batch end at which chunk ``chunk`` is full, or the end of the stage."""
        return self.end_at(self.first_position + (chunk + 1) * self.chunk)

    def closed_by(self, step: int) -> int:
        """Chunks closed when ``step`` steps of the run are consumed; the stage's end closes its last one."""
        full = (self.positions_at(step) - self.first_position) // self.chunk
        return full + (step == self.stop_step and self.close_of(full - 1) < step)


@lru_cache(64)
def _owed(parts: tuple[int, ...], tokens: int) -> list[int]:
    """Tokens owed by shares; rows follow each other, so every place is asked for twice."""
    return owed(parts, sum(parts), tokens)


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
    bare = StageLayout(name, stage.context, plateaus, stop[0], stop[1], length, stage.chunk, ())
    return replace(bare, legs=tuple(_legs(recipe, bare)))


def _legs(recipe: Recipe, layout: StageLayout) -> Iterable[Leg]:
    """The legs of a stage, each from the first batch end at or after its place."""
    for leg in recipe.legs(layout.name):
        begin = ceil(leg.start)
        step = layout.end_at(layout.first_position + begin)
        yield Leg(begin, step, whole_parts(list(leg.shares.values())))


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
