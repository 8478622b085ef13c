"""Steps and positions of a whole run: a function of the recipe, before any data is read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil

from recipe.config import Recipe
from recipe.maths.deadlines import Race
from recipe.maths.rounding import allotments


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive steps of one stage whose batches have one size."""

    stage: int
    first_step: int
    num_steps: int
    first_position: int
    first_sequence: int
    batch: int
    context: int

    @property
    def step_positions(self) -> int:
        """Positions of one step."""
        return self.batch * self.context

    @property
    def stop_step(self) -> int:
        """The step after the last one."""
        return self.first_step + self.num_steps


@dataclass(frozen=True, slots=True)
class LegLayout:
    """A leg laid out: constant shares from a step of its stage on."""

    first_step: int
    """The first batch end at or after the leg's stated beginning."""
    planned_from: int
    """Positions of the stage at which it is planned to begin."""
    race: Race


@dataclass(frozen=True, slots=True)
class StageLayout:
    """A stage laid out: its steps, positions and the legs in which its pools race for their shares.

    ``length`` is the stated length in positions; ``positions`` what its whole batches hold.
    """

    name: str
    context: int
    first_step: int
    num_steps: int
    first_position: int
    positions: int
    length: int
    chunk: int
    legs: tuple[LegLayout, ...]
    """One, or several where shares change in steps (``quota_ramp``)."""

    @property
    def race(self) -> Race:
        """The race for the stage's own shares: those of its last leg."""
        return self.legs[-1].race

    def leg(self, step: int) -> int:
        """Index of the leg that a step of the stage lies in; two that begin at one step are one."""
        return bisect_right(self.legs, step, key=lambda leg: leg.first_step) - 1

    def planned(self, start: int, stop: int) -> list[int]:
        """Tokens planned by pool between two positions of the stage's stated length; they sum to that."""
        total = [0] * len(self.race.parts)
        ends = [*(leg.planned_from for leg in self.legs[1:]), max(stop, self.length)]
        for leg, end in zip(self.legs, ends, strict=True):
            begin = leg.planned_from
            a, b = max(start, begin), min(stop, end)
            if a < b:
                more = allotments(leg.race.parts, leg.race.denominator, a - begin, b - begin)
                total = [x + y for x, y in zip(total, more, strict=True)]
        return total

    @property
    def mean_shares(self) -> list[Fraction]:
        """By pool: its share of the stage's stated length, over all legs."""
        total = [Fraction(0)] * len(self.race.parts)
        ends = [*(leg.planned_from for leg in self.legs[1:]), self.length]
        for leg, end in zip(self.legs, ends, strict=True):
            weight = Fraction(max(0, min(end, self.length) - leg.planned_from), self.length)
            parts = zip(total, leg.race.parts, strict=True)
            total = [mean + weight * Fraction(part, leg.race.denominator) for mean, part in parts]
        return total

    @property
    def stop_step(self) -> int:
        """The step after the last one."""
        return self.first_step + self.num_steps

    @property
    def overshoot(self) -> int:
        """Positions of the last batch beyond the stated length; below one batch."""
        return self.positions - self.length


