"""The rows that count: a rewind discards what lies behind the step it goes back to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from recipe.audit.account import Plain
from recipe.audit.chain import Entry
from recipe.audit.state import State

Snapshot = Callable[[Entry], State | None]
"""The snapshot that a row holds; None when it cannot be read."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A closing row: rows after it start from its snapshot."""

    entry: Entry
    step: int
    stage: int
    """Stage that it closed a chunk of."""
    planned_to: int
    """Positions of that stage that rows so far plan for."""
    drift: tuple[int, ...] = ()
    """By pool: spent less owed since the stage began."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint row."""

    entry: Entry
    step: int
    manifest: int
    manifest_hash: str
    depth: int
    skip: int | None
    """Where the row of an older ancestor begins."""
    told: tuple[Plain, ...] = ()
    """Warnings of the lineage up to it."""


@dataclass(slots=True)
class Lineage:
    """The closing rows and checkpoints that no rewind discarded so far."""

    snapshot: Snapshot
    marks: list[Mark] = field(default_factory=list)
    at: State | None = None
    """Snapshot of the last mark; None when it cannot be read."""
    checkpoints: list[Checkpoint] = field(default_factory=list)
    checkpointed: State | None = None
    """Snapshot of the last checkpoint, or the run's start."""
    begins: list[tuple[str, State]] = field(default_factory=list)
    """States at which the stages were entered."""
    is_whole: bool = True
    """No row was missing so far."""
    _points: dict[int, Checkpoint] = field(default_factory=dict)
    """Checkpoints by where their rows begin."""

    @property
    def parent(self) -> Checkpoint | None:
        """The last checkpoint."""
        return self.checkpoints[-1] if self.checkpoints else None

    def begin(self, entry: Entry, start: State) -> None:
        """The run's first row."""
        self.marks, self.at, self.checkpointed = [Mark(entry, 0, 0, 0)], start, start

    def close(self, mark: Mark, end: State) -> None:
        """A row that closes a chunk, or that new data was accepted."""
        self.marks.append(mark)
        self.at = end

    def restart(self, mark: Mark, end: State) -> None:
        """Go on behind a gap: what came before is not known."""
        self.close(mark, end)
        self.begins, self.is_whole = [], False

    def enter_stage(self, name: str, start: State) -> State:
        """Where the stage began."""
        if not self.begins or self.begins[-1][0] != name:
            self.begins.append((name, start))
        return self.begins[-1][1]

    def begins_for(self, name: str, start: State) -> list[tuple[str, State]]:
        """The stages entered, this one at the latest at ``start``."""
        known = bool(self.begins) and self.begins[-1][0] == name
        return list(self.begins) if known else [*self.begins, (name, start)]

    def add(self, point: Checkpoint, state: State | None) -> None:
        """A checkpoint."""
        self.checkpoints.append(point)
        self._points[point.entry.offset] = point
        self.checkpointed = state

    def pointers(self) -> tuple[int, int | None]:
        """Depth of the next checkpoint and the ancestor it points at: any is reached in few jumps."""
        near = self.parent
        if near is None:
            return 0, None
        far = self._points.get(near.skip) if near.skip is not None else None
        farther = self._points.get(far.skip) if far is not None and far.skip is not None else None
        if far and farther and near.depth - far.depth == far.depth - farther.depth:
            return near.depth + 1, far.skip
        return near.depth + 1, near.entry.offset

    def data_entries(self) -> list[Entry]:
        """Rows of accepted data changes that count."""
        return [mark.entry for mark in self.marks if mark.entry.kind == "data"]

    def furthest(self) -> tuple[Entry | None, State | None]:
        """The last row with a snapshot: how far the run came."""
        mark = self.marks[-1].entry if self.marks else None
        point = self.parent.entry if self.parent else None
        if point is not None and (mark is None or point.line > mark.line):
            return point, self.checkpointed
        return mark, self.at

    def rewind(self, step: int, manifest: object) -> None:
        """Discard what lies behind a step; and behind the checkpoint of a manifest, where one is named."""
        lines = [point.entry.line for point in self.checkpoints if point.manifest == manifest]
        last = lines[-1] if lines else self.marks[-1].entry.line if self.marks else 0
        while len(self.marks) > 1 and (self.marks[-1].step > step or self.marks[-1].entry.line > last):
            self.marks.pop()
        while self.checkpoints and self.checkpoints[-1].step > step:
            self.checkpoints.pop()
        self.at = self.snapshot(self.marks[-1].entry) if self.marks else None
        origin = self.parent.entry if self.parent else self.marks[0].entry if self.marks else None
        self.checkpointed = self.snapshot(origin) if origin else None
        self.begins = [begin for begin in self.begins if begin[1].step < step]
