"""A run that is open: its stream, where it stands, and the checkpoints it puts on record."""

from __future__ import annotations

import operator
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from recipe.config import Recipe
from recipe.config.amending import amended
from recipe.errors import RecipeError
from recipe.mixing.curriculum import Curriculum
from recipe.mixing.ending import ending
from recipe.mixing.opening import close_pools
from recipe.mixing.snapshot import Snapshot
from recipe.pools import Pool
from recipe.run.canonical import Plain
from recipe.run.changing.amending import Approval, open_for, turned, words_at, worked_out
from recipe.run.changing.consulting import asked, check_pools, is_due, last_answer
from recipe.run.checkpoint import Writer
from recipe.run.folder import RunFolder
from recipe.run.ledger import Tail
from recipe.run.place import Place, stream_of
from recipe.run.saving import PendingCheckpoint
from recipe.run.sayings import counted_checkpoint, say
from recipe.run.standing import Standing, Turning
from recipe.run.state import State
from recipe.run.statement import Metrics, Statement, Subject, text_on_record
from recipe.run.stream import RunStream


def stage_at(curriculum: Curriculum, snapshot: Snapshot) -> str | None:
    """The stage of the step after a snapshot; None when no step is left."""
    if snapshot.ended or snapshot.step == curriculum.num_steps:
        return None
    return curriculum.stages[curriculum.stretch(snapshot.step).stage].name


