"""What a document takes on disk beside the token files, by the ids that people have."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from uuid import UUID

import numpy as np

from recipe.pools import PoolWriter
from tests.benchmarks.figures import Figure

DOCUMENTS, FILES, MOST = 200_000, 8, 40


def measure(scratch: Path) -> Iterator[Figure]:
    """Documents in a shuffled order, each with a tag of two values and its file and line."""
    for name, (more, ids) in _IDS.items():
        path = scratch / "document-bytes"
        sizes = _sizes(path, ids)
        shutil.rmtree(path)
        yield Figure(
            name=f"a document beside its tokens, id: {name}", value=sum(sizes.values()),
            unit="bytes/document", goal=f"<= {MOST + more}", beside=sizes,
        )  # fmt: skip


def _uuid(chance: Random) -> UUID:
    return UUID(int=chance.getrandbits(128), version=4)


_IDS: dict[str, tuple[int, Callable[[int, Random], int | str]]] = {
    "a number": (0, lambda n, _: n),
    "file:line": (0, lambda n, _: f"web-{n % FILES:04d}.jsonl.zst:{n // FILES + 1}"),
    "UUID": (0, lambda _, chance: str(_uuid(chance))),
    "<urn:uuid:…>": (0, lambda _, chance: f"<urn:uuid:{_uuid(chance)}>"),
    "UUID without dashes": (0, lambda _, chance: _uuid(chance).hex),
    "SHA-1": (5, lambda _, chance: chance.randbytes(20).hex()),
    "SHA-256": (17, lambda _, chance: chance.randbytes(32).hex()),
}
"""By name: bytes that an id may take beyond the goal, being more than 15 that are random, and the ids."""


def _sizes(path: Path, ids: Callable[[int, Random], int | str]) -> dict[str, float]:
    """Bytes a document of every file beside the token files; lengths about log-normal, of some hundreds."""
    chance = Random(1)
    lengths = np.maximum(1, np.random.default_rng(0).lognormal(6, 1.1, DOCUMENTS)).astype(int).tolist()
    with PoolWriter(path, vocab_size=50_000, eos=0) as writer:
        for number, place in enumerate(chance.sample(range(DOCUMENTS), DOCUMENTS)):
            writer.add(
                np.full(lengths[number], number % 49_999 + 1),
                id=ids(place, chance),
                tags={"language": "en" if place % 3 else "zh"},
                source=f"web-{place % FILES:04d}.jsonl.zst:{place // FILES + 1}",
            )
        writer.close().close()
    files = (file for file in path.iterdir() if not file.name.startswith("part-"))
    return {file.name: file.stat().st_size / DOCUMENTS for file in files}
