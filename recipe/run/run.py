"""A run that is open: its stream, where it stands, and the checkpoints it puts on record."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from recipe.config import Recipe
from recipe.config.amending import amended
from recipe.mixing.ending import ending
from recipe.mixing.snapshot import Snapshot
from recipe.run.changing.approval import Approval
from recipe.run.changing.consulting import answer_if_due
from recipe.run.changing.turning import turn_course
from recipe.run.checkpoint import Writer
from recipe.run.course import Course, stage_at
from recipe.run.forgotten import forget_weights
from recipe.run.saving import PendingCheckpoint
from recipe.run.statement import Metrics, Statement
from recipe.run.stream import RunStream


class Run:
    """An open run. Several handles of one run may be open at once: the lease is held per write.

    A handle goes on after checkpoints that others wrote as long as they are not ahead of it; once
    another handle rewound the run, or is ahead, it is told to open the run again.
    """

    def __init__(self, course: Course) -> None:
        """Made by ``start_run``, ``open_run`` and ``resume_or_start``."""
        self._course = course
        self._lock = threading.Lock()
        self._closed = False

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self._course.folder.path

    @property
    def name(self) -> str:
        """The run's name: what its folder was called when it was started."""
        return self._course.subject.name

    @property
    def recipe(self) -> Recipe:
        """The recipe in force, settled: every share a number."""
        return self._course.subject.recipe

    @property
    def step(self) -> int:
        """Steps consumed: where the run was opened, then where its last checkpoint is."""
        return self._course.step

    @property
    def num_steps(self) -> int:
        """Steps planned."""
        return self._course.stream.num_steps

    @property
    def stage(self) -> str | None:
        """Stage of the next step; None when no step is left."""
        return stage_at(self._course.stream.curriculum, self._course.standing.opened)

    @property
    def complete(self) -> bool:
        """Whether no step is left to serve."""
        return self._course.standing.opened.ended or self.step == self.num_steps

    @property
    def ending(self) -> str | None:
        """Why no step is left before the planned number, where that is so."""
        opened = self._course.standing.opened
        if not opened.ended:
            return None
        stock = {name: held.stock for name, held in self._course.subject.holdings.items()}
        return ending(self.recipe, self._course.stream.curriculum, stock, opened)

    @property
    def data_change(self) -> Mapping[str, tuple[str, str]]:
        """Pools whose change was accepted and is not on record yet: fingerprint then, fingerprint now."""
        return self._course.standing.changed

    def stream(self) -> RunStream:
        """The stream; its batches from ``step`` on are what comes next."""
        self._check_open()
        return self._course.stream

    def checkpoint(
        self,
        step: int,
        uri: str | None = None,
        gpu_hours: float | None = None,
        metrics: Metrics | None = None,
        digest: str | None = None,
    ) -> int:
        """Put on record that steps ``0..step - 1`` are consumed; ``run.step`` is then ``step``.

        A second checkpoint at the same step is a new manifest (say, with metrics that came later);
        it counts no token twice.

        Args:
            step: from ``run.step`` to ``run.num_steps``.
            uri: where the trainer saved the weights.
            gpu_hours: GPU-hours of the run so far, in total.
            metrics: ``{set: {name: number}}``, such as ``{"validation": {"loss": 2.1}}``.
            digest: of what the trainer saved.

        Returns:
            The number of the manifest.

        Raises:
            RecipeError: the step is behind this handle or after the run's end; another handle changed
                the run's course or is writing; the folder cannot be written. What was on record before
                still holds, and so does the handle.
            ValueError: numbers or texts that are none, or that cannot be put on record; nothing was written.
        """
        self._check_open()
        statement = Statement.of(uri=uri, digest=digest, gpu_hours=gpu_hours, metrics=metrics)
        with self._lock:
            return self._write(self._course.snapshot_ahead(step).step, statement)

    def begin_checkpoint(self, step: int) -> PendingCheckpoint:
        """Begin a checkpoint whose weights are being saved; its ``commit`` puts it on record.

        For asynchronous saving: checkpoints may be committed out of order and many steps late.

        Args:
            step: from ``run.step`` to ``run.num_steps``.

        Raises:
            RecipeError: the step is behind this handle, or after the run's end.
        """
        self._check_open()
        with self._lock:
            at, writer = self._course.snapshot_ahead(step), self._course.writer
        return PendingCheckpoint(at, lambda statement: self._commit(writer, at, statement))

    def _commit(self, writer: Writer, at: Snapshot, statement: Statement) -> int:
        self._check_open()
        with self._lock:
            now = self._course
            if writer is not now.writer and now.subject.turn.step == at.step:
                writer, at = now.writer, now.stream.snapshot(at.step)  # the run turned at this very step
            if writer is not now.writer or at.step < self.step:
                return writer.write_late(at, statement)
            return self._write(at.step, statement)

    def _write(self, step: int, statement: Statement) -> int:
        """Put a checkpoint on record; what fails once it counts leaves the handle after it."""
        for standing in self._course.writer.write(self._course.standing, step, statement):
            self._course = replace(self._course, standing=standing)
        return int(self._course.standing.known.data["manifest"])

    def forget(self, manifest: int, *, reason: str = "deleted") -> None:
        """Put on record that the weights of a checkpoint are gone: branching from it is refused early.

        Args:
            manifest: its number.
            reason: why.

        Raises:
            RecipeError: the run has no such manifest that counts, or the folder cannot be written.
        """
        self._check_open()
        forget_weights(self._course.folder, manifest, reason)

    def amend(  # noqa: PLR0913 - as amend_run
        self,
        changes: Sequence[str],
        *,
        reason: str,
        approved_by: str | None = None,
        step: int | None = None,
        from_pool: str | None = None,
        allow_targets: Sequence[str] = (),
    ) -> bytes:
        """Change the recipe from a step on; what was spent stays spent.

        This handle's stream, taken anew, serves the changed recipe; batches that are being iterated do
        not. Other ranks go on as before until they open the state that is given back, so hand it to
        all of them before anybody serves ``step``. Where the last checkpoint is at ``step``, a manifest
        puts the amendment on record; after it, the amendment counts once a later checkpoint does.

        Args:
            changes: ``key=value`` as on the command line, over the recipe in force.
            reason: why.
            approved_by: who said so.
            step: the first step under the changed recipe; default: ``run.step``.
            from_pool: the pool that gives (or gets) the difference in shares.
            allow_targets: dotted names that a changed ``policy._target_`` may have beside the shipped ones.

        Returns:
            The state from which every rank goes on, for ``stream_from``.

        Raises:
            RecipeError: as :func:`recipe.amend_run`.
        """
        stage = list(self.recipe.stages)[self._course.snapshot(self.step if step is None else step).stage]
        new = amended(self.recipe, changes, stage=stage, from_pool=from_pool)
        approval = Approval(reason=reason, approved_by=approved_by)
        return self.turn_to(new, approval, step, allow_targets=allow_targets)

    def consult(
        self, step: int, losses: Mapping[str, Any], *, allow_targets: Sequence[str] = ()
    ) -> bytes | None:
        """Ask the recipe's policy for new shares, where it is due: every ``policy.every`` positions.

        Call it after each step or every few: it answers at the first call at which ``every`` positions
        or more have passed since its last answer on record (so also after a restart), or since the stage
        began where that is later; until then it costs next to nothing. At a stage's end nothing is due:
        the next stage begins with its own shares and counts anew. An answer is an amendment from ``step``
        on, as :meth:`amend` makes it. A branch with its parent's policy goes on counting as the parent.

        Args:
            step: steps that the weights have consumed.
            losses: mean loss by pool since the last answer. What a pool with a share and without a loss
                means is the policy's to say: ``DynamicLoading`` refuses to answer; ``OnlineMixing`` lets
                its reward stand, which is 0 until it has had a loss: a pool that seems to teach nothing.
            allow_targets: dotted names that ``policy._target_`` may have beside the shipped ones. What
                was allowed at the start is not stored: say it again.

        Returns:
            The state from which every rank goes on; None where the policy was not due.

        Raises:
            RecipeError: the policy is not allowed, or its answer is none.
            ValueError: a loss of no pool (also where nothing is due), or that is no number.
        """
        self._check_open()
        answer = answer_if_due(self._course, step, losses, allow_targets)
        return None if answer is None else self.turn_to(*answer, step, allow_targets=allow_targets)

    def turn_to(
        self, new: Recipe, approval: Approval, step: int | None = None, *, allow_targets: Sequence[str] = ()
    ) -> bytes:
        """Go on with another recipe from a step on, as :meth:`amend` does.

        Args:
            new: the whole recipe.
            approval: the reason, who approved it, and what it rests on.
            step: the first step under it; default: ``run.step``.
            allow_targets: as for :meth:`amend`.
        """
        self._check_open()
        with self._lock:
            step = self.step if step is None else step
            for course, state in turn_course(self._course, new, approval, step, allow_targets):
                self._course, given = course, state.to_bytes()
            return given

    def put_on_record(self, statement: Statement) -> int:
        """A checkpoint where the run was opened, with a turn that is still to be written.

        Returns:
            The number of the manifest.

        Raises:
            RecipeError: as :meth:`checkpoint`.
        """
        self._check_open()
        with self._lock:
            return self._write(self.step, statement)

    def state(self, step: int | None = None) -> bytes:
        """What goes into the trainer's checkpoint so that any rank can go on from ``step``.

        ``recipe.stream_from(state)`` opens it; so does ``open_run(path, state=state)``.

        Raises:
            RecipeError: the run has no such step.
        """
        self._check_open()
        at = self._course.snapshot(self.step if step is None else step)
        return self._course.state_at(at).to_bytes()

    def close(self) -> None:
        """Let go of the pools; nothing is written."""
        self._closed = True
        self._course.stream.close()

    def __enter__(self) -> Self:
        """The run itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"the run {self.path} was closed")