class Run:
    """An open run. Several handles of one run may be open at once: the lease is held per write.

    A handle goes on after checkpoints that others wrote as long as they are not ahead of it; once
    another handle rewound the run, or is ahead, it is told to open the run again.
    """

    def __init__(self, folder: RunFolder, stream: RunStream, writer: Writer, standing: Standing) -> None:
        """Made by ``start_run``, ``open_run`` and ``resume_or_start``."""
        self._folder = folder
        self._stream = stream
        self._writer = writer
        self._standing = standing
        self._lock = threading.Lock()
        self._closed = False

    @property
    def path(self) -> Path:
        """The run's folder."""
        return self._folder.path

    @property
    def name(self) -> str:
        """The run's name: what its folder was called when it was started."""
        return self._subject.name

    @property
    def recipe(self) -> Recipe:
        """The recipe in force, settled: every share a number."""
        return self._subject.recipe

    @property
    def step(self) -> int:
        """Steps consumed: where the run was opened, then where its last checkpoint is."""
        return self._standing.opened.step

    @property
    def num_steps(self) -> int:
        """Steps planned."""
        return self._stream.num_steps

    @property
    def stage(self) -> str | None:
        """Stage of the next step; None when no step is left."""
        return stage_at(self._stream.curriculum, self._standing.opened)

    @property
    def complete(self) -> bool:
        """Whether no step is left to serve."""
        return self._standing.opened.ended or self.step == self.num_steps

    @property
    def ending(self) -> str | None:
        """Why no step is left before the planned number, where that is so."""
        opened = self._standing.opened
        if not opened.ended:
            return None
        stock = {name: held.stock for name, held in self._subject.holdings.items()}
        return ending(self.recipe, self._stream.curriculum, stock, opened)

    @property
    def data_change(self) -> Mapping[str, tuple[str, str]]:
        """Pools whose change was accepted and is not on record yet: fingerprint then, fingerprint now."""
        return self._standing.changed

    def stream(self) -> RunStream:
        """The stream; its batches from ``step`` on are what comes next."""
        self._check_open()
        return self._stream

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
            end = self._snapshot(step)
            for standing in self._writer.write(self._standing, end.step, statement):
                self._standing = standing
            return int(self._standing.known.data["manifest"])

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
            at, writer = self._snapshot(step), self._writer
        return PendingCheckpoint(at, lambda statement: self._commit(writer, at, statement))

    def _commit(self, writer: Writer, at: Snapshot, statement: Statement) -> int:
        self._check_open()
        with self._lock:
            if writer is not self._writer and self._subject.turn.step == at.step:
                writer, at = self._writer, self._stream.snapshot(at.step)  # the run turned at this very step
            if writer is not self._writer or at.step < self.step:
                return writer.write_late(at, statement)
            for standing in writer.write(self._standing, at.step, statement):
                self._standing = standing
            return int(self._standing.known.data["manifest"])

    def forget(self, manifest: int, *, reason: str = "deleted") -> None:
        """Put on record that the weights of a checkpoint are gone: branching from it is refused early.

        Args:
            manifest: its number.
            reason: why.

        Raises:
            RecipeError: the run has no such manifest that counts, or the folder cannot be written.
        """
        self._check_open()
        text = text_on_record("reason", reason)

        def body(tail: Tail) -> Plain:
            row = counted_checkpoint(self._folder, tail, manifest)
            marks = {"manifest": manifest, "manifest_hash": row.data["manifest_hash"]}
            return {"kind": "forgotten", **marks, "step": row.end_step, "reason": text}

        say(self._folder, body)

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
        stage = list(self.recipe.stages)[self._stream_snapshot(self.step if step is None else step).stage]
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
        policy, curriculum = self.recipe.policy, self._stream.curriculum
        if policy is None:
            return None
        check_pools(self.recipe, losses)
        if not is_due(self.recipe, curriculum, step):
            return None
        turning = self._standing.turning
        turn = self._subject.turn if turning is None else turning.before.turn
        last = last_answer(self._folder.ledger, turn, policy.target)
        if not is_due(self.recipe, curriculum, step, last.step):
            return None
        at = self._stream_snapshot(step)
        answer = asked(self.recipe, at, losses, last.memory, allow_targets)
        return self.turn_to(*answer, step, allow_targets=allow_targets)

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
        said = approval.to_plain()
        with self._lock:
            if self._standing.turning is not None:
                raise ValueError("accepted data is not on record yet: write a checkpoint first")
            at = self._snapshot(self.step if step is None else step)
            hashed = self._subject.version_hash
            place = Place(state=self._state_at(at), version_hash=hashed, from_state=False)
            change = open_for(place, new, None, None)
            try:
                anew = approval.by == "policy"
                _, base = worked_out(self._folder, place, change, anew=anew, allow=allow_targets)
                subject, turning = turned(self._folder, place, change, base, said)
                self._turn(subject, turning, change.pools)
            except BaseException:
                close_pools(change.pools.values())
                raise
            return self._state_at(base).to_bytes()

    def _turn(self, subject: Subject, turning: Turning, pools: Mapping[str, Pool]) -> None:
        """Put a turn on record and serve what follows it."""
        before, standing, step = self._stream, self._standing, turning.base.step
        subject = replace(subject, turn=turning.place(subject))
        stream = stream_of(self._folder, subject, pools, turning.base)
        stream.follow(lambda: before)
        writer = Writer(self._folder, subject, stream)
        if step > standing.opened.step:
            standing = writer.write_turn(replace(standing, turning=replace(turning, stream=before)))
            self._stream, self._writer, self._standing = stream, writer, standing
            return
        words = words_at(self._folder, step)
        for written in writer.write(replace(standing, turning=turning), step, words):
            self._stream, self._writer, self._standing = stream, writer, written

    def put_on_record(self, statement: Statement) -> int:
        """A checkpoint where the run was opened, with a turn that is still to be written.

        Returns:
            The number of the manifest.

        Raises:
            RecipeError: as :meth:`checkpoint`.
        """
        self._check_open()
        with self._lock:
            for standing in self._writer.write(self._standing, self._standing.opened.step, statement):
                self._standing = standing
            return int(self._standing.known.data["manifest"])

    def state(self, step: int | None = None) -> bytes:
        """What goes into the trainer's checkpoint so that any rank can go on from ``step``.

        ``recipe.stream_from(state)`` opens it; so does ``open_run(path, state=state)``.

        Raises:
            RecipeError: the run has no such step.
        """
        self._check_open()
        at = self._stream_snapshot(self.step if step is None else step)
        if at.step < self._subject.turn.step:
            fix = "open the run at that step for a state of it"
            expected = f"a step from {self._subject.turn.step} on, where the run last turned"
            raise RecipeError.single(str(self.path), "step", given=step, expected=expected, fix=fix)
        return self._state_at(at).to_bytes()

    def _state_at(self, at: Snapshot) -> State:
        subject = self._subject
        return State(
            run=subject.name,
            version=subject.version,
            recipe=subject.recipe,
            holdings=subject.holdings,
            turn=subject.turn,
            withdrawn=subject.withdrawn,
            snapshot=at,
        )

    def close(self) -> None:
        """Let go of the pools; nothing is written."""
        self._closed = True
        self._stream.close()

    def __enter__(self) -> Self:
        """The run itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    @property
    def _subject(self) -> Subject:
        return self._writer.subject

    def _snapshot(self, step: int) -> Snapshot:
        """The snapshot of a step that a checkpoint may be written at."""
        if operator.index(step) < self.step:
            raise self._refused(step, f"{self.step}..{self.num_steps}: this handle stands at {self.step}")
        end = self._stream_snapshot(step)
        if end.step < self.num_steps and any(
            self.recipe.exhaustion(name) != "repeat" for name in self.recipe.pools
        ):
            for _ in self._stream.walk(end, end.step + 1):
                pass  # whether a pool runs dry right here shows in the step after
            end = self._stream.snapshot(end.step)
        return end

    def _stream_snapshot(self, step: Any) -> Snapshot:
        if not 0 <= operator.index(step) <= self.num_steps:
            raise self._refused(step, f"0..{self.num_steps}, the steps of the run")
        try:
            return self._stream.snapshot(operator.index(step))
        except ValueError as error:
            end = self._stream.end_step
            raise self._refused(step, f"at most {end}, where a pool ran dry and the run ended") from error

    def _refused(self, step: object, expected: str) -> RecipeError:
        return RecipeError.single(
            f"{self.path}: no step {step} to put on record",
            "step",
            given=step,
            expected=expected,
            fix="say how many steps the weights have consumed; for an older step, open the run there",
        )

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError(f"the run {self.path} was closed")