@dataclass(frozen=True)
class Curriculum:
    """The stages of a run, laid out in steps."""

    stages: tuple[StageLayout, ...]
    stretches: tuple[Stretch, ...]

    @classmethod
    def from_recipe(cls, recipe: Recipe) -> Curriculum:
        """Lay out a settled recipe.

        Raises:
            ValueError: the recipe is not settled.
        """
        layouts: list[StageLayout] = []
        stretches: list[Stretch] = []
        step = sequence = 0
        for index, (name, span) in enumerate(recipe.spans.items()):
            stage, first_step, position = recipe.stages[name], step, span.start
            begun = len(stretches)
            if stage.chunk is None:
                raise ValueError(f"stage {name!r} has no chunk: settle the recipe first")
            for steady in span.stretches:
                place = (step, steady.steps, position, sequence)
                stretches.append(Stretch(index, *place, steady.sequences, stage.context))
                step, sequence = step + steady.steps, sequence + steady.steps * steady.sequences
                position += steady.steps * steady.sequences * stage.context
            legs = _legs(recipe, name, stretches[begun:], first_step)
            size = (span.start, position - span.start, span.stated)
            layouts.append(
                StageLayout(name, stage.context, first_step, step - first_step, *size, stage.chunk, legs)
            )
        return cls(tuple(layouts), tuple(stretches))

    @cached_property
    def _firsts(self) -> list[int]:
        return [stretch.first_step for stretch in self.stretches]

    @property
    def num_steps(self) -> int:
        """Steps of the run."""
        return self.stretches[-1].stop_step

    @property
    def positions(self) -> int:
        """Positions of the run, the last batch included."""
        return self.stages[-1].first_position + self.stages[-1].positions

    def stretch(self, step: int) -> Stretch:
        """The stretch that a step lies in.

        Raises:
            ValueError: the run has no such step.
        """
        if not 0 <= step < self.num_steps:
            raise ValueError(f"step {step} is outside 0..{self.num_steps - 1}")
        return self.stretches[bisect_right(self._firsts, step) - 1]

    def step_of_sequence(self, sequence: int) -> int:
        """The step that holds a sequence of the run, counted from 0 in the order of the stream.

        Raises:
            ValueError: the run has no such sequence.
        """
        firsts = [stretch.first_sequence for stretch in self.stretches]
        stretch = self.stretches[bisect_right(firsts, sequence) - 1]
        step = stretch.first_step + (sequence - stretch.first_sequence) // stretch.batch
        if sequence < 0 or step >= stretch.stop_step:
            raise ValueError(f"sequence {sequence} is outside 0..{self.sequences_at(self.num_steps) - 1}")
        return step

    def sequences_at(self, step: int) -> int:
        """Sequences of the steps before a step."""
        stretch = self.stretch(max(step - 1, 0))
        return stretch.first_sequence + (step - stretch.first_step) * stretch.batch

    def positions_at(self, step: int) -> int:
        """Positions of the run consumed before a step (``num_steps``: all)."""
        if step == self.num_steps:
            return self.positions
        here = self.stretch(step)
        return here.first_position + (step - here.first_step) * here.step_positions

    def chunk_close(self, step: int) -> int:
        """The first step boundary after ``step`` that closes a chunk: a batch end, or the stage's end."""
        here = self.stretch(step)
        layout = self.stages[here.stage]
        done = self.positions_at(step) - layout.first_position
        target = layout.first_position + (done // layout.chunk + 1) * layout.chunk
        ahead = self.stretches[bisect_right(self._firsts, step) - 1 :]
        return _batch_end([stretch for stretch in ahead if stretch.stage == here.stage], target)

    def change(self, step: int) -> int:
        """The first step after ``step`` at which its leg or its batch is over."""
        here = self.stretch(step)
        layout = self.stages[here.stage]
        after = layout.leg(step) + 1
        return min([here.stop_step, *(leg.first_step for leg in layout.legs[after : after + 1])])


def _batch_end(stretches: Sequence[Stretch], position: int) -> int:
    """The first batch end at or after a position of the run, or the end of these stretches of a stage."""
    for stretch in stretches:
        steps = -(-(position - stretch.first_position) // stretch.step_positions)
        if steps <= stretch.num_steps:
            return stretch.first_step + max(steps, 0)
    return stretches[-1].stop_step


def _legs(recipe: Recipe, name: str, stretches: Sequence[Stretch], first_step: int) -> tuple[LegLayout, ...]:
    """The legs of a stage; one whose place holds no batch begins where the next one does."""
    context, begin = recipe.stages[name].context, recipe.spans[name].start
    legs = []
    for leg in recipe.legs(name):
        start = ceil(leg.start)
        step = _batch_end(stretches, begin + start) if start else first_step
        legs.append(LegLayout(step, start, Race.from_shares(list(leg.shares.values()), context)))
    assert all(a.first_step <= b.first_step for a, b in pairwise(legs)), legs
    return tuple(legs)
