"""The draft of a checkpoint: its rows and its manifest, worked out from the ledger's end. Writes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from recipe.mixing.snapshot import Snapshot
from recipe.run.accounts import Accounts, Closing, StageTotals, discarded
from recipe.run.canonical import Plain, canonical
from recipe.run.folder import RunFolder, read_version
from recipe.run.head import Head, closing_of, closings_since, lineage, snapshot_of
from recipe.run.ledger import Tail, row_at
from recipe.run.manifest import manifest_path, read_manifest, seal_of, sealed
from recipe.run.row import CLOSING_KINDS, TURN_KINDS, Row, chained, now
from recipe.run.standing import Standing, Turning
from recipe.run.statement import Statement, Subject, manifest_plain
from recipe.run.stream import RunStream
from recipe.run.turns import TurnAt


@dataclass(frozen=True, kw_only=True)
class Draft:
    """What a checkpoint, or a turn without one, will write."""

    rows: list[Plain]
    turn: TurnAt
    """In force after it."""
    manifest: bytes = b""
    number: int = 0


class Drafts:
    """Drafts of one handle's checkpoints."""

    def __init__(self, folder: RunFolder, subject: Subject, stream: RunStream, accounts: Accounts) -> None:
        """For a run as its manifests state it now."""
        self._folder, self._subject, self._stream, self._accounts = folder, subject, stream, accounts

    def checkpoint(self, head: Head, standing: Standing, step: int, statement: Statement) -> Draft:
        """A checkpoint after the ledger's end; a turn that is not on record yet comes before it."""
        end = self._stream.snapshot(step)
        bodies, states = self._bodies(head, standing, end)
        since = standing.opened if standing.turning else self._anchor(head)
        warned = self._accounts.warnings(since, end)
        told = self._told(head, states, statement, warned, standing.on_record())
        return self._sealed(head, [*bodies, *warned], end, told)

    def late(self, head: Head, end: Snapshot, statement: Statement) -> Draft:
        """A checkpoint that others came after: its row says so, and no row of the steps before it is new."""
        states = [self._anchor(head), *map(snapshot_of, closings_since(self._folder.ledger, head)), end]
        told = self._told(head, states, statement, self._accounts.warnings(states[0], end))
        return self._sealed(head, [], end, told, late=True)

    def turn(self, head: Head, standing: Standing) -> Draft:
        """A turn without a checkpoint."""
        assert standing.turning is not None
        bodies = self._bodies(head, standing, standing.turning.base)[0]
        rows = chained(head.tail.last, bodies, time=now())
        return Draft(rows=rows, turn=self._turn_of(head.tail, rows))

    def _told(
        self,
        head: Head,
        states: list[Snapshot],
        statement: Statement,
        warned: list[Plain],
        accepted: Sequence[Plain] = (),
    ) -> _Told:
        """What the manifest adds to its parent's; ``states``: between them stage totals add up."""
        parent = self._parent(head)
        return _Told(
            statement,
            parent,
            self._accounts.stage_totals(parent["stages"] if parent else {}, states),
            warnings=[*(parent["warnings"] if parent else ()), *warned],
            data_changes=[*self._data_changes(head, parent), *accepted],
        )

    def _sealed(
        self, head: Head, bodies: list[Plain], end: Snapshot, told: _Told, *, late: bool = False
    ) -> Draft:
        """Chain the rows, write the manifest's text, and end with the checkpoint row that names it."""
        time = now()
        rows = chained(head.tail.last, bodies, time=time)
        last = rows[-1] if rows else head.tail.last.data
        turn = self._turn_of(head.tail, rows)
        number = int(head.numbered.data["manifest"]) + 1 if head.numbered else 1
        plain = manifest_plain(
            replace(self._subject, turn=turn),
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
        body = {
            "kind": "checkpoint",
            "step": end.step,
            "recipe": self._subject.version,
            "manifest": number,
            "manifest_hash": seal_of(data),
            "uri": told.statement.uri,
            "gpu_hours": told.statement.gpu_hours,
            "positions": end.positions,
            "cumulative": self._accounts.cumulative(end),
            "closing": _closing(head, rows),
            "turn": turn.pointer,
            "lineage": lineage(self._folder.ledger, head.parent),
            "snapshot": end.to_plain(),
            **({"late": True} if late else {}),
        }
        rows += chained(Row(0, last), [body], time=time)
        return Draft(rows=rows, turn=turn, manifest=data, number=number)

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
        bodies += self._accounts.chunk_rows(start, chunks, self._subject.version)
        return bodies, [*states, *(mark for mark in marks if mark.step > states[-1].step), end]

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
        if number in (None, self._subject.version):
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
            **turning.core(self._subject),
            "stage": list(before.recipe.stages)[start.stage],
            "grid": [start.planned_to, start.planned_to],
            "turn": before.turn.pointer,
        }
        return [*rows, row], Closing(turning.base, start.stage, start.planned_to)

    def _turn_of(self, tail: Tail, rows: list[Plain]) -> TurnAt:
        """The turn in force after some rows."""
        turns = [k for k, row in enumerate(rows) if row["kind"] in TURN_KINDS]
        if not turns:
            return self._subject.turn
        return TurnAt.of(row_after(tail, rows[: turns[-1]], rows[turns[-1]]))

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


def _closing(head: Head, rows: list[Plain]) -> Plain:
    """Where the last closing row is, of these rows or of those before them."""
    closing = [k for k, row in enumerate(rows) if row["kind"] in CLOSING_KINDS]
    if not closing:
        return {"row": head.closing.number, "offset": head.closing.offset}
    return {"row": rows[closing[-1]]["row"], "offset": _offset(head.tail, rows[: closing[-1]])}


def row_after(tail: Tail, rows: list[Plain], row: Plain) -> Row:
    """A row with the place that it has once ``rows`` and it were added after ``tail``."""
    return Row(_offset(tail, rows), row)


def _offset(tail: Tail, rows: list[Plain]) -> int:
    """Byte where the row after ``rows`` begins, once they were added after ``tail``."""
    return tail.end + int(tail.unended) + sum(len(canonical(row)) + 1 for row in rows)
