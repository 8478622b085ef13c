"""Rows of chunks, one after another in a leg of a stage, each where its chunk closes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from recipe.audit.account import Plain
from recipe.audit.chain import Entry
from recipe.audit.following import COMMON, Following
from recipe.audit.layout import StageLayout
from recipe.audit.lineage import TURNS, Begin, Mark
from recipe.audit.schedule import Contest
from recipe.audit.state import COUNTS, SNAPSHOT_FORMAT, WHOLE, State
from recipe.audit.terms import Terms
from recipe.maths.rounding import owed

FORMAT = 1
_MOST = 16
"""Rows that are looked at together."""
counts_of = itemgetter(*COUNTS)
_of_row = itemgetter("format", "recipe", "stage", "chunk", "steps", "positions", "grid")
_of_snapshot = itemgetter("format", *WHOLE[:-1], "left", "ended")
_NUM_KEYS = len({*COMMON, "kind", "recipe", "stage", "chunk", "steps", "positions", "grid"}) + len(
    ("counted", "pools", "groups", "snapshot")
)


def _refuse(_text: str) -> NoReturn:
    raise ValueError("no whole number")


_WHOLE_NUMBERS = json.JSONDecoder(parse_float=_refuse, parse_constant=_refuse)


@dataclass(slots=True)
class Lane:
    """A stretch of rows of one leg, and the last of them that was right."""

    line: int
    terms: Terms
    layout: StageLayout
    stage: int
    leg: int
    contest: Contest
    bound: int
    drawn: frozenset[str]
    groups: dict[str, list[int]]
    """By name, which pools."""
    begun: Begin
    """Of the stage."""
    ahead: NDArray[np.int64]
    """int64[pools]: spent less owed when the stage began."""
    plain: Plain
    """Snapshot of the row."""
    counts: NDArray[np.int64]
    """int64[pools, kinds]: in it."""
    due: NDArray[np.int64]
    """int64[pools]: owed in the leg."""

    @classmethod
    def of(cls, mark: Mark, state: State, begin: Begin) -> Lane:
        """From a closing row on, in the leg that its state stands in."""
        terms, plain = mark.terms, state.to_plain()
        intent, names = terms.intent, terms.names
        layout, contest = intent.layouts[state.stage], intent.contest(state)
        return cls(
            line=mark.entry.line,
            terms=terms,
            layout=layout,
            stage=state.stage,
            leg=layout.leg_before(state.step),
            contest=contest,
            bound=contest.bound,
            drawn=intent.drawn(state.stage, state.step, state.step),
            groups={
                group: [names.index(name) for name in config.pools]
                for group, config in intent.recipe.groups.items()
            },
            begun=begin,
            ahead=np.array([begin.ahead(name) for name in names], np.int64),
            plain=plain,
            counts=np.array([counts_of(pool) for pool in plain["pools"]], np.int64),
            due=np.array(owed(contest.parts, contest.whole, state.counted), np.int64),
        )


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk's row that ends where it must."""

    entry: Entry
    row: Plain
    snapshot: Plain
    planned: tuple[int, int]


def rows_in_place(course: Following, lane: Lane, line: int) -> Iterator[ChunkRow]:
    """Rows of chunks from a line on, up to the first that does not end where its chunk closes in the leg."""
    before, at = course.lineage.marks[-1], lane.plain
    begin = before.planned_to if before.entry.kind in TURNS else at["chunk"] * lane.layout.chunk
    for entry in course.text.entries[line : line + _MOST]:
        data = course.text.data[entry.offset : entry.offset + entry.size]
        if entry.kind != "chunk" or entry.computed is None or b"true" in data or data.count(b"false") != 1:
            return
        try:
            row = _WHOLE_NUMBERS.decode(data.decode())
            planned = _planned(lane, row, at, begin)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return
        if planned is None:
            return
        yield ChunkRow(entry, row, row["snapshot"], planned)
        at, begin = row["snapshot"], (row["chunk"] + 1) * lane.layout.chunk


def _planned(lane: Lane, row: Plain, at: Plain, begin: int) -> tuple[int, int] | None:
    """What a row plans for; None unless it ends where its chunk closes, inside the leg."""
    layout, chunk, here = lane.layout, at["chunk"], row["snapshot"]
    step = layout.close_of(chunk)
    if at["ended"] or step >= layout.stop_step or layout.leg_before(step) != lane.leg:
        return None
    planned = begin, min((chunk + 1) * layout.chunk, layout.length)
    positions = layout.positions_at(step)
    passed = positions - at["positions"]
    version, grid = lane.terms.intent.version, list(planned)
    stated = (FORMAT, version, layout.name, chunk, [at["step"], step], passed, grid)
    snapshot = (
        SNAPSHOT_FORMAT,
        step,
        lane.stage,
        positions,
        positions - layout.first_position,
        at["sequences"] + passed // layout.context,
        layout.closed_by(step),
        at["left"],
        False,
    )
    num_pools = len(lane.counts)
    right = (
        len(row) == _NUM_KEYS
        and _of_row(row) == stated
        and len(here) == len(snapshot) + 2
        and _of_snapshot(here) == snapshot
        and len(row["pools"]) == len(here["pools"]) == num_pools
    )
    return planned if right else None
