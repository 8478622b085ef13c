"""Runs with 4,000 manifests beside runs with 40: what is asked of one must not take longer for the other."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import recipe
from recipe.config import recipe_from_plain
from recipe.run import writes
from recipe.run.branching.branch import plan_branches
from recipe.run.branching.origin import find_origin
from recipe.run.branching.wishes import Wish
from tests.benchmarks.figures import Figure

MANY, FEW, ROUNDS = 4000, 40, 5
POOLS = ("english", "chinese", "code", "maths")


@dataclass(frozen=True)
class Made:
    """A run, and its middle manifest, which is at the step of the same number."""

    path: Path
    number: int

    @property
    def middle(self) -> int:
        """Half-way through the run."""
        return self.number // 2


def made(scratch: Path, number: int) -> Made:
    """A run of so many checkpoints, a step each; nothing is flushed to disk while it is made."""
    path = scratch / f"manifests-{number}"
    for k, name in enumerate(POOLS):
        if not (scratch / name).is_dir():
            recipe.write_pool(scratch / name, [range(1, 20 + k)] * 4000, vocab_size=500, eos=0)
    if not path.is_dir():
        stage = {
            "steps": MANY + 100,
            "context": 16,
            "batch": {"sequences": 4},
            "chunk": 640,
            "weights": dict.fromkeys(POOLS, 1),
        }
        pools = {name: {"path": str(scratch / name)} for name in POOLS}
        plain = {"seed": 1, "max_epochs": 99, "pools": pools, "stages": {"only": stage}}
        with recipe.start_run(recipe_from_plain(plain, source="benchmark"), path) as run:
            for step in range(1, number + 1):
                run.checkpoint(step, uri=f"weights/{step}")
    return Made(path, number)


def unflushed(scratch: Path, number: int) -> Made:
    """Make a run with fsync left out."""
    real = writes.os
    stand_in: dict[str, Any] = {name: getattr(os, name) for name in dir(os) if not name.startswith("__")}
    writes.os = SimpleNamespace(**{**stand_in, "fsync": lambda handle: None})  # type: ignore[assignment]
    try:
        return made(scratch, number)
    finally:
        writes.os = real


def status(run: Made) -> object:
    """As ``recipe status`` asks."""
    return recipe.run_status(run.path)


def listing(run: Made) -> object:
    """As ``recipe status --manifests all`` asks."""
    return recipe.run_manifests(run.path)


def opened(run: Made) -> object:
    """At a step in the middle."""
    return recipe.open_run(run.path, step=run.middle).close()


def origin(run: Made) -> object:
    """A manifest in the middle."""
    return find_origin(run.path, run.middle)


def branch(run: Made) -> object:
    """Everything of a branch from the middle but its folder."""
    return plan_branches(find_origin(run.path, run.middle), [Wish(name="branch")])


def attach(run: Made) -> object:
    """Metrics of the last manifest."""
    return recipe.attach_metrics(run.path, {"code": {"loss": 2.5}})


ASKED: tuple[Callable[[Made], object], ...] = (status, listing, opened, origin, branch, attach)


def seconds(ask: Callable[[Made], object], run: Made) -> float:
    """By the clock."""
    began = time.perf_counter()
    ask(run)
    return time.perf_counter() - began


def command(run: Made) -> float:
    """``recipe status`` as a process, imports included."""
    words = [sys.executable, "-m", "recipe", "status", str(run.path)]
    began = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def measure(scratch: Path) -> Iterator[Figure]:
    """Each question to both runs in turn."""
    many, few = unflushed(scratch, MANY), unflushed(scratch, FEW)
    for ask in ASKED:
        taken = [(seconds(ask, many), seconds(ask, few)) for _ in range(ROUNDS)]
        ours, other = (median(one[k] for one in taken) for k in (0, 1))
        beside = {f"{FEW} manifests, s": other}
        if ask is status:
            beside["the command, s"] = median(command(many) for _ in range(3))
        yield Figure(
            name=f"{MANY:,} manifests: {ask.__name__}",
            value=ours,
            unit="s",
            goal="<= 1",
            spread=(min(one[0] for one in taken), max(one[0] for one in taken)),
            against=f"{ours / other:.1f} x a run of {FEW}",
            beside=beside,
        )
