"""Steps and positions of a whole run: a function of the recipe, before any data is read."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from recipe.config import Recipe
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
class StageLayout:
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
            if stage.chunk is None:
                raise ValueError(f"stage {name!r} has no chunk: settle the recipe first")
            for steady in span.stretches:
                place = (step, steady.steps, position, sequence)
                stretches.append(Stretch(index, *place, steady.sequences, stage.context))
                step, sequence = step + steady.steps, sequence + steady.steps * steady.sequences
                position += steady.steps * steady.sequences * stage.context
            race = Race.from_shares(list(recipe.shares(name).values()), stage.context)
            size = (span.start, position - span.start, span.stated)
            layouts.append(
                StageLayout(name, stage.context, first_step, step - first_step, *size, stage.chunk, race)
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
        for stretch in self.stretches[bisect_right(self._firsts, step) - 1 :]:
            if stretch.stage != here.stage:
                break
            steps = -(-(target - stretch.first_position) // stretch.step_positions)
            if steps <= stretch.num_steps:
                return stretch.first_step + max(steps, 0)
        return layout.stop_step
