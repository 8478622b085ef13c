"""Tasks in this process, or in others of this machine, which store the runs themselves."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from multiprocessing import connection
from pathlib import Path
from typing import Any

from recipe.errors import RecipeError
from recipe.text.inputs import MAX_TASK_BYTES, Batch, batch_bytes
from recipe.text.spill import store_run
from recipe.text.tokenise import Work

Tasks = Iterator[tuple[int, Batch]]

LONG_BYTES = MAX_TASK_BYTES + (8 << 20)
"""Of a task: above it a record of it is long. Sent to another process it would be in memory four times."""


def run_here(tasks: Tasks, work: Work, folder: Path) -> None:
    """One task after the other, in this process."""
    for number, batch in tasks:
        store_run(folder, number, work.run(number, batch, folder))


def run_in_processes(tasks: Tasks, work: Work, folder: Path, num_workers: int) -> None:
    """Tasks in flight are bounded, so that reading does not run ahead of tokenising.

    One that holds a long text is done here, and while no other is: it is in memory once, and alone.

    Raises:
        RecipeError: of the first task that has one; or a process died.
    """
    context = multiprocessing.get_context("spawn")
    running: deque[Future[None]] = deque()
    alone = context.Lock()
    pool = ProcessPoolExecutor(num_workers, context, initializer=_begin, initargs=(work, folder, alone))
    try:
        for number, batch in tasks:
            if batch_bytes(batch) > LONG_BYTES:
                while running:
                    running.popleft().result()
                store_run(folder, number, work.run(number, batch, folder))
                continue
            running.append(pool.submit(_do, number, batch))
            if len(running) > num_workers + 1:
                running.popleft().result()
        while running:
            running.popleft().result()
    except BrokenProcessPool as error:
        raise RecipeError.single(
            "prepare",
            "workers",
            given="a process that died",
            expected="all processes to finish (out of memory? or a script without a main guard)",
            fix="run the same again, it goes on where it stopped; with fewer --workers it needs less memory",
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def use_one_thread() -> None:
    """In a process for tasks, before the tokenizer is there: one thread, and one of the library's own.

    A thread of the library's own has memory of its own: it is a quarter faster than the process's would be.
    """
    os.environ["TOKENIZERS_PARALLELISM"], os.environ["RAYON_NUM_THREADS"] = "true", "1"


_place: tuple[Work, Path, AbstractContextManager[Any]] | None = None


def _begin(work: Work, folder: Path, alone: AbstractContextManager[Any]) -> None:
    """In a new process: one tokenizer; it ends with the process that started it."""
    global _place
    use_one_thread()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if work.tokenizer.fingerprint() != work.fingerprint:
        raise RuntimeError(f"the tokenizer {work.tokenizer.spec} changed while text was prepared")
    _place = work, folder, alone


def _end_with_parent() -> None:
    """A killed parent closes nothing: without this its workers would wait, and write, for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _do(number: int, batch: Batch) -> None:
    assert _place is not None
    work, folder, alone = _place
    store_run(folder, number, work.run(number, batch, folder, alone))
