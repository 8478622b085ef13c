"""A load: some steps of one rank whose tokens are fetched together, and sheets that point at them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from recipe.mixing.sheets import Library
from recipe.pools.remote.asking import TRAFFIC
from recipe.pools.remote.cache import Cache, Slab, cache
from recipe.pools.remote.folder import fill
from recipe.pools.remote.ranges import Runs, runs_of
from recipe.sequences.sheet import BASE, SLOT, START, STOP, TOKENS, Sheet

if TYPE_CHECKING:
    from recipe.mixing.reader import Deal, Span

RowsOf = Callable[[int, "Deal"], "tuple[Span, NDArray[np.int64]] | None"]
"""Of a step and a rank: the span that holds the step, and the rank's rows in it; None: the run has ended."""
SLACK_BYTES = 16
"""Behind the last run of a slab: a kernel may look one token past the end of a document."""


class Load:
    """Steps of one rank, their sheets, and the slab that their tokens are fetched into, if any are."""

    def __init__(
        self,
        sheets: dict[int, Sheet],
        room: Cache,
        slab: Slab | None = None,
        done: Future[None] | None = None,
    ) -> None:
        """Held by whoever made it; ``room`` is whose slab it has."""
        self.sheets, self.slab = sheets, slab
        self._done, self._room = done, room

    @property
    def size(self) -> int:
        """Bytes of the cache."""
        return self.slab.size if self.slab is not None else 0

    def wait(self) -> None:
        """Until all of it is there.

        Raises:
            RecipeError: a part is gone, changed, or cannot be read.
        """
        if self._done is None:
            return
        if not self._done.done():
            begun = monotonic()
            self._done.exception()
            TRAFFIC.waits += 1
            TRAFFIC.waited_seconds += monotonic() - begun
        self._done.result()

    def hold(self) -> bool:
        """Keep it; False: it was let go before."""
        return self.slab is None or self._room.hold(self.slab)

    def release(self) -> None:
        """Keep it no longer."""
        if self.slab is not None:
            self._room.release(self.slab)

    def let_go(self) -> None:
        """Nobody will need it."""
        if self.slab is not None:
            self._room.let_go(self.slab)


def begun(of: tuple[Library, RowsOf], steps: Iterable[int], deal: Deal, *, now: bool) -> Load | None:
    """A load that is being fetched, held.

    Args:
        of: the parts, and what looks up a step.
        steps: of the load; it ends earlier where the run does.
        deal: which rows of them.
        now: as :meth:`recipe.pools.remote.cache.Cache.take`.

    Returns:
        None where the run ends before the first step, or the cache has no room.

    Raises:
        RecipeError: a part is not there; or the cache is smaller than the load, which is needed now.
    """
    library, sheets = of[0], sheets_of(of[1], steps, deal)
    if not sheets:
        return None
    far = [np.flatnonzero(library.is_remote[sheet.pieces[:, SLOT]]) for sheet in sheets.values()]
    pieces = [sheet.pieces[at] for sheet, at in zip(sheets.values(), far, strict=True)]
    runs = runs_of(spans_of(library, np.concatenate(pieces)))
    room = cache()
    if not runs.size:
        return Load(sheets, room)
    slab = room.take(runs.size + SLACK_BYTES, now=now)
    if slab is None:
        return None
    _point(library, (sheets, far), runs)
    objects = {file: library.object(file) for file in np.unique(runs.file).tolist()}
    room.fill(slab, True)
    return Load(sheets, room, slab, fill(objects, runs, slab.memory, lambda: room.fill(slab, False)))


def sheets_of(rows_of: RowsOf, steps: Iterable[int], deal: Deal) -> dict[int, Sheet]:
    """Sheets of the rows of some steps, with pieces of their own; fewer where the run ends."""
    sheets: dict[int, Sheet] = {}
    for step in steps:
        found = rows_of(step, deal)
        if found is None:
            break
        sheets[step] = rows_alone(found[0].sheet, found[1])
    return sheets


def spans_of(library: Library, pieces: NDArray[np.int64]) -> NDArray[np.int64]:
    """int64[n, 3]: slot, first byte and end in its file of what is copied of every piece."""
    width = library.widths_of[pieces[:, SLOT]]
    first, stop = needed_tokens(pieces)
    starts, stops = (pieces[:, BASE] + first) * width, (pieces[:, BASE] + stop) * width
    return np.stack([pieces[:, SLOT], starts, stops], axis=1)


def _point(library: Library, of: tuple[dict[int, Sheet], list[NDArray[np.int64]]], runs: Runs) -> None:
    """Let pieces in stores refer to a slab: its slot is the one after those of all parts."""
    done = 0
    for sheet, at in zip(of[0].values(), of[1], strict=True):
        pieces = sheet.pieces[at]
        place = runs.place[done : done + len(at)]
        done += len(at)
        sheet.pieces[at, BASE] = place // library.widths_of[pieces[:, SLOT]] - needed_tokens(pieces)[0]
        sheet.pieces[at, SLOT] = len(library.is_remote)


def needed_tokens(pieces: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First document token and end of what is copied of pieces: their own, and the one read ahead as label.

    Of what stands in front of a document, the first token behind it.
    """
    start, stop = pieces[:, START], pieces[:, STOP]
    ends = np.minimum(np.maximum(stop, start + 1) + 1, np.maximum(pieces[:, TOKENS], 1))
    return start, np.maximum(ends, start + 1)


def rows_alone(sheet: Sheet, rows: NDArray[np.int64]) -> Sheet:
    """A sheet of some rows, with pieces of its own."""
    first, sizes = sheet.ends[rows], sheet.ends[rows + 1] - sheet.ends[rows]
    ends = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(sizes, out=ends[1:])
    index = np.repeat(first - ends[:-1], sizes) + np.arange(ends[-1])
    return Sheet(ends, sheet.pool[rows], sheet.pieces[index])
