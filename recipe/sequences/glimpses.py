"""Cuts at texts of which only stretches are at hand: what was found so far, and what has to be read for more.

The loop that cuts runs makes its searches in an order of its own. Here each has a slot with its answer, or
with how far was looked in vain; the loop is run again and again, each time a little further into every run,
until all searches are answered. A cut is looked for from the window's end back, a start from the overlap's
start on, in stretches that grow where they hold none.

A search over a stretch is answered only with what the whole document would give: no place counts whose
answer could depend on what lies outside.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.maths.kernels import imported, kernel
from recipe.sequences.boundaries import first_edge, last_edge
from recipe.sequences.characters import CLOSER, PART
from recipe.sequences.spelling import Edges, character_after, is_white

_carray = imported("numba", "carray")
_pointer = imported("recipe.sequences.intrinsics", "pointer")

UNSEEN = -2
"""The answer of a search that has to wait for more tokens; one below it says how many were looked through."""
BESIDE = 10
"""Tokens behind a place that say whether it is permitted: two characters of four bytes, and what is next."""
BEFORE = 16
"""Tokens before the first place that a start may be at, to begin with."""
FIRM = 4
"""Characters that neither are white nor close quotes, side by side: no look back reaches beyond them."""
RUN, SLOT, WANTED, IS_FULL = range(4)


class Glimpses(NamedTuple):
    """What is at hand of a block's runs, what was found in it, and room for what else is wanted.

    ``cursor`` int64[4], empty where whole documents are at hand: the run and slot of the search, how much
    is wanted, and whether slots ran out; ``slots`` int64[num_runs + 1]: where the slots of each run begin;
    ``answers`` int64[]: by slot; ``views`` int64[n, 2]: first token and end of stretches of documents,
    ``addresses`` uint64[n] where they are in memory, ``view_of`` int64[num_runs + 1] where those of each run
    begin; ``wants`` int64[m, 3]: run, first token and end; ``depth`` int64[num_runs]: windows of a run that
    are looked at together; ``width``: tokens looked through at first; ``stride``, ``window``: of the rule.
    """

    cursor: NDArray[np.int64]
    slots: NDArray[np.int64]
    answers: NDArray[np.int64]
    views: NDArray[np.int64]
    view_of: NDArray[np.int64]
    addresses: NDArray[np.uint64]
    wants: NDArray[np.int64]
    depth: NDArray[np.int64]
    width: int
    stride: int
    window: int


def no_glimpses() -> Glimpses:
    """Whole documents are at hand."""
    empty = np.empty(0, np.int64)
    pairs, triples = np.empty((0, 2), np.int64), np.empty((0, 3), np.int64)
    return Glimpses(empty, empty, empty, pairs, empty, np.empty(0, np.uint64), triples, empty, 0, 0, 0)


@kernel
def begin_run(glimpses: Glimpses, run: int) -> None:
    """The searches that follow are those of a run."""
    if len(glimpses.cursor):
        glimpses.cursor[RUN] = run
        glimpses.cursor[SLOT] = glimpses.slots[run]


@kernel
def last_glimpsed(reading: Any, at: tuple[int, int], span: tuple[int, int]) -> int:
    """What `last_edge` finds in ``low..high`` of a document of n tokens; UNSEEN where nobody knows yet.

    ``at``: the document's index and its tokens; ``span``: the least and the greatest cut.
    """
    glimpses, (document, n), (low, high) = reading.glimpses, at, span
    slot = _next_slot(glimpses)
    if slot < 0:
        return UNSEEN
    if glimpses.answers[slot] > UNSEEN:
        return int(glimpses.answers[slot])
    looked, place = UNSEEN - glimpses.answers[slot], reading.places[document]
    run, ends = glimpses.cursor[RUN], min(n, high + BESIDE)
    for v in range(glimpses.view_of[run], glimpses.view_of[run + 1]):
        a, b = glimpses.views[v, 0], glimpses.views[v, 1]
        if a >= high or b < ends:
            continue
        tokens = _carray(_pointer(glimpses.addresses[v]), (b - a,), reading.marker.dtype)
        floor = max(low, a + _firm_from(tokens, reading.edges)) if a else low
        if floor <= high:
            found = last_edge(tokens, floor - a, high - a, reading.edges, place + a)
            if found >= 0 or floor == low:
                glimpses.answers[slot] = found + a if found >= 0 else -1
                return int(glimpses.answers[slot])
        looked = max(looked, high - a)
    glimpses.answers[slot] = UNSEEN - looked
    _want_windows(glimpses, n, high, max(glimpses.width, 4 * looked))
    return UNSEEN


@kernel
def first_glimpsed(reading: Any, at: tuple[int, int], span: tuple[int, int]) -> int:
    """What `first_edge` finds, as `last_glimpsed`."""
    glimpses, (document, n), (low, high) = reading.glimpses, at, span
    slot = _next_slot(glimpses)
    if slot < 0:
        return UNSEEN
    if glimpses.answers[slot] > UNSEEN:
        return int(glimpses.answers[slot])
    looked, place = UNSEEN - glimpses.answers[slot], reading.places[document]
    run, ends = glimpses.cursor[RUN], min(n, high + BESIDE)
    for v in range(glimpses.view_of[run], glimpses.view_of[run + 1]):
        a, b = glimpses.views[v, 0], glimpses.views[v, 1]
        if (a and a >= low) or b <= low:
            continue
        tokens = _carray(_pointer(glimpses.addresses[v]), (b - a,), reading.marker.dtype)
        floor = a + _firm_from(tokens, reading.edges) if a else 0
        ceiling = high if b >= ends else b - BESIDE
        if floor <= low <= ceiling:
            found = first_edge(tokens, low - a, ceiling - a, reading.edges, place + a)
            if found >= 0 or ceiling == high:
                glimpses.answers[slot] = found + a if found >= 0 else -1
                return int(glimpses.answers[slot])
        looked = max(looked, b - low, low - a)
    glimpses.answers[slot] = UNSEEN - looked
    width = max(glimpses.width, 4 * looked)
    _want(glimpses, low - max(BEFORE, 4 * looked), min(n, high + BESIDE, low + width + BESIDE))
    return UNSEEN


@kernel
def _next_slot(glimpses: Glimpses) -> int:
    """The slot of the next search of a run; -1: there are no more."""
    run, slot = glimpses.cursor[RUN], glimpses.cursor[SLOT]
    if slot >= glimpses.slots[run + 1]:
        glimpses.cursor[IS_FULL] = 1
        return -1
    glimpses.cursor[SLOT] = slot + 1
    return int(slot)


@kernel
def _want_windows(glimpses: Glimpses, n: int, high: int, width: int) -> None:
    """Ask for what is before a window's end, and before the ends of windows after it.

    Where these are is a guess: that each cut moves back by up to half of a width. Of windows that overlap,
    what is after their start, too.
    """
    for ahead in range(glimpses.depth[glimpses.cursor[RUN]]):
        end, back = high + ahead * glimpses.stride, ahead * (width // 2)
        if ahead and end >= n:
            return
        _want(glimpses, end - width - back, min(n, end + BESIDE))
        start = end - glimpses.window
        if start > 0 and glimpses.window > glimpses.stride:
            _want(glimpses, start - back - BEFORE, min(n, start + width + BESIDE))


@kernel
def _want(glimpses: Glimpses, start: int, stop: int) -> None:
    """Ask for a stretch of the run's document, where there is room to."""
    number = glimpses.cursor[WANTED]
    if number < len(glimpses.wants) and stop > max(0, start):
        glimpses.wants[number, 0] = glimpses.cursor[RUN]
        glimpses.wants[number, 1] = max(0, start)
        glimpses.wants[number, 2] = stop
        glimpses.cursor[WANTED] = number + 1


@kernel
def _firm_from(tokens: NDArray[Any], edges: Edges) -> int:
    """The least cut of a stretch from which on no look back leaves it; above its tokens: there is none."""
    i, j, firm = 0, 0, 0
    while i < len(tokens) and firm < FIRM:
        kind, i, j = character_after(tokens, i, j, edges)
        firm = 0 if kind < 0 or kind in (PART, CLOSER) or is_white(kind) else firm + 1
    if firm < FIRM:
        return len(tokens) + 1
    return i + 1 if j > 0 else i
