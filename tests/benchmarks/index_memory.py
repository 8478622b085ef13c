"""Memory of writing a pool of many documents, and of opening it in several processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from recipe.integrations.corpora.measured import tree_bytes
from recipe.pools import PoolWriter, open_pool
from tests.benchmarks.figures import Figure

DOCUMENTS, WARM, PROCESSES = 5_000_000, 2000, 4


def measure(scratch: Path) -> Iterator[Figure]:
    """Documents of three tokens: bytes of each that the writer takes, and MB that each reader adds."""
    path = scratch / "index-memory"
    began = time.process_time()
    extra = _written(path)
    cpu = time.process_time() - began
    yield Figure(
        name="memory of writing a pool", value=extra / DOCUMENTS, unit="bytes/document", goal="<= 40",
        beside={"documents": DOCUMENTS, "MB": extra / 1e6, "processor seconds": cpu},
    )  # fmt: skip
    context = multiprocessing.get_context("spawn")
    answers: Any = context.Queue()
    done = context.Event()
    readers = [context.Process(target=_read, args=(path, answers, done)) for _ in range(PROCESSES)]
    for reader in readers:
        reader.start()
    added = [answers.get(timeout=600) for _ in readers]
    done.set()
    for reader in readers:
        reader.join()
    yield Figure(
        name=f"memory that a reader adds, {PROCESSES} at once", value=100 * max(added) / (40 * DOCUMENTS),
        unit="% of 40 bytes/document", goal="<= 5", beside={"MB": max(added) / 1e6},
    )  # fmt: skip


def _written(path: Path) -> int:
    """Bytes at most beside what a small pool takes."""
    tokens = np.array([1, 2, 3], np.int32)
    peak, stop = [0], threading.Event()

    def watch() -> None:
        while not stop.wait(0.1):
            peak[0] = max(peak[0], tree_bytes(os.getpid()))

    with PoolWriter(path, vocab_size=10, eos=0) as writer:
        for _ in range(WARM):
            writer.add(tokens)
        before = tree_bytes(os.getpid())
        watcher = threading.Thread(target=watch)
        watcher.start()
        for _ in range(DOCUMENTS - WARM):
            writer.add(tokens)
        writer.close().close()
        stop.set()
        watcher.join()
    return peak[0] - before


def _read(path: Path, answers: Any, done: Any) -> None:
    with open_pool(path, "pool") as pool:
        pool.tokens(0)
        before = tree_bytes(os.getpid())
        for number in range(0, pool.num_documents, 5000):
            pool.tokens(number)
        answers.put(tree_bytes(os.getpid()) - before)
        done.wait()
