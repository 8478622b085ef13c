"""Pools on object storage: a server on loopback with 30 ms before each answer, a cache of 1 %.

The server is nginx where it is installed (`tests.benchmarks.ranged`), else moto's, which is slower than the
reader. What a reader gets is compared with the raw rate of the same client in the same run: as many range
requests of the same sizes at once, and nothing done with the answers. A trainer of 5 ms a step is one that
sleeps so long; its rows are as many as half of the raw rate gives.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import recipe
from recipe.config import recipe_from_plain
from recipe.mixing.opening import open_pools, settle_with
from recipe.mixing.stream import Stream
from recipe.mixing.traffic import traffic_of
from recipe.pools.remote.asking import TRAFFIC, Object, ask
from recipe.pools.remote.loop import run
from recipe.pools.remote.store import IN_FLIGHT
from tests.benchmarks import ranged
from tests.benchmarks.aligning import spelling
from tests.benchmarks.figures import Figure

TOKENS = 24_000_000
PART_TOKENS = 100_000
"""Small parts: the server reads a whole object for every range of it."""
LATENCY = 0.03
STEP_SECONDS = 0.005
CONTEXT = 2048
WARM_STEPS = 100
STEPS = 1000
RAW_REQUESTS = 1500
SERVER = """
import sys
from pathlib import Path
import fsspec
from tests.pools.loopback import store, upload
with store(patient=False) as proxy:
    fsspec.filesystem("s3").mkdir("pools")
    upload(Path(sys.argv[1]), "s3://pools/pool")
    proxy.latency = float(sys.argv[2])
    print(proxy.address, flush=True)
    sys.stdin.read()
