"""Steps and positions of a whole run: a function of the recipe, before any data is read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from recipe.config import Recipe, Stage
from recipe.errors import RecipeError
from recipe.maths.deadlines import Race


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
class Leg:
    """A stage laid out: its steps, positions and the race for its shares.

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
    race: Race

    @property
    def overshoot(self) -> int:
        """Positions of the last batch beyond the stated length; below one batch."""
        return self.positions - self.length


@dataclass(frozen=True)
class Curriculum:
    """The stages of a run, laid out in steps."""

    legs: tuple[Leg, ...]
    stretches: tuple[Stretch, ...]

    @classmethod
    def from_recipe(cls, recipe: Recipe) -> Curriculum:
        """Lay out a settled recipe.

        Raises:
            RecipeError: a stage ends before it begins (``until``), or its chunk is below its largest batch.
        """
        legs: list[Leg] = []
        stretches: list[Stretch] = []
        step = position = sequence = 0
        for index, (name, stage) in enumerate(recipe.stages.items()):
            here = list(_stretches(stage, index, (step, position, sequence)))
            if not here:
                raise RecipeError.single(
                    "recipe",
                    f"stages.{name}.until",
                    given=stage.until,
                    expected=f"more than {position}, the positions of the stages before",
                    fix="raise until, or leave the stage out",
                )
            last = here[-1]
            step = last.stop_step
            end = last.first_position + last.num_steps * last.step_positions
            length = _stated(stage, position, end)
            largest = max(stretch.step_positions for stretch in here)
            chunk = stage.chunk if stage.chunk is not None else default_chunk(length, largest)
            if chunk < largest:
                raise RecipeError.single(
                    "recipe",
                    f"stages.{name}.chunk",
                    given=chunk,
                    expected=f"at least {largest}, the stage's largest batch",
                    fix=f"raise the chunk to {largest}, or make the batch smaller",
                )
            race = Race.from_shares(list(recipe.shares(name).values()), stage.context)
            first = here[0].first_step
            legs.append(
                Leg(name, stage.context, first, step - first, position, end - position, length, chunk, race)
            )
            stretches.extend(here)
            sequence = last.first_sequence + last.num_steps * last.batch
            position = end
        return cls(tuple(legs), tuple(stretches))

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
        return self.legs[-1].first_position + self.legs[-1].positions

    def stretch(self, step: int) -> Stretch:
        """The stretch that a step lies in.

        Raises:
            ValueError: the run has no such step.
        """
        if not 0 <= step < self.num_steps:
            raise ValueError(f"step {step} is outside 0..{self.num_steps - 1}")
        return self.stretches[bisect_right(self._firsts, step) - 1]

    def positions_at(self, step: int) -> int:
        """Positions of the run consumed before a step (``num_steps``: all)."""
        if step == self.num_steps:
            return self.positions
        here = self.stretch(step)
        return here.first_position + (step - here.first_step) * here.step_positions

    def chunk_close(self, step: int) -> int:
        """The first step boundary after ``step`` that closes a chunk: a batch end, or the stage's end."""
        here = self.stretch(step)
        leg = self.legs[here.stage]
        done = self.positions_at(step) - leg.first_position
        target = leg.first_position + (done // leg.chunk + 1) * leg.chunk
        for stretch in self.stretches[bisect_right(self._firsts, step) - 1 :]:
            if stretch.stage != here.stage:
                break
            steps = -(-(target - stretch.first_position) // stretch.step_positions)
            if steps <= stretch.num_steps:
                return stretch.first_step + max(steps, 0)
        return leg.first_step + leg.num_steps


def default_chunk(length: int, largest_batch: int) -> int:
    """Positions of a chunk where the recipe names none: max(one batch, min(1B, a twentieth)).

    >>> default_chunk(1_000_000, 4096)
    50000
    """
    return max(largest_batch, min(1_000_000_000, -(-length // 20)))


def _stated(stage: Stage, first_position: int, end: int) -> int:
    if stage.tokens is not None:
        return stage.tokens
    return end - first_position if stage.steps is not None else (stage.until or 0) - first_position


def _stretches(stage: Stage, index: int, start: tuple[int, int, int]) -> Iterator[Stretch]:
    """The stretches of one stage from (step, position, sequence) on."""
    step, position, sequence = start
    keys = [key for key, _ in stage.ramp]
    steps_left = stage.steps
    end = position + stage.tokens if stage.tokens is not None else stage.until
    while steps_left != 0 and (end is None or position < end):
        at = bisect_right(keys, position) - 1
        batch = stage.ramp[at][1]
        size = batch * stage.context
        limits = [] if steps_left is None else [steps_left]
        if at + 1 < len(keys):
            limits.append(-(-(keys[at + 1] - position) // size))
        if end is not None:
            limits.append(-(-(end - position) // size))
        num_steps = min(limits)
        yield Stretch(index, step, num_steps, position, sequence, batch, stage.context)
        step, position, sequence = step + num_steps, position + num_steps * size, sequence + num_steps * batch
        if steps_left is not None:
            steps_left -= num_steps
