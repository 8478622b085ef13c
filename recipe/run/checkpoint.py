"""Writing a checkpoint: worked out first (`recipe.run.draft`), then written in one order under the lease.

1. the manifest, under its number; 2. the rows, in one append, the checkpoint row last; 3. the copy
``latest.yaml``. The checkpoint counts once its row is whole. What a crash leaves behind:

- a manifest without row: an unfinished one, its number is used again;
- an unfinished last line: cut off by the next append;
- whole chunk rows without the checkpoint row after them: they are true (the stream is a function
  of the step) and stay. Who opens at the last checkpoint and writes again first adds a rewind row
  that discards them; who opens later, from the state in the trainer's checkpoint, goes on after them;
- ``latest.yaml`` one behind: the next checkpoint replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from recipe.errors import RecipeError
from recipe.mixing.snapshot import Snapshot
from recipe.run import lease, writes
from recipe.run.accounts import Accounts
from recipe.run.canonical import Plain, canonical
from recipe.run.draft import Draft, Drafts, row_after
from recipe.run.folder import RunFolder
from recipe.run.head import (
    Head,
    read_head,
    rows_since,
    snapshot_of,
)
from recipe.run.ledger import Tail, read_tail
from recipe.run.lost import check_nothing_lost
from recipe.run.manifest import latest_path, manifest_path
from recipe.run.row import SAYING_KINDS, Row
from recipe.run.standing import Standing
from recipe.run.statement import Statement, Subject
from recipe.run.stream import RunStream
from recipe.run.turns import find_turn

_HARMLESS = ("chunk", "checkpoint", "warning")
"""Rows of another handle that a handle can go on after."""


class Writer:
    """Writes the checkpoints of one handle."""

    def __init__(self, folder: RunFolder, subject: Subject, stream: RunStream) -> None:
        """For a run whose recipe and pools are open."""
        self._folder = folder
        self.subject = subject
        """The run, as its manifests state it."""
        self._stream = stream
        self._accounts = Accounts(subject.recipe)

    def write(self, standing: Standing, step: int, statement: Statement) -> Iterator[Standing]:
        """Put a checkpoint on record; yields where the handle stands once it is, then finishes.

        Raises:
            RecipeError: another handle went on elsewhere, somebody else is writing, or the system refuses.
        """

        drafted = partial(self._drafts().checkpoint, standing=standing, step=step, statement=statement)
        for written, known in self._written(standing, step, drafted):
            self.subject = replace(self.subject, turn=written.turn)
            yield Standing(opened=snapshot_of(known), known=known, rewinds=False)
            writes.replace_file(latest_path(self._folder.path), written.manifest)

    def write_late(self, end: Snapshot, statement: Statement) -> int:
        """Put a checkpoint on record that others came after; the run's end on record stays where it is.

        Its manifest follows the last one before its step; none follows it, but the run may be opened, or
        branched, there.

        Raises:
            RecipeError: the run went another way since, somebody else is writing, or the system refuses.
        """
        path = self._folder.ledger
        with self._right_to_write() as (held, append):
            check_nothing_lost(self._folder)
            turn, after = find_turn(path, self.subject.turn)
            is_behind = after is None or after.end_step >= end.step
            if turn is None or not is_behind or read_head(path).reached.end_step < end.step:
                raise self._lost_course(end, after if turn is not None else None)
            head = read_head(path, end.step, undone=None if after is None else after.number)
            draft = self._drafts().late(head, end, statement)
            self._place(manifest_path(self._folder.path, draft.number), draft.manifest, held)
            held.check()
            _add(append, head.tail, draft.rows)
            return draft.number

    def _lost_course(self, end: Snapshot, after: Row | None) -> RecipeError:
        given = "another course on record" if after is None else f"a run that turned at step {after.end_step}"
        return RecipeError.single(
            f"{self._folder.path}: a checkpoint of another course",
            f"step {end.step}",
            given=given,
            expected="the course that the checkpoint was begun on",
            fix="leave it: what these weights have seen is not what the record says any more",
        )

    def write_turn(self, standing: Standing) -> Standing:
        """Put a turn on record without a checkpoint: it counts once a later checkpoint does.

        Raises:
            RecipeError: as :meth:`write`.
        """
        turning = standing.turning
        assert turning is not None

        drafted = partial(self._drafts().turn, standing=standing)
        for written, known in self._written(standing, turning.base.step, drafted):
            self.subject = replace(self.subject, turn=written.turn)
            standing = Standing(opened=turning.base, known=known, rewinds=False)
        return standing

    def _drafts(self) -> Drafts:
        return Drafts(self._folder, self.subject, self._stream, self._accounts)

    def _written(
        self, standing: Standing, step: int, drafted: Callable[[Head], Draft]
    ) -> Iterator[tuple[Draft, Row]]:
        """Write a draft under the lease; yields it and its last row while the lease is held."""
        head = self._head(standing, step)
        draft = drafted(head)
        with self._right_to_write() as (held, append):
            if read_tail(self._folder.ledger) != head.tail:
                head = self._head(standing, step)
                draft = drafted(head)
            files = standing.turning.files if standing.turning is not None else {}
            for name, data in files.items():
                self._place(self._folder.path / name, data, held)
            if draft.manifest:
                self._place(manifest_path(self._folder.path, draft.number), draft.manifest, held)
            held.check()
            _add(append, head.tail, draft.rows)
            yield draft, row_after(head.tail, draft.rows[:-1], draft.rows[-1])

    @contextmanager
    def _right_to_write(self) -> Iterator[tuple[lease.Lease, writes.Append]]:
        """The lease, and the ledger locked: who sleeps while others think it dead still has that."""
        with lease.held(self._folder.lease) as held, writes.locked(self._folder.ledger) as append:
            yield held, append

    def _place(self, path: Path, data: bytes, held: lease.Lease) -> None:
        writes.make_folder(path.parent)
        writes.place_file(path, data, check=held.check)

    def _head(self, standing: Standing, step: int) -> Head:
        """The ledger's end, if this handle may write after it."""
        path = self._folder.ledger
        check_nothing_lost(self._folder)
        pending = standing.rewinds or (standing.turning is not None and standing.turning.stream is None)
        if pending:
            head = read_head(
                path, standing.opened.step, after_turn=standing.after_turn, undone=standing.undone
            )
        else:
            head = read_head(path)
        since = [row for row in rows_since(path, head.tail, standing.known) if row.kind not in SAYING_KINDS]
        if any(row.kind not in _HARMLESS for row in since) or (since and pending):
            raise self._overtaken(standing, "other handles changed the run's course since")
        if not pending and head.reached.end_step > step:
            raise self._overtaken(standing, f"step {head.reached.end_step} is on record, later than {step}")
        return head

    def _overtaken(self, standing: Standing, given: str) -> RecipeError:
        return RecipeError.single(
            f"{self._folder.path}: this handle is behind",
            f"{self._folder.ledger}, after row {standing.known.number}",
            given=given,
            expected=f"rows that go on from step {standing.opened.step}, where this handle stands",
            fix="open the run again, at the step whose weights are loaded",
        )


def _add(append: writes.Append, tail: Tail, rows: list[Plain]) -> None:
    data = b"".join(canonical(row) + b"\n" for row in rows)
    append((b"\n" if tail.unended else b"") + data, at=tail.end, size=tail.size)
