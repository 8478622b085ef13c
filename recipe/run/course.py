"""The course of an open run: its stream, the run as manifests state it, and where it stands in its record."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from recipe.errors import RecipeError
from recipe.mixing.curriculum import Curriculum
from recipe.mixing.snapshot import Snapshot
from recipe.run.checkpoint import Writer
from recipe.run.folder import RunFolder
from recipe.run.standing import Standing
from recipe.run.state import State
from recipe.run.statement import Subject
from recipe.run.stream import RunStream


@dataclass(frozen=True, kw_only=True, slots=True)
class Course:
    """What a handle goes on with; a checkpoint or a turn gives another one."""

    folder: RunFolder
    stream: RunStream
    writer: Writer
    standing: Standing

    @property
    def subject(self) -> Subject:
        """The run, as its manifests state it."""
        return self.writer.subject

    @property
    def step(self) -> int:
        """Steps consumed: where the run was opened, then where its last checkpoint is."""
        return self.standing.opened.step

    def snapshot(self, step: Any) -> Snapshot:
        """The snapshot of a step of the run.

        Raises:
            RecipeError: the run has no such step, or ended before it.
        """
        if not 0 <= operator.index(step) <= self.stream.num_steps:
            raise self._refused(step, f"0..{self.stream.num_steps}, the steps of the run")
        try:
            return self.stream.snapshot(operator.index(step))
        except ValueError as error:
            end = self.stream.end_step
            raise self._refused(step, f"at most {end}, where a pool ran dry and the run ended") from error

    def snapshot_ahead(self, step: int) -> Snapshot:
        """The snapshot of a step that a checkpoint may be written at: not behind the handle.

        Raises:
            RecipeError: it is behind, or as :meth:`snapshot`.
        """
        if operator.index(step) < self.step:
            at = f"{self.step}..{self.stream.num_steps}: this handle stands at {self.step}"
            raise self._refused(step, at)
        end, recipe = self.snapshot(step), self.subject.recipe
        may_run_dry = any(recipe.exhaustion(name) != "repeat" for name in recipe.pools)
        if end.step < self.stream.num_steps and may_run_dry:
            for _ in self.stream.walk(end, end.step + 1):
                pass  # whether a pool runs dry right here shows in the step after
            end = self.stream.snapshot(end.step)
        return end

    def state_at(self, at: Snapshot) -> State:
        """What a trainer saves to go on from a snapshot.

        Raises:
            RecipeError: the run turned after it.
        """
        subject = self.subject
        if at.step < subject.turn.step:
            fix = "open the run at that step for a state of it"
            expected = f"a step from {subject.turn.step} on, where the run last turned"
            raise RecipeError.single(str(self.folder.path), "step", given=at.step, expected=expected, fix=fix)
        return State(
            run=subject.name,
            version=subject.version,
            recipe=subject.recipe,
            holdings=subject.holdings,
            turn=subject.turn,
            withdrawn=subject.withdrawn,
            snapshot=at,
        )

    def _refused(self, step: object, expected: str) -> RecipeError:
        return RecipeError.single(
            f"{self.folder.path}: no step {step} to put on record",
            "step",
            given=step,
            expected=expected,
            fix="say how many steps the weights have consumed; for an older step, open the run there",
        )


def stage_at(curriculum: Curriculum, snapshot: Snapshot) -> str | None:
    """The stage of the step after a snapshot; None when no step is left."""
    if snapshot.ended or snapshot.step == curriculum.num_steps:
        return None
    return curriculum.stages[curriculum.stretch(snapshot.step).stage].name
