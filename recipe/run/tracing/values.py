"""What a trace says: readings of documents, pieces of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Literal

from recipe.run.canonical import Plain
from recipe.run.tracing.courses import Gap
from recipe.run.tracing.nearest import Id
from recipe.run.tracing.sources import SourcePlace
from recipe.sequences.region import Region

Status = Literal["read", "will be read"]
Progress = Callable[[int, int], None]
"""Called with the step walked to, and the one to walk to."""


def watch_nothing(done: int, total: int) -> None:
    """For callers that do not watch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """A piece of a document in a row of a step."""

    run: str
    """The run that the step is of: the one traced, or one that it branched from."""
    pool: str
    """As it was called in that run."""
    document: Id
    epoch: int
    """Reading of the pool, from 0."""
    step: int
    row: int
    """Of the global batch, in schedule order."""
    columns: tuple[int, int]
    """Positions of the row that hold its tokens, half-open."""
    start: int
    stop: int
    """Tokens ``start..stop`` of the document, marks not counted."""
    fresh: int
    """Tokens before this one are overlap: an earlier piece held them."""
    stage: str
    recipe: int
    """Version in force."""
    status: Status
    """``read``: its step is on record, up to the run's last checkpoint."""

    def to_plain(self) -> Plain:
        """Plain values for JSON."""
        return asdict(self) | {"columns": list(self.columns)}


@dataclass(frozen=True, kw_only=True, slots=True)
class Traced:
    """A document and all that was found of it, in order."""

    pool: str
    """As it is called now."""
    document: Id
    tokens: int
    """Of the document, marks not counted."""
    readings: tuple[Reading, ...]
    withdrawn: int | None = None
    """The step from which on it is withdrawn; None for one that is not."""

    @property
    def fresh(self) -> dict[int, int]:
        """Tokens served fresh, by epoch: fewer than ``tokens`` where some were dropped or come later."""
        fresh: dict[int, int] = {}
        for one in self.readings:
            fresh[one.epoch] = fresh.get(one.epoch, 0) + one.stop - one.fresh
        return fresh

    def to_plain(self) -> Plain:
        """Plain values for JSON."""
        return {
            "pool": self.pool,
            "document": self.document,
            "tokens": self.tokens,
            "withdrawn": self.withdrawn,
            "epochs": [{"epoch": epoch, "fresh": tokens} for epoch, tokens in self.fresh.items()],
            "readings": [one.to_plain() for one in self.readings],
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """What was found of some documents in a run."""

    run: str
    step: int
    """Steps on record."""
    until: int
    """Steps that were looked at."""
    documents: tuple[Traced, ...]
    gaps: tuple[Gap, ...] = ()
    """Steps that could not be looked at."""

    def to_plain(self) -> Plain:
        """Plain values for ``recipe trace --json``."""
        return {
            "run": self.run,
            "step": self.step,
            "until": self.until,
            "documents": [one.to_plain() for one in self.documents],
            "gaps": [gap.to_plain() for gap in self.gaps],
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class RowPiece:
    """A stretch of a row, and where it comes from."""

    pool: str
    document: Id
    epoch: int
    columns: tuple[int, int]
    start: int
    stop: int
    fresh: int
    status: Status
    source: SourcePlace
    region: Region | None = None
    """Part of the document in which its first fresh token lies; None: one window holds the document."""

    def to_plain(self) -> Plain:
        """Plain values for ``recipe trace --json``."""
        return asdict(self) | {"columns": list(self.columns), "source": self.source.to_plain()}
