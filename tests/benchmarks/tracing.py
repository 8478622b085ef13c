"""Tracing a document, and a row, in a recorded run of ten trillion tokens and 100,000 ledger rows.

All seven pools are one folder of holes of 100 million documents, so the smallest share reads a tenth of it
and the largest reads it sixty times: a document is read as often as that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import recipe
from recipe.run.tracing.values import Reading
from tests.benchmarks.figures import Figure
from tests.benchmarks.recorded import CONTEXT, PARTS, Recorded, recorded

DOCUMENTS = (5, 12_345_678, 50_000_001, 77_777_777, 99_999_999)
POOLS = {"maths": "once or twice", "chinese": "14 times", "web": "60 times"}


def timed(ask: Callable[[], list[Reading]]) -> tuple[dict[str, float], list[Reading]]:
    """Processor and wall time of a question, and its answer."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = ask()
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}, found


def checked(run: Recorded, found: list[Reading]) -> int:
    """The readings, of which each row says the same."""
    for one in found[:1]:
        held = recipe.trace_row(run.path, one.step, one.row)
        assert (one.document, one.columns) in [(piece.document, piece.columns) for piece in held]
    return len(found)


def measure(scratch: Path) -> Iterator[Figure]:
    """Documents of a rare, a common and the largest pool; then rows."""
    run = recorded(scratch)
    recipe.trace_document(run.path, DOCUMENTS[0], pool="teacher")  # what is imported first is not measured
    rows: list[Reading] = []
    for pool, often in POOLS.items():
        seen = []
        readings = 0
        for document in DOCUMENTS:
            took, found = timed(lambda of=document, pool=pool: recipe.trace_document(run.path, of, pool=pool))
            seen.append(took)
            readings += checked(run, found)
            rows += found[:1]
        yield Figure(
            name=f"a document that was read {often}",
            value=median(one["cpu"] for one in seen),
            unit="cpu s",
            goal="<= 5",
            spread=(min(one["cpu"] for one in seen), max(one["cpu"] for one in seen)),
            beside={"wall s": median(one["wall"] for one in seen), "readings": readings / len(seen)},
        )
    times = []
    for one in rows:
        begun = time.process_time()
        recipe.trace_row(run.path, one.step, one.row)
        times.append(time.process_time() - begun)
    yield Figure(
        name="a row, down to its documents", value=median(times), unit="cpu s", goal="<= 5",
        spread=(min(times), max(times)), beside={"tokens of a batch": float(CONTEXT * sum(PARTS.values()))},
    )  # fmt: skip
