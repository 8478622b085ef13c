"""What the rows of a run hold, read off its stream step by step, to hold traces against."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import recipe
from recipe.run.tracing.trace import Wanted
from recipe.run.tracing.values import Reading


class Held(NamedTuple):
    """A stretch of a row."""

    step: int
    row: int
    column: int
    pool: str
    document: int | str
    start: int
    stop: int
    fresh: int

    @classmethod
    def of(cls, one: Reading) -> Held:
        """The same, of a reading."""
        where = (one.step, one.row, one.columns[0], one.pool, one.document)
        return cls(*where, one.start, one.stop, one.fresh)


def held(path: Path, start: int = 0, stop: int | None = None) -> list[Held]:
    """Every stretch of some steps (default: those on record)."""
    with recipe.open_run(path) as run:
        stream = run.stream()
        return [
            Held(step, row, piece.column, piece.pool, piece.document, piece.start, piece.stop, piece.fresh)
            for step in range(start, run.step if stop is None else stop)
            for row in range(stream.at(step).curriculum.stretch(step).batch)
            for piece in stream.provenance(step, row)
        ]


def traced(path: Path, **more: object) -> list[Held]:
    """Every reading of every document of a run's pools, by one trace."""
    with recipe.open_run(path) as run:
        ids = {one for pool in run.stream().ground.pools for one in pool.ids(range(pool.num_documents))}
    trace = recipe.trace_documents(path, Wanted(ids=tuple(ids)), **more)  # type: ignore[arg-type]
    found = [Held.of(one) for document in trace.documents for one in document.readings]
    assert not trace.gaps
    return sorted(found)