"""


def measure(scratch: Path) -> Iterator[Figure]:
    """Throughput as fast as it goes; waits of a trainer; what is read over what is used."""
    folder = _pool(scratch)
    size = sum(part.stat().st_size for part in folder.glob("*.bin"))
    with _server(folder, scratch, size // 100):
        raw_requests, raw_bytes = _raw(folder, CONTEXT * 2)
        rate = _throughput()
        yield Figure(
            name="remote, as fast as it goes",
            value=rate["requests/s"] / raw_requests,
            unit="x",
            goal=">= 0.7",
            against=f"requests a second, {IN_FLIGHT} raw range requests at once",
            beside={**rate, "raw requests/s": raw_requests, "raw MB/s": raw_bytes / 1e6},
        )
        yield _waits(0.5 * raw_requests)
        yield _waits(0.5 * raw_requests, align="word")


def _pool(scratch: Path) -> Path:
    """Documents of some thousand tokens."""
    folder = scratch / "stores" / "pools" / "pool"
    if not folder.exists():
        draw = np.random.default_rng(1)
        lengths = draw.integers(500, 8000, TOKENS // 4250)
        documents = (draw.integers(2, 50_000, n) for n in lengths.tolist())
        recipe.write_pool(folder, documents, vocab_size=50_000, eos=1, part_tokens=PART_TOKENS)
    return folder


@contextmanager
def _server(folder: Path, scratch: Path, bound: int) -> Iterator[None]:
    """The server in a process of its own; variables of the environment name it and bound the cache."""
    serving = ranged.serving(folder, scratch / "nginx", LATENCY) if ranged.is_there() else _moto(folder)
    before = dict(os.environ)
    with serving as address:
        os.environ |= {
            "AWS_ENDPOINT_URL": address,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": "us-east-1",
            "RECIPE_CACHE": str(scratch / "remote-cache"),
            "RECIPE_CACHE_BYTES": str(bound),
        }
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


@contextmanager
def _moto(folder: Path) -> Iterator[str]:
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(folder), str(LATENCY)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        yield server.stdout.readline().strip()
    finally:
        server.communicate("")


def _stream(batch: int, align: str = "none") -> Stream:
    steps = max(STEPS, 40_000 // batch)
    stage = {"context": CONTEXT, "batch": {"sequences": batch}, "steps": steps, "weights": {"pool": 1}}
    stage |= {"slicing": {"align": align}}
    plain = {"seed": 1, "pools_root": "s3://pools", "pools": {"pool": {"path": "pool", "max_epochs": 100}}}
    loaded = recipe_from_plain({**plain, "stages": {"one": stage}}, source="benchmark")
    opened, edges = open_pools(loaded), spelling()
    for pool in opened.values():
        pool.edges = lambda: edges
    return Stream(settle_with(loaded, opened), opened)


def _raw(folder: Path, size: int) -> tuple[float, float]:
    """Requests and bytes a second of ranges of one size, as many at once as a reader asks for."""
    [pool] = _stream(8).ground.pools
    assert pool.layout.remote is not None
    draw, parts = np.random.default_rng(2), sorted(file.name for file in folder.glob("*.bin"))[:-1]
    names = [parts[k] for k in draw.integers(0, len(parts), RAW_REQUESTS).tolist()]
    least = min((folder / part).stat().st_size for part in parts)
    starts = draw.integers(0, least - size, RAW_REQUESTS).tolist()
    wanted = list(zip(map(pool.layout.remote.object, names), starts, strict=True))

    async def all_of(some: list[tuple[Object, int]]) -> None:
        left = iter(some)

        async def worker() -> None:
            for what, start in left:
                await ask(what, (start, start + size))

        await asyncio.gather(*(worker() for _ in range(IN_FLIGHT)))

    run(all_of(wanted[:IN_FLIGHT]))
    begun = time.perf_counter()
    run(all_of(wanted[IN_FLIGHT:]))
    seconds = time.perf_counter() - begun
    done = RAW_REQUESTS - IN_FLIGHT
    return done / seconds, done * size / seconds


def _throughput() -> dict[str, float]:
    """What a reader gets that does nothing else."""
    batches = _stream(8).batches()
    for _ in range(WARM_STEPS):
        next(batches)
    begun, requests, read = time.perf_counter(), TRAFFIC.requests, TRAFFIC.num_bytes
    for _ in range(150):
        next(batches)
    seconds = time.perf_counter() - begun
    batches.close()
    return {
        "requests/s": (TRAFFIC.requests - requests) / seconds,
        "MB/s": (TRAFFIC.num_bytes - read) / seconds / 1e6,
    }


def _waits(requests: float, align: str = "none") -> Figure:
    """Steps of a trainer that found their batch missing, at so many requests a second."""
    probe = _stream(1, align)
    asked = traffic_of(probe.recipe, dict(zip(probe.pools, probe.ground.pools, strict=True)))
    assert asked is not None
    each = asked.requests / asked.steps
    # Steps are 5 ms where that many requests a second carry one row; else as long as it takes.
    batch = max(1, int(requests * STEP_SECONDS / each))
    pause = max(STEP_SECONDS, batch * each / requests)
    batches, late, waited = _stream(batch, align).batches(), 0, 0.0
    for _ in range(WARM_STEPS):
        next(batches)
        time.sleep(pause)
    for _ in range(STEPS):
        begun = time.perf_counter()
        next(batches)
        seconds = time.perf_counter() - begun
        late, waited = late + (seconds > 0.001), waited + seconds
        time.sleep(pause)
    batches.close()
    return Figure(
        name=f"remote, steps that waited over 1 ms{'' if align == 'none' else f', cuts at a {align}'}",
        value=late / STEPS,
        unit="of the steps",
        goal="<= 0.01",
        against=f"{STEPS} steps after {WARM_STEPS}",
        beside={
            "step ms": pause * 1e3,
            "rows": batch,
            "tokens a step": batch * CONTEXT,
            "MB/s": batch * asked.bytes_read / asked.steps / pause / 1e6,
            "waited ms in all": waited * 1e3,
            "requests/s": batch * each / pause,
            "read over used": asked.bytes_read / asked.bytes_used,
        },
    )
