"""Slices of work on all cores: in threads, or, for long work, in processes.

The loops are compiled and run without the interpreter's lock, but what calls them does not: threads keep
two or three cores busy. Processes are forked, so that they see the pools and the ledger as they are
opened here; nothing but the slices' outcomes comes back.
"""

from __future__ import annotations

import multiprocessing
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from recipe.audit.recompute import Bench, Outcome, recompute
from recipe.audit.segments import Segment

PROCESSES_FROM = 32_000_000_000
"""Positions: less is done in threads, in seconds."""

_shared: tuple[Bench, Sequence[Sequence[Segment]]] | None = None
"""What forked processes find; set while they are started."""


def computed(bench: Bench, work: Sequence[Sequence[Segment]], workers: int) -> Iterator[Outcome]:
    """The outcome of every slice, in order."""
    positions = sum(segment.positions for some in work for segment in some)
    done = 0
    if workers > 1 and len(work) > 1 and positions >= PROCESSES_FROM and _can_fork():
        try:
            for outcome in _in_processes(bench, work, workers):
                yield outcome
                done += 1
            return
        except BrokenProcessPool:
            pass  # one was killed, perhaps for its memory: threads need less
    with ThreadPoolExecutor(workers) as threads:
        yield from threads.map(lambda some: recompute(bench, some), work[done:])


def _can_fork() -> bool:
    """Whether a forked process is a safe copy: not where system libraries forbid it."""
    return sys.platform != "darwin" and "fork" in multiprocessing.get_all_start_methods()


def _in_processes(bench: Bench, work: Sequence[Sequence[Segment]], workers: int) -> Iterator[Outcome]:
    global _shared
    _shared = bench, work
    try:
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(min(workers, len(work)), mp_context=context) as processes:
            with warnings.catch_warnings():
                # said of any process with threads, also of those of a library that are idle
                warnings.simplefilter("ignore", DeprecationWarning)
                futures = [processes.submit(_slice, number) for number in range(len(work))]
            for future in futures:
                yield future.result()
    finally:
        _shared = None


def _slice(number: int) -> Outcome:
    """One slice, in a process of its own."""
    assert _shared is not None
    bench, work = _shared
    return recompute(bench, work[number])
