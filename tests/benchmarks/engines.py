"""The first pass of ``recipe prepare`` under Ray against the local engine: same text, same cores, in turn."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from recipe.text.engines.ray_cluster import STORE_BYTES
from recipe.text.preparation import EngineName, PrepareOptions, Progress
from recipe.text.prepare import prepare_pool
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import Tokenizer
from tests.benchmarks.figures import Figure
from tests.benchmarks.tokenising import CORES, material

ROUNDS = 2


def measure(scratch: Path) -> Iterator[Figure]:
    """A cluster that runs already, of as many workers as there are cores on this machine."""
    import ray

    source, loaded = material(scratch)
    began = time.perf_counter()
    ray.init(
        address="local",
        num_cpus=CORES,
        object_store_memory=STORE_BYTES,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    started = time.perf_counter() - began
    try:
        for tokenizer in loaded:
            local, on_ray = [], []
            for _ in range(ROUNDS):
                local.append(_first_pass(source, scratch / "pool", tokenizer, "local"))
                on_ray.append(_first_pass(source, scratch / "pool", tokenizer, "ray"))
            ratios = [one / two for one, two in zip(local, on_ray, strict=True)]
            yield Figure(
                name=f"ray against local, {tokenizer.kind}, {CORES} workers",
                value=median(ratios),
                unit="x",
                goal=">= 0.8",
                spread=(min(ratios), max(ratios)),
                against="the first pass by local processes, by the clock",
                beside={
                    "local MB/s": source.stat().st_size / 1e6 / median(local),
                    "ray MB/s": source.stat().st_size / 1e6 / median(on_ray),
                    "seconds to start a cluster": started,
                },
            )
    finally:
        ray.shutdown()


def _first_pass(source: Path, out: Path, tokenizer: Tokenizer, engine: EngineName) -> float:
    """Seconds from the first byte read to the first document written."""
    times = [time.perf_counter()]

    def watch(event: Progress) -> None:
        if event.phase == "write" and len(times) == 1:
            times.append(time.perf_counter())

    options = PrepareOptions(engine=engine, workers=CORES, read=ReadOptions(place_ids=True))
    prepare_pool([source], out, tokenizer, options, progress=watch).close()
    shutil.rmtree(out)
    return times[1] - times[0]
