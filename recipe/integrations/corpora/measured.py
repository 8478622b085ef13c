"""A verb of the command line in a process of its own: what it answers, how long it takes, its memory."""

from __future__ import annotations

import json
import resource
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.errors import RecipeError

EVERY = 0.25
"""Seconds between two looks at the processes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What a verb did."""

    words: tuple[str, ...]
    answer: Any
    """What it says with ``--json``."""
    passed: bool
    """False where a check failed."""
    seconds: float
    cpu_seconds: float
    """Of processors, all its processes together."""
    peak_bytes: int
    """Memory of all its processes at their most, shared pages once; 0 where the system does not tell."""

    @property
    def command(self) -> str:
        """As it is written in a shell."""
        return shlex.join(["recipe", *self.words])


def run_verb(words: Sequence[str]) -> Measured:
    """Run ``recipe WORDS --json`` to its end.

    Raises:
        RecipeError: it is refused, or dies; what it said is on the standard error stream.
    """
    began, used = time.perf_counter(), _used()
    with subprocess.Popen(
        [sys.executable, "-m", "recipe", *words, "--json"], stdout=subprocess.PIPE, text=True
    ) as running:
        peak = [0]
        watcher = threading.Thread(target=_watch, args=(running, peak), daemon=True)
        watcher.start()
        assert running.stdout is not None
        told = running.stdout.read()
        code = running.wait()
        watcher.join()
    if code not in (0, 1):
        raise RecipeError.single(
            "corpora", shlex.join(["recipe", *words]), given=f"exit code {code}",
            expected="0, or 1 of a check",
            fix="read what it says; what is done already is kept when you run the same again",
        )  # fmt: skip
    return Measured(
        words=tuple(words), answer=json.loads(told or "null"), passed=code == 0,
        seconds=time.perf_counter() - began, cpu_seconds=_used() - used, peak_bytes=peak[0],
    )  # fmt: skip


def _used() -> float:
    """Seconds of processors of processes that were started and have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def _watch(running: subprocess.Popen[str], peak: list[int]) -> None:
    while running.poll() is None:
        peak[0] = max(peak[0], tree_bytes(running.pid))
        time.sleep(EVERY)


def tree_bytes(pid: int) -> int:
    """Memory of a process and all below it, by Linux: anonymous and shared pages, each shared one once.

    Pages of mapped files are left out: they are cache, the kernel's to take back.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
        fields = {line.split(":")[0]: line.split()[1] for line in lines[1:]}
        total = 1024 * sum(int(fields[name]) for name in ("Pss_Anon", "Pss_Shmem"))
        for thread in Path(f"/proc/{pid}/task").iterdir():
            total += sum(map(tree_bytes, map(int, (thread / "children").read_text("ascii").split())))
    except (OSError, IndexError, KeyError, ValueError):
        return 0  # it ended meanwhile, or this is another system
    return total
