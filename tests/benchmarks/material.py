"""Seven pools of 200 M tokens, as a mixture really has them, and recipes over them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from recipe import write_pool
from recipe.config import Recipe, recipe_from_plain
from recipe.mixing.opening import settle_with
from recipe.mixing.stream import Stream
from recipe.pools import Pool, open_pool

SPEC = {
    "web": ("61.6%", 110, 600, 1.2),
    "code": ("7.9%", 18, 600, 1.2),
    "books": ("14%", 25, 20_000, 0.5),
    "maths": ("5%", 12, 600, 1.2),
    "news": ("9.9%", 25, 600, 1.2),
    "wiki": ("1.5%", 8, 600, 1.2),
    "tiny": ("0.1%", 2, 600, 1.2),
}
"""Pool: quota, million tokens, median length and sigma of the log-normal lengths."""

VOCAB, EOS = 8000, 8


def lengths(rng: np.random.Generator, tokens: int, median: float, sigma: float) -> np.ndarray:
    """Document lengths that sum to at least ``tokens``."""
    most = int(tokens / median * 1.2) + 64
    drawn = np.clip(rng.lognormal(np.log(median), sigma, most), 8, 400_000).astype(np.int64)
    return drawn[: int(np.searchsorted(np.cumsum(drawn), tokens)) + 1]


@dataclass(frozen=True)
class Material:
    """Pools on disk, opened, with every page in the page cache."""

    root: Path
    pools: dict[str, Pool]

    def recipe(self, *, context: int, batch: int, tokens: int, **more: Any) -> Recipe:
        """One stage over all pools, read as often as it takes; ``pool``: keys of every pool, if any."""
        every = more.pop("pool", {})
        stage = {
            "tokens": tokens,
            "context": context,
            "batch": {"sequences": batch},
            "quotas": {name: quota for name, (quota, *_) in SPEC.items()},
            **more,
        }
        plain = {
            "seed": 1,
            "max_epochs": 1_000_000,
            "pools": {name: {"path": str(self.root / name)} | every for name in SPEC},
            "stages": {"only": stage},
        }
        return settle_with(recipe_from_plain(plain, source="benchmark"), self.pools)

    def stream(self, *, context: int, batch: int, tokens: int, **more: Any) -> Stream:
        """The stream of such a recipe."""
        return Stream(self.recipe(context=context, batch=batch, tokens=tokens, **more), self.pools)


def material(scratch: Path) -> Material:
    """Write the pools if they are not there, and read them once."""
    root = scratch / "seven-pools"
    for seed, (name, (_, million, median, sigma)) in enumerate(SPEC.items()):
        if not (root / name).is_dir():
            rng = np.random.default_rng(seed)
            sizes = lengths(rng, million * 1_000_000, median, sigma)
            tokens = rng.integers(EOS + 1, VOCAB, int(sizes.sum()), dtype=np.uint16)
            documents = np.split(tokens, np.cumsum(sizes)[:-1])
            write_pool(root / name, documents, vocab_size=VOCAB, eos=EOS)
    pools = {name: open_pool(root / name, name) for name in SPEC}
    for pool in pools.values():
        for part in range(pool.num_parts):
            int(pool.part(part)[::512].astype(np.int64).sum())  # every page, now
    return Material(root, pools)


class Roofline:
    """Random windows over the whole of all pools, copied and cast into int64 ids and labels by NumPy.

    The arrays are the same every time, and every page is mapped: the ceiling pays for neither.
    """

    def __init__(self, pools: dict[str, Pool], context: int, batch: int) -> None:
        """Draw the windows beforehand."""
        rng = np.random.default_rng(0)
        parts = [np.asarray(pool.part(k)) for pool in pools.values() for k in range(pool.num_parts)]
        sizes = np.array([len(part) for part in parts], np.float64)
        chosen = rng.choice(len(parts), 1 << 14, p=sizes / sizes.sum()).tolist()
        self._plan = [(parts[k], int(rng.integers(0, len(parts[k]) - context))) for k in chosen]
        self._ids, self._labels = (np.empty((batch, context), np.int64) for _ in range(2))
        self._next = 0

    def __call__(self) -> int:
        """One batch; returns its tokens."""
        (batch, context), plan = self._ids.shape, self._plan
        for row in range(batch):
            part, start = plan[(self._next + row) % len(plan)]
            window = part[start : start + context + 1]
            np.copyto(self._ids[row], window[:-1])
            np.copyto(self._labels[row], window[1:])
        self._next = (self._next + batch) % len(plan)
        return batch * context
