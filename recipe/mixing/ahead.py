"""An iterator run ahead of its consumer, in a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


def read_ahead(produce: Callable[[], Iterator[T]], depth: int) -> Iterator[T]:
    """The items of ``produce()``, up to ``depth`` of them made before they are asked for.

    An error of the producer is raised here, after the items before it. Closing the iterator ends the thread.

    >>> list(read_ahead(lambda: iter([1, 2, 3]), 2))
    [1, 2, 3]
    """
    ready: queue.Queue[tuple[T] | BaseException | None] = queue.Queue(maxsize=depth)
    closed = threading.Event()
    thread = threading.Thread(target=_work, args=(produce, ready, closed), daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item[0]
    finally:
        closed.set()
        thread.join()


def _work(
    produce: Callable[[], Iterator[T]],
    ready: queue.Queue[tuple[T] | BaseException | None],
    closed: threading.Event,
) -> None:
    try:
        for item in produce():
            if not _put(ready, (item,), closed):
                return
    except BaseException as error:
        _put(ready, error, closed)
    else:
        _put(ready, None, closed)


def _put(
    ready: queue.Queue[tuple[T] | BaseException | None],
    item: tuple[T] | BaseException | None,
    closed: threading.Event,
) -> bool:
    """Hand an item over, unless the consumer has gone."""
    while not closed.is_set():
        try:
            ready.put(item, timeout=0.1)
        except queue.Full:
            continue
        return True
    return False
