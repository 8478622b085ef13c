"""Tokens of pools in stores, fetched before the steps that copy them.

Which bytes a step needs follows from metadata alone. Some steps of one rank are a *load*: the exact spans
of their pieces, those that lie close joined, fetched side by side into a slab of the cache; their sheets then
point into it. Nothing is mapped that is not there: a piece whose bytes were not fetched has no address.
While one load is copied, those after it are under way, as many as the cache has room for.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.mixing.loads import Load, RowsOf, begun
from recipe.mixing.sheets import Library
from recipe.pools.remote.cache import cache
from recipe.pools.remote.loop import background
from recipe.sequences.assembly import Sheet

if TYPE_CHECKING:
    from recipe.mixing.reader import Deal

AHEAD_SEQUENCES = 1 << 16
"""Sequences, of all ranks, that are planned ahead of the step that is copied."""
LOADS = 8
"""Loads that share the cache, once it is warm."""


class Course(NamedTuple):
    """Steps that somebody reads one after the other."""

    deal: Deal
    last: int
    """The step read last."""
    stride: int
    """Steps from one to the next; 0: not known."""
    next: int
    """The first step that is in no load."""
    steps: int
    """Steps of the last load."""


class Ahead:
    """The loads of one reader, in the process that made it."""

    def __init__(self, library: Library, rows_of: RowsOf, *, stride: int = 0) -> None:
        """Nothing is fetched yet.

        Args:
            library: of the reader.
            rows_of: looks up a step.
            stride: steps from one that is read to the next, where it is known; else it shows.
        """
        self.process = os.getpid()
        self._of, self._stride = (library, rows_of), stride
        self._loads: dict[tuple[Deal, int], Load] = {}
        self._course: Course | None = None
        self._lock, self._planning = threading.Lock(), threading.Lock()
        self._planner = ThreadPoolExecutor(1, "recipe-ahead")
        self._under_way: Future[None] | None = None
        weakref.finalize(self, _let_go_later, self.process, self._loads).atexit = False

    @contextmanager
    def held(self, step: int, deal: Deal) -> Iterator[tuple[Sheet, NDArray[np.uint64]]]:
        """A rank's rows of a step as a sheet of their own, and the addresses that its pieces refer to.

        Raises:
            RecipeError: tokens cannot be read, or do not fit into the cache together.
        """
        load = self._held(step, deal)
        try:
            try:
                load.wait()
            except BaseException:
                with self._lock:
                    self._drop(lambda _, other: other is load)
                raise
            self._go_on()
            sheet = load.sheets[step]
            yield sheet, self._of[0].addresses(sheet, load.slab.address if load.slab else 0)
        finally:
            load.release()

    def close(self) -> None:
        """Let go of what was fetched ahead."""
        with self._lock:
            self._course = None
        self._planner.shutdown(wait=False, cancel_futures=True)
        with self._planning, self._lock:
            self._drop(lambda *_: True)

    def _held(self, step: int, deal: Deal) -> Load:
        """The load of a step, held; begun now if it is not under way."""
        with self._lock:
            self._course = self._followed(step, deal)
            load = self._loads.get((deal, step))
            if load is not None and load.hold():
                return load
        with self._planning:
            load = self._loads.get((deal, step))
            if load is not None and load.hold():
                return load
            load = begun(self._of, [step], deal, now=True)
            assert load is not None, "the step was looked up before"
            with self._lock:
                self._drop(lambda key, _: key == (deal, step))
                self._loads[deal, step] = load
                course = self._course
                if course is not None and course.deal == deal and course.next <= step:
                    self._course = course._replace(next=step + course.stride)
            return load

    def _followed(self, step: int, deal: Deal) -> Course:
        """Where reading is now; loads of steps that were passed, or of another course, are let go."""
        course = self._course
        stride = self._stride
        if course is not None and course.deal == deal:
            stride = stride or max(0, step - course.last)
            if course.stride == stride and step == course.last + stride:
                self._drop(lambda key, _: key[1] < step)
                return course._replace(last=step)
        self._drop(lambda key, _: key != (deal, step))
        return Course(deal, step, stride, step, 1)

    def _drop(self, chosen: Callable[[tuple[Deal, int], Load], bool]) -> None:
        for key in [key for key, load in self._loads.items() if chosen(key, load)]:
            load = self._loads.pop(key)
            if load not in self._loads.values():
                load.let_go()

    def _go_on(self) -> None:
        """Plan and begin the loads after this one, in a thread: it takes longer than a step."""
        with self._lock:
            if self._course is None or not self._course.stride:
                return
            if self._under_way is None or self._under_way.done():
                self._under_way = self._planner.submit(self._top_up)

    def _top_up(self) -> None:
        """Begin loads until the cache is full, or enough is planned."""
        while True:
            with self._planning:
                course = self._course
                if course is None or not course.stride or not self._begin_next(course):
                    return

    def _begin_next(self, course: Course) -> bool:
        found = self._of[1](course.next, course.deal)
        if found is None:
            return False
        most = max(LOADS, AHEAD_SEQUENCES // (found[0].batch * course.stride))
        loads, room = list(self._loads.values()), cache()
        per_step = max((-(-load.size // len(load.sheets)) for load in loads), default=0)
        wanted = min(2 * course.steps, most // LOADS, room.bound // LOADS // max(1, per_step))
        wanted = max(1, wanted)
        steps = range(course.next, course.next + wanted * course.stride, course.stride)
        is_far = steps[-1] > course.last + most * course.stride
        if is_far or room.used + wanted * per_step > room.bound:
            return False
        load = begun(self._of, steps, course.deal, now=False)
        if load is None:
            return False
        with self._lock:
            now = self._course
            is_followed = now is not None and now.deal == course.deal and now.next == course.next
            if is_followed and now is not None:
                after = steps[len(load.sheets) - 1] + course.stride
                self._course = now._replace(next=after, steps=len(load.sheets))
                self._loads |= {(course.deal, step): load for step in load.sheets if step >= now.last}
            is_wanted = load in self._loads.values()
        load.release()
        if not is_wanted:
            load.let_go()
        return is_followed


def _let_go_later(process: int, loads: dict[tuple[Deal, int], Load]) -> None:
    """Of a reader that nobody has any more; on the loop, since this may come in the middle of anything."""
    if os.getpid() != process:  # a child's copy of what is its parent's
        return
    for load in set(loads.values()):
        background().call_soon_threadsafe(load.let_go)
