"""The command line's edge: how long ``recipe --help`` takes, beside an empty Python."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from tests.benchmarks.figures import Figure


def seconds(*arguments: str) -> float:
    """Wall time of one process."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def measure(_scratch: Path) -> Iterator[Figure]:
    """Both in turn; the median, and the ratio of the medians."""
    taken = [(seconds("-c", "pass"), seconds("-m", "recipe", "--help")) for _ in range(9)]
    empty, ours = median(one[0] for one in taken), median(one[1] for one in taken)
    yield Figure(
        name="recipe --help",
        value=ours,
        unit="s",
        goal="<= 0.5",
        spread=(min(one[1] for one in taken), max(one[1] for one in taken)),
        against=f"{ours / empty:.1f} x python -c pass",
        beside={"python -c pass, s": empty},
    )
