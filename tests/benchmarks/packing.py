"""Best-fit packing of log-normal lengths at the default block, and the plain reference beside it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from recipe.sequences.packing import best_fit, best_fit_reference
from tests.benchmarks.figures import Figure
from tests.benchmarks.paired import compare

CONTEXT, BLOCK = 2048, 32_768
FEW = 2_000
"""Pieces for the reference, whose time grows with the square."""


def pieces(documents: int, seed: int) -> np.ndarray:
    """Sizes of the windows that cut a block of documents, in reading order."""
    rng = np.random.default_rng(seed)
    sizes = np.clip(rng.lognormal(np.log(600), 1.2, documents), 1, None).astype(np.int64)
    windows = -(-sizes // CONTEXT)
    cut = np.full(int(windows.sum()), CONTEXT, np.int64)
    cut[np.cumsum(windows) - 1] = sizes - (windows - 1) * CONTEXT
    return cut


def measure(_scratch: Path) -> Iterator[Figure]:
    """Pieces a second, padding, and the distance to the plain reference."""
    blocks = [pieces(BLOCK, seed) for seed in range(8)]
    alone = [np.zeros(len(block), np.bool_) for block in blocks]
    turn = 0

    def pack() -> int:
        nonlocal turn
        turn = (turn + 1) % len(blocks)
        best_fit(blocks[turn], alone[turn], CONTEXT)
        return len(blocks[turn])

    def sort() -> int:
        np.argsort(-blocks[turn], kind="stable")
        return len(blocks[turn])

    pair = compare(pack, sort, seconds=0.2, slices=7)
    yield Figure(
        name="best-fit packing",
        value=pair.rates()["ours a cpu second"] / 1e6,
        unit="M pieces/s",
        goal=">= 5",
        against=f"{pair.ratio():.2f} x a stable NumPy sort of the same sizes",
    )
    rows = [int(best_fit(block, lone, CONTEXT).max()) + 1 for block, lone in zip(blocks, alone, strict=True)]
    waste = 1 - sum(int(block.sum()) for block in blocks) / (sum(rows) * CONTEXT)
    yield Figure(name="padding of best-fit packing", value=100 * waste, unit="%", goal="<= 0.1")
    few = blocks[0][:FEW]
    began = time.process_time()
    plain = best_fit_reference(few.tolist(), [False] * FEW, CONTEXT)
    took = time.process_time() - began
    assert best_fit(few, np.zeros(FEW, np.bool_), CONTEXT).tolist() == plain, "not what the reference packs"
    yield Figure(
        name=f"packing against the plain reference, {FEW} pieces",
        value=pair.rates()["ours a cpu second"] / (FEW / took),
        unit="x",
        against="the same rows, piece by piece",
    )
