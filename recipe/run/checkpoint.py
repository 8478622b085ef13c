"""Writing a checkpoint: rows and manifest worked out first, then written in one order under the lease.

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
from dataclasses import dataclass, replace
from pathlib import Path

from recipe.errors import RecipeError
from recipe.mixing.snapshot import Snapshot
from recipe.run import lease, writes
from recipe.run.accounts import Accounts, Closing, StageTotals, discarded
from recipe.run.canonical import Plain, canonical
from recipe.run.folder import RunFolder, read_version
from recipe.run.head import (
    Head,
    closing_of,
    closings_since,
    lineage,
    read_head,
    rows_since,
    snapshot_of,
)
from recipe.run.ledger import Tail, read_tail, row_at
from recipe.run.lost import check_nothing_lost
from recipe.run.manifest import latest_path, manifest_path, read_manifest, seal_of, sealed
from recipe.run.row import CLOSING_KINDS, SAYING_KINDS, TURN_KINDS, Row, chained, now
from recipe.run.standing import Standing, Turning
from recipe.run.statement import Statement, Subject, manifest_plain
from recipe.run.stream import RunStream
from recipe.run.turns import TurnAt, find_turn

_HARMLESS = ("chunk", "checkpoint", "warning")
"""Rows of another handle that a handle can go on after."""


@dataclass(frozen=True, kw_only=True)
class _Draft:
    """What a checkpoint, or a turn without one, will write."""

    rows: list[Plain]
    turn: TurnAt
    """In force after it."""
    manifest: bytes = b""
    number: int = 0


class Writer:
    """Writes the checkpoints of one handle."""

    def __init__(self, folder: RunFolder, subject: Subject, stream: RunStream) -> None:
        """For a run whose recipe and pools are open."""
        self._folder = folder
        self.subject = subject
        """The run, as its manifests state it."""
        self._accounts = Accounts(subject.recipe)
        self._stream = stream

    def write(self, standing: Standing, step: int, statement: Statement) -> Iterator[Standing]:
        """Put a checkpoint on record; yields where the handle stands once it is, then finishes.

        Raises:
            RecipeError: another handle went on elsewhere, somebody else is writing, or the system refuses.
        """

        def draft(head: Head) -> _Draft:
            return self._draft(head, standing, step, statement)

        for written, known in self._written(standing, step, draft):
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
            parent = self._parent(head)
            states = [self._anchor(head), *map(snapshot_of, closings_since(path, head)), end]
            warned = self._accounts.warnings(states[0], end)
            told = _Told(
                statement,
                parent,
                self._accounts.stage_totals(parent["stages"] if parent else {}, states),
                warnings=[*(parent["warnings"] if parent else ()), *warned],
                data_changes=self._data_changes(head, parent),
            )
            draft = self._sealed(head, [], end, told, late=True)
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

        def draft(head: Head) -> _Draft:
            bodies = self._bodies(head, standing, turning.base)[0]
            rows = chained(head.tail.last, bodies, time=now())
            return _Draft(rows=rows, turn=self._turn_of(head.tail, rows))

        for written, known in self._written(standing, turning.base.step, draft):
            self.subject = replace(self.subject, turn=written.turn)
            standing = Standing(opened=turning.base, known=known, rewinds=False)
        return standing

    def _written(
        self, standing: Standing, step: int, drafted: Callable[[Head], _Draft]
    ) -> Iterator[tuple[_Draft, Row]]:
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
            yield draft, Row(_offset(head.tail, draft.rows[:-1]), draft.rows[-1])

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

    def _bodies(self, head: Head, standing: Standing, end: Snapshot) -> tuple[list[Plain], list[Snapshot]]:
        """Rewind, chunk and turn rows up to a state; and the states between which stage totals add up."""
        start = closing_of(head.closing, tuple(self._accounts.recipe.stages))
        anchor = self._anchor(head)
        states = [anchor, *map(snapshot_of, closings_since(self._folder.ledger, head))]
        bodies: list[Plain] = []
        if standing.rewinds:
            bodies.append(self._rewind(head, standing))
        if standing.turning is not None:
            early, start = self._turn(start, standing.turning)
            bodies += early
            states += [standing.turning.at, standing.turning.base]
        first = anchor if anchor.step > start.snapshot.step else start.snapshot
        marks = self._stream.closings(first, end.step)
        if end.ended and first.step < end.step and (not marks or marks[-1].step < end.step):
            marks.append(end)  # a walk that stops here does not see that nothing follows
        chunks = [mark for mark in marks if mark.step > start.snapshot.step]
        bodies += self._accounts.chunk_rows(start, chunks, self.subject.version)
        return bodies, [*states, *(mark for mark in marks if mark.step > states[-1].step), end]

    def _draft(self, head: Head, standing: Standing, step: int, statement: Statement) -> _Draft:
        end = self._stream.snapshot(step)
        bodies, states = self._bodies(head, standing, end)
        parent, anchor = self._parent(head), self._anchor(head)
        warned = self._accounts.warnings(standing.opened if standing.turning else anchor, end)
        told = _Told(
            statement,
            parent,
            self._accounts.stage_totals(parent["stages"] if parent else {}, states),
            warnings=[*(parent["warnings"] if parent else ()), *warned],
            data_changes=[*self._data_changes(head, parent), *standing.on_record()],
        )
        return self._sealed(head, [*bodies, *warned], end, told)

    def _turn_of(self, tail: Tail, rows: list[Plain]) -> TurnAt:
        """The turn in force after some rows."""
        turns = [k for k, row in enumerate(rows) if row["kind"] in TURN_KINDS]
        if not turns:
            return self.subject.turn
        return TurnAt.of(Row(_offset(tail, rows[: turns[-1]]), rows[turns[-1]]))

    def _sealed(
        self, head: Head, bodies: list[Plain], end: Snapshot, told: _Told, *, late: bool = False
    ) -> _Draft:
        """Chain the rows, write the manifest's text, and end with the checkpoint row that names it."""
        time = now()
        rows = chained(head.tail.last, bodies, time=time)
        last = rows[-1] if rows else head.tail.last.data
        turn = self._turn_of(head.tail, rows)
        number = int(head.numbered.data["manifest"]) + 1 if head.numbered else 1
        plain = manifest_plain(
            replace(self.subject, turn=turn),
            self._accounts,
            told.statement,
            {
                "number": number,
                "time": time,
                "previous": head.numbered.data["manifest_hash"] if head.numbered else None,
                "parent": told.parent and {"number": told.parent["number"], "hash": told.parent["hash"]},
                "snapshot": end,
                "stages": told.stages,
                "warnings": told.warnings,
                "data_changes": told.data_changes,
                "ledger": {"row": last["row"], "head": last["hash"]},
            },
        )
        data = sealed(plain)
        closing = [k for k, row in enumerate(rows) if row["kind"] in CLOSING_KINDS]
        pointer = (
            {"row": rows[closing[-1]]["row"], "offset": _offset(head.tail, rows[: closing[-1]])}
            if closing
            else {"row": head.closing.number, "offset": head.closing.offset}
        )
        body = {
            "kind": "checkpoint",
            "step": end.step,
            "recipe": self.subject.version,
            "manifest": number,
            "manifest_hash": seal_of(data),
            "uri": told.statement.uri,
            "gpu_hours": told.statement.gpu_hours,
            "positions": end.positions,
            "cumulative": self._accounts.cumulative(end),
            "closing": pointer,
            "turn": turn.pointer,
            "lineage": lineage(self._folder.ledger, head.parent),
            "snapshot": end.to_plain(),
            **({"late": True} if late else {}),
        }
        rows += chained(Row(0, last), [body], time=time)
        return _Draft(rows=rows, turn=turn, manifest=data, number=number)

    def _rewind(self, head: Head, standing: Standing) -> Plain:
        reached = snapshot_of(head.reached)
        at = head.parent if head.parent and head.parent.end_step == standing.opened.step else None
        at = None if standing.after_turn else at
        row = {
            "kind": "rewind",
            "from_step": reached.step,
            "to_step": standing.opened.step,
            "manifest": at.data["manifest"] if at else None,
            "discarded": discarded(self._names_at(head.reached), reached, standing.opened),
        }
        return row if standing.undone is None else {**row, "turn": standing.undone}

    def _names_at(self, row: Row) -> tuple[str, ...]:
        """Names of the pools of a row's snapshot, in order."""
        number = row.data.get("recipe")
        if number in (None, self.subject.version):
            return self._accounts.names
        return tuple(read_version(self._folder, int(number)).recipe.pools)

    def _turn(self, start: Closing, turning: Turning) -> tuple[list[Plain], Closing]:
        """The chunks up to a turn, the open one as a row of its own, then the turn; the chunk goes on."""
        at, before = turning.at, turning.before
        accounts = Accounts(before.recipe)
        marks = turning.stream.closings(start.snapshot, at.step) if turning.stream is not None else []
        rows = accounts.chunk_rows(start, marks, before.version)
        if marks:
            start = Closing(marks[-1], marks[-1].stage, rows[-1]["grid"][1])
        if at.step > start.snapshot.step:
            stage, _, planned_from = accounts.place(start)
            length = accounts.curriculum.stages[stage].length
            planned_to = min(max(planned_from, at.stage_positions), length)
            rows.append(accounts.chunk_row(start, at, planned_to, before.version))
            start = Closing(at, stage, planned_to)
        row = {
            **turning.body,
            **turning.core(self.subject),
            "stage": list(before.recipe.stages)[start.stage],
            "grid": [start.planned_to, start.planned_to],
            "turn": before.turn.pointer,
        }
        return [*rows, row], Closing(turning.base, start.stage, start.planned_to)

    def _data_changes(self, head: Head, parent: Plain | None) -> list[Plain]:
        """Accepted changes on record up to here: those of the parent, and rows since."""
        known = list(parent.get("accepted_data_changes", ())) if parent else []
        rows = [row for row in closings_since(self._folder.ledger, head) if row.kind == "data"]
        return known + [{"step": row.end_step, "pools": row.data["pools"]} for row in rows]

    def _parent(self, head: Head) -> Plain | None:
        """The manifest that the next one follows: in a branch, at first, the one it started from."""
        if head.parent is None:
            first = row_at(self._folder.ledger, 0).data.get("parent")
            return read_manifest(self._folder.parent, first["hash"]) if first else None
        path = manifest_path(self._folder.path, int(head.parent.data["manifest"]))
        return read_manifest(path, head.parent.data["manifest_hash"])

    def _anchor(self, head: Head) -> Snapshot:
        """The snapshot of the parent checkpoint, or the run's start."""
        return snapshot_of(head.parent or row_at(self._folder.ledger, 0))


@dataclass(frozen=True)
class _Told:
    """What goes into a manifest beside the snapshot."""

    statement: Statement
    parent: Plain | None
    stages: StageTotals
    warnings: list[Plain]
    data_changes: list[Plain]
    """Pools that were replaced on purpose, in the lineage up to here."""


def _add(append: writes.Append, tail: Tail, rows: list[Plain]) -> None:
    data = b"".join(canonical(row) + b"\n" for row in rows)
    append((b"\n" if tail.unended else b"") + data, at=tail.end, size=tail.size)


def _offset(tail: Tail, rows: list[Plain]) -> int:
    """Byte where the row after ``rows`` begins, once they were added after ``tail``."""
    return tail.end + int(tail.unended) + sum(len(canonical(row)) + 1 for row in rows)
