"""The audit: rows computed again over realistic pools, on one core and on all; and the chain alone."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import recipe
from recipe.audit.chain_only import check_chain
from recipe.run.canonical import canonical
from recipe.run.row import first_line, sealed_row
from tests.benchmarks.figures import Figure
from tests.benchmarks.material import Roofline, material
from tests.benchmarks.paired import Slice, timed

POSITIONS = 6_000_000_000
ROWS = 100_000
POOLS = 10


def measure(scratch: Path) -> Iterator[Figure]:
    """Positions a second of processor time, the gain of more threads, and seconds for 100,000 rows."""
    yield from _recomputation(scratch)
    yield _chain(scratch)


@dataclass(frozen=True)
class Took:
    """Time of one call."""

    cpu: float
    wall: float


def _timed(work: Callable[[], object]) -> Took:
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return Took(time.process_time() - cpu, time.perf_counter() - wall)


def _recomputation(scratch: Path) -> Iterator[Figure]:
    of = material(scratch)
    path = scratch / "audited"
    shutil.rmtree(path, ignore_errors=True)
    settled = of.recipe(context=4096, batch=256, tokens=POSITIONS, chunk=POSITIONS // 48)
    with recipe.start_run(settled, path) as run:
        for part in range(1, 5):
            run.checkpoint(run.num_steps * part // 4)

    def audit(workers: int) -> Took:
        return _timed(lambda: recipe.audit_run(path, workers=workers, sample=1.0, seed=1))

    recipe.audit_run(path, workers=1, sample=2, seed=1)
    base = timed(Roofline(of.pools, 4096, 8), 1.0)
    alone, both = audit(1), audit(2)
    rate = Slice(POSITIONS / alone.cpu, POSITIONS / alone.wall)
    yield Figure(
        name="audit, rows computed again, one thread",
        value=rate.cpu / 1e9,
        unit="G tokens/s a core",
        goal=">= 0.5",
        against=f"{rate.cpu / base.cpu:.1f} x the NumPy roofline of copying; contents and spread included",
        beside={"by the clock, G tokens/s": rate.wall / 1e9},
    )
    yield Figure(
        name="audit, two threads",
        value=alone.wall / both.wall,
        unit="x one thread, by the clock",
        against="rows computed again, contents, chain and spread",
        beside={"processor time against one thread": both.cpu / alone.cpu},
    )


def _chain(scratch: Path) -> Figure:
    path = scratch / "chain"
    if not (path / "ledger.jsonl").is_file():
        path.mkdir(parents=True, exist_ok=True)
        _write_ledger(path / "ledger.jsonl")
    took = _timed(lambda: check_chain(path))
    size = (path / "ledger.jsonl").stat().st_size
    hashing = _timed(lambda: hashlib.blake2b((path / "ledger.jsonl").read_bytes()).hexdigest())
    return Figure(
        name=f"audit, chain of {ROWS:,} rows",
        value=took.cpu,
        unit="s of processor time",
        goal="<= 5",
        against=f"{took.cpu / hashing.cpu:.1f} x hashing its {size / 1e6:,.0f} MB",
        beside={"by the clock, s": took.wall},
    )


def _write_ledger(path: Path) -> None:
    """Rows of ten pools as long as they really are, a checkpoint after every ten chunks."""
    kinds = ("owed", "spent", "body", "overlap", "special", "padding", "labels", "sequences", "documents")
    names = [f"pool_{k}" for k in range(POOLS)]
    line = first_line({"kind": "created", "run": "chain", "id": "0", "recipe": 1, "snapshot": {}}, time="t")
    previous, manifest = json.loads(line)["hash"], 0
    with path.open("wb") as file:
        file.write(line)
        for number in range(1, ROWS):
            counts = dict.fromkeys(kinds, 6_160_000 + number)
            state = {"cursor": [1, number // 10, 0, number], "debt": -number, **counts, "distinct": number}
            body: dict[str, object] = {
                "step": number,
                "pools": dict.fromkeys(names, counts),
                "snapshot": {"format": 1, "step": number, "pools": [state] * POOLS},
            }
            if number % 10:
                body |= {"kind": "chunk", "stage": "base", "steps": [number - 1, number]}
            else:
                manifest += 1
                closing = {"row": number - 1, "offset": number}
                body |= {
                    "kind": "checkpoint",
                    "manifest": manifest,
                    "manifest_hash": "0" * 64,
                    "closing": closing,
                }
            row = sealed_row(body, number=number, previous=previous, time="2026-01-01T00:00:00Z")
            previous = row["hash"]
            file.write(canonical(row) + b"\n")
