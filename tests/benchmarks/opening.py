"""Opening a run and its first batch: the same wherever the run stands and however large its pools are."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from recipe import start_run
from recipe.config import recipe_from_plain
from tests.benchmarks.figures import Figure
from tests.pools.sparse import sparse_pool

PROJECT = Path(__file__).parents[2]
POOLS, TOKENS_EACH, LENGTH = 10, 1000, 8_000_000_000
PLACES = {"1 %": 0.01, "50 %": 0.5, "99 %": 0.99}
ROUNDS = 5


def opened(run: Path, step: int | str, pools: Path) -> dict[str, float]:
    """What one process says that opened a run."""
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.opened",
        str(run.absolute()),
        str(step),
        str(pools.absolute()),
    ]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=PROJECT
    )
    told: dict[str, float] = json.loads(done.stdout)
    return told


def start(scratch: Path, documents: int) -> tuple[Path, list[int]]:
    """A run of ten pools with checkpoints along it; all pools are one folder of holes under ten names."""
    folder, run = scratch / f"sparse-{documents}", scratch / f"run-of-{documents}"
    if not folder.is_dir():
        sparse_pool(folder, documents, TOKENS_EACH, num_parts=10).close()
    plain = {
        "seed": 1,
        "max_epochs": 1000,
        "pools": {f"pool{k}": {"path": str(folder)} for k in range(POOLS)},
        "stages": {
            "only": {
                "tokens": LENGTH,
                "context": 4096,
                "batch": {"sequences": 256},
                "chunk": LENGTH // 8,
                "weights": {f"pool{k}": k + 1 for k in range(POOLS)},
            }
        },
    }
    if not run.is_dir():
        with start_run(recipe_from_plain(plain, source="benchmark"), run) as one:
            for place in PLACES.values():
                one.checkpoint(step=round(one.num_steps * place), uri="none")
    num_steps = -(-LENGTH // (4096 * 256))
    return run, [round(num_steps * place) for place in PLACES.values()]


def measure(scratch: Path) -> Iterator[Figure]:
    """Times and memory at every checkpoint of both runs, in turn."""
    runs = {documents: start(scratch, documents) for documents in (1_000_000, 100_000_000)}
    seen: dict[tuple[int, str], list[dict[str, float]]] = {}
    for _ in range(ROUNDS):
        for documents, (run, steps) in runs.items():
            for place, step in zip(PLACES, steps, strict=True):
                told = opened(run, step, scratch)
                seen.setdefault((documents, place), []).append(told)
    times = {key: median(one["cpu"] for one in told) for key, told in seen.items()}
    for (documents, place), told in seen.items():
        yield Figure(
            name=f"open and first batch at {place}, {POOLS} pools of {documents // 1_000_000} M documents",
            value=times[documents, place],
            unit="cpu s",
            goal="<= 0.3",
            spread=(min(one["cpu"] for one in told), max(one["cpu"] for one in told)),
            beside={
                "wall s": median(one["wall"] for one in told),
                "MB of memory": median(one["mb"] for one in told),
            },
        )
    yield Figure(
        name="slowest opening", value=max(times.values()) / min(times.values()), unit="x the fastest",
        goal="<= 1.5",
    )  # fmt: skip
    memory = [median(one["mb"] for one in told) for told in seen.values()]
    yield Figure(
        name="memory of the largest opening", value=max(memory) / min(memory), unit="x the smallest",
        goal="<= 1.5",
    )  # fmt: skip
