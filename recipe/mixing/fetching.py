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
from recipe.sequences.sheet import Sheet

if TYPE_CHECKING:
    from recipe.mixing.reader import Deal

AHEAD_SEQUENCES = 1 << 16
"""Sequences, of all ranks, that are planned ahead of the step that is copied."""
LOADS = 8
"""Loads that share the cache, once it is warm."""
MOST_COURSES = 16
"""Ranks or micro-batches of one that a reader follows at once."""


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
        self._courses: dict[Deal, Course] = {}
        self._lock, self._planning = threading.Lock(), threading.Lock()
        self._planner = ThreadPoolExecutor(1, "recipe-ahead")
        self._under_way: Future[None] | None = None
        weakref.finalize(self, _let_go_later, self.process, self._loads).atexit = False
        with _forking:
            _planning.add(self)

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
            with self._lock:
                course = self._courses.get(deal)
                if course is None or not course.stride:  # nobody says that it is asked for again
                    self._drop(lambda key, _: key == (deal, step))

    def pause(self) -> Callable[[], None]:
        """Plan nothing until what is returned is called."""
        self._planning.acquire()
        return self._planning.release

    def close(self) -> None:
        """Let go of what was fetched ahead."""
        with self._lock:
            self._courses.clear()
        self._planner.shutdown(wait=False, cancel_futures=True)
        with self._planning, self._lock:
            self._drop(lambda *_: True)

    def _held(self, step: int, deal: Deal) -> Load:
        """The load of a step, held; begun now if it is not under way."""
        with self._lock:
            self._follow(step, deal)
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
                course = self._courses.get(deal)
                if course is not None and course.next <= step:
                    self._courses[deal] = course._replace(next=step + course.stride)
            return load

    def _follow(self, step: int, deal: Deal) -> None:
        """Note where reading is now; loads of steps that were passed, or of courses left, are let go."""
        course, stride = self._courses.pop(deal, None), self._stride
        if course is not None and step != course.last:
            stride = stride or max(0, step - course.last)
            if course.stride == stride and step == course.last + stride:
                self._drop(lambda key, _: key[0] == deal and key[1] < step)
                course = course._replace(last=step)
            else:
                course = None
        if course is None:
            self._drop(lambda key, _: key[0] == deal and key[1] != step)
            course = Course(deal, step, stride, step, 1)
        self._courses[deal] = course
        while len(self._courses) > MOST_COURSES:
            del self._courses[next(iter(self._courses))]
            self._drop(lambda key, _: key[0] not in self._courses)

    def _drop(self, chosen: Callable[[tuple[Deal, int], Load], bool]) -> None:
        for key in [key for key, load in self._loads.items() if chosen(key, load)]:
            load = self._loads.pop(key)
            if load not in self._loads.values():
                load.let_go()

    def _go_on(self) -> None:
        """Plan and begin the loads after this one, in a thread: it takes longer than a step."""
        with self._lock:
            is_strided = any(course.stride for course in self._courses.values())
            if is_strided and (self._under_way is None or self._under_way.done()):
                self._under_way = self._planner.submit(self._top_up)

    def _top_up(self) -> None:
        """Begin loads until the cache is full, or enough is planned: first of what is nearest to its end."""
        while True:
            with self._planning:
                with self._lock:
                    courses = [course for course in self._courses.values() if course.stride]
                courses.sort(key=lambda course: (course.next - course.last) // course.stride)
                if not any(self._begin_next(course, len(courses)) for course in courses):
                    return

    def _begin_next(self, course: Course, num_courses: int) -> bool:
        found = self._of[1](course.next, course.deal)
        if found is None:
            return False
        most = max(LOADS, AHEAD_SEQUENCES // (found[0].batch * course.stride))
        with self._lock:
            loads = [load for (deal, _), load in self._loads.items() if deal == course.deal]
        room = cache()
        per_step = max((-(-load.size // len(load.sheets)) for load in loads), default=0)
        share = room.bound // (LOADS * num_courses * max(1, per_step))
        wanted = max(1, min(2 * course.steps, most // LOADS, share))
        steps = range(course.next, course.next + wanted * course.stride, course.stride)
        is_far = steps[-1] > course.last + most * course.stride
        if is_far or room.used + wanted * per_step > room.bound:
            return False
        load = begun(self._of, steps, course.deal, now=False)
        if load is None:
            return False
        with self._lock:
            now = self._courses.get(course.deal)
            is_followed = now is not None and now.next == course.next
            if is_followed and now is not None:
                after = steps[len(load.sheets) - 1] + course.stride
                self._courses[course.deal] = now._replace(next=after, steps=len(load.sheets))
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


_planning: weakref.WeakSet[Ahead] = weakref.WeakSet()
_forking = threading.Lock()
_paused: list[Callable[[], None]] = []


def _pause() -> None:
    """A child has none of its parent's threads: what one that plans has locked would stay so for ever."""
    _forking.acquire()
    _paused.extend(ahead.pause() for ahead in list(_planning))


def _resume() -> None:
    while _paused:
        _paused.pop()()
    _forking.release()


os.register_at_fork(before=_pause, after_in_parent=_resume, after_in_child=_resume)
