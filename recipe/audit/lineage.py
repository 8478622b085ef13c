"""The rows that count: a rewind discards what lies behind the place it goes back to."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from recipe.audit.account import Plain, by_name
from recipe.audit.chain import Entry
from recipe.audit.state import PoolState, State
from recipe.audit.terms import Terms

Snapshot = Callable[[Entry, Terms], State | None]
"""The snapshot that a row holds; None when it cannot be read."""
TURNS = ("created", "data", "amend", "skip", "withdraw")
"""Rows from which the steps go on another way."""
_NO_LINE = 1 << 62


@dataclass(frozen=True, slots=True)
class Mark:
    """A closing row: rows after it start from its snapshot."""

    entry: Entry
    step: int
    stage: int
    """Stage that it closed a chunk of."""
    planned_to: int
    """Positions of that stage that rows so far plan for."""
    terms: Terms
    """Under which it was written; of a turn, those that it gives."""
    drift: tuple[int, ...] = ()
    """Of a chunk's row, by pool: spent less owed since the stage began."""
    left: tuple[int, ...] = ()
    """Pools that had run dry and left."""

    @property
    def names(self) -> tuple[str, ...]:
        """The pools of its snapshot."""
        return self.terms.names

    @property
    def pointer(self) -> Plain:
        """How later rows name a turn."""
        return {"row": self.entry.number, "offset": self.entry.offset, "step": self.step}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint row."""

    entry: Entry
    step: int
    terms: Terms
    manifest: int
    manifest_hash: str
    depth: int
    skip: int | None
    """Where the row of an older ancestor begins."""
    told: tuple[Plain, ...] = ()
    """Warnings of the lineage up to it."""


@dataclass(frozen=True, slots=True)
class Begin:
    """A stage that was entered, and what the pools had given then."""

    stage: str
    step: int
    pools: Mapping[str, PoolState]

    @classmethod
    def of(cls, stage: str, start: State, names: tuple[str, ...]) -> Begin:
        """Entered at a state."""
        return cls(stage, start.step, by_name(names, start))

    def ahead(self, name: str) -> int:
        """Spent less owed of a pool then."""
        pool = self.pools.get(name)
        return 0 if pool is None else pool.ahead


@dataclass(slots=True)
class Lineage:
    """The closing rows and checkpoints that no rewind discarded so far."""

    snapshot: Snapshot
    marks: list[Mark] = field(default_factory=list)
    turns: list[Mark] = field(default_factory=list)
    """Those of the marks that are turns."""
    checkpoints: list[Checkpoint] = field(default_factory=list)
    checkpointed: State | None = None
    """Snapshot of the last checkpoint, or of the run's first row."""
    begins: list[Begin] = field(default_factory=list)
    """The stages that were entered."""
    is_whole: bool = True
    """No row was missing so far."""
    _at: State | None = None
    is_lost: bool = False
    """Where the next row starts from is not known."""
    _points: dict[int, Checkpoint] = field(default_factory=dict)
    """Checkpoints by where their rows begin."""

    @property
    def at(self) -> State | None:
        """Snapshot of the last mark, read when it is needed; None when it cannot be."""
        if self._at is None and not self.is_lost and self.marks:
            self._at = self.snapshot(self.marks[-1].entry, self.marks[-1].terms)
            self.is_lost = self._at is None
        return self._at

    @property
    def parent(self) -> Checkpoint | None:
        """The last checkpoint."""
        return self.checkpoints[-1] if self.checkpoints else None

    @property
    def turn(self) -> Mark:
        """The turn in force."""
        return self.turns[-1]

    def begin(self, mark: Mark, start: State) -> None:
        """The run's first row."""
        self.marks, self.turns, self._at, self.checkpointed = [mark], [mark], start, start

    def close(self, mark: Mark, end: State | None = None) -> None:
        """A row that closes a chunk, or a turn."""
        self.marks.append(mark)
        if mark.entry.kind in TURNS:
            self.turns.append(mark)
        self._at, self.is_lost = end, False

    def lose(self) -> None:
        """A row cannot be followed: the next one has no known start."""
        self._at, self.is_lost = None, True

    def restart(self, mark: Mark, end: State) -> None:
        """Go on behind a gap: what came before is not known."""
        self.close(mark, end)
        self.begins, self.is_whole = [], False

    def enter_stage(self, stage: str, start: State, names: tuple[str, ...]) -> Begin:
        """Where the stage that a row lies in began: at ``start``, if it was not entered before."""
        if not self.begins or self.begins[-1].stage != stage:
            self.begins.append(Begin.of(stage, start, names))
        return self.begins[-1]

    def names_until(self, step: int) -> tuple[str, ...]:
        """The pools when the steps before ``step`` were last accounted for."""
        at = bisect_right(self.marks, step, key=lambda mark: mark.step)
        chunks = (mark.names for mark in reversed(self.marks[:at]) if mark.entry.kind == "chunk")
        return next(chunks, self.marks[0].names)

    def add(self, point: Checkpoint, state: State | None) -> None:
        """A checkpoint."""
        self.checkpoints.append(point)
        self._points[point.entry.offset] = point
        self.checkpointed = state

    def pointers(self, near: Checkpoint | None) -> tuple[int, int | None]:
        """Depth of the checkpoint after ``near`` and the ancestor it points at: any is few jumps away."""
        if near is None:
            return 0, None
        far = self._points.get(near.skip) if near.skip is not None else None
        farther = self._points.get(far.skip) if far is not None and far.skip is not None else None
        if far and farther and near.depth - far.depth == far.depth - farther.depth:
            return near.depth + 1, far.skip
        return near.depth + 1, near.entry.offset

    @property
    def anchor(self) -> Mark | Checkpoint:
        """The last checkpoint, or the run's first row."""
        return self.parent or self.marks[0]

    def furthest(self) -> tuple[Mark | Checkpoint, State | None]:
        """The last row with a snapshot: how far the run came."""
        mark, point = self.marks[-1], self.parent
        if point is not None and point.entry.line > mark.entry.line:
            return point, self.checkpointed
        return mark, self.at

    def rewind(self, step: int, manifest: object, turn: object) -> None:
        """Discard what lies behind a step, behind a manifest's checkpoint, and from a turn's row on."""
        cut = self._cut(manifest, turn)
        keep = len(self.marks)
        while keep > 1 and (self.marks[keep - 1].step > step or self.marks[keep - 1].entry.line > cut):
            keep -= 1
        del self.marks[keep:]
        last = self.marks[-1].entry.line
        self.turns = [mark for mark in self.turns if mark.entry.line <= last]
        self.checkpoints = [p for p in self.checkpoints if p.step <= step and p.entry.line <= cut]
        self._at, self.is_lost = None, False
        self.checkpointed = self.snapshot(self.anchor.entry, self.anchor.terms)
        self.begins = [begin for begin in self.begins if begin.step < step]

    def past(self, step: int, turn: object) -> Lineage:
        """As it was for a checkpoint at a step that is put on record late: on a turn, behind no later row."""
        last = max((k for k, mark in enumerate(self.turns) if mark.entry.number == turn), default=0)
        after = self.turns[last + 1].entry.line if last + 1 < len(self.turns) else _NO_LINE
        points = [p for p in self.checkpoints if p.step <= step and p.entry.line < after]
        if points and points[-1].step == step:
            after = points[-1].entry.line
        marks = [mark for mark in self.marks if mark.step <= step and mark.entry.line < after]
        past = replace(self, marks=marks, turns=self.turns[: last + 1], checkpoints=points)
        past.begins = [begin for begin in self.begins if begin.step < step]
        past.lose()
        past.is_lost = False
        past.checkpointed = self.snapshot(past.anchor.entry, past.anchor.terms)
        return past

    def _cut(self, manifest: object, turn: object) -> int:
        """The last line that a rewind may leave."""
        lines = [mark.entry.line - 1 for mark in self.turns[1:] if mark.entry.number == turn]
        lines += [point.entry.line for point in self.checkpoints if point.manifest == manifest]
        return min(lines, default=_NO_LINE)
