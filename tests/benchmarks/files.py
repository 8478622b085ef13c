"""Files opened by many processes that open one recipe of many pools with many parts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from recipe import start_run
from recipe.config import recipe_from_plain
from tests.benchmarks.figures import Figure
from tests.pools.sparse import sparse_pool

PROJECT = Path(__file__).parents[2]
PROCESSES, POOLS, PARTS = 64, 10, 200


def start(scratch: Path, pools: int, parts: int) -> Path:
    """A run over pools of holes."""
    root, run = scratch / f"pools-of-{parts}-parts", scratch / f"run-of-{parts}-parts"
    for k in range(pools):
        if not (root / f"pool{k}").is_dir():
            sparse_pool(root / f"pool{k}", 50 * parts, 1000, num_parts=parts).close()
    plain = {
        "seed": 1,
        "max_epochs": 1000,
        "pools": {f"pool{k}": {"path": str(root / f"pool{k}")} for k in range(pools)},
        "stages": {
            "only": {
                "tokens": 4096 * 64 * 100,
                "context": 4096,
                "batch": {"sequences": 64},
                "weights": {f"pool{k}": 1 for k in range(pools)},
            }
        },
    }
    if not run.is_dir():
        start_run(recipe_from_plain(plain, source="benchmark"), run).close()
    return run


def together(run: Path, root: Path, processes: int) -> list[dict[str, float]]:
    """What each of many processes says, all of them open at once."""
    command = [
        sys.executable,
        "-m",
        "tests.benchmarks.opened",
        str(run.absolute()),
        "-",
        str(root.absolute()),
    ]
    started = [
        subprocess.Popen(command, cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    told = [json.loads(one.stdout.readline()) for one in started if one.stdout]
    for one in started:
        one.communicate()
        assert one.returncode == 0
    return told


def measure(scratch: Path) -> Iterator[Figure]:
    """The most files any process opened in any pool."""
    run = start(scratch, POOLS, PARTS)
    told = together(run, scratch / f"pools-of-{PARTS}-parts", PROCESSES)
    assert len(told) == PROCESSES
    yield Figure(
        name=f"files a pool before the first batch, {PROCESSES} processes x {POOLS} pools x {PARTS} parts",
        value=max(one["files"] for one in told),
        unit="files",
        goal="<= 3",
        beside={"with the first batch's parts": max(one["files_with_first_batch"] for one in told)},
    )
