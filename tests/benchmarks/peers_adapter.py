"""The stream behind a plain loader's interface, to be measured beside other data mixers.

``open(pools, weights, T, batch, seed)`` takes objects with ``name``, ``prefix`` (a Megatron pair
``PREFIX.bin``/``.idx``, read as it is) and returns an iterator of ``(inputs, labels)``, int64[batch, T] each,
labels being the inputs shifted by one: windows of T joined documents, as most loaders cut them. ``packing``
changes that: ``packing="best_fit"`` isolates documents, whose last labels are then -100.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from recipe.config import recipe_from_plain
from recipe.mixing.opening import open_pools, settle_with
from recipe.mixing.snapshot import Snapshot
from recipe.mixing.stream import Stream

JOINED = {"method": "concat", "attention": "sequence", "positions": "continue", "cross_labels": True}


class NamedPair(Protocol):
    """What is read of a pool."""

    name: str
    prefix: str


class Loader:
    """Batches in order; its state is a step and the snapshot there."""

    def __init__(self, recipe: Any, pools: Any, batch: int) -> None:
        """Stand at the first step."""
        self._recipe, self._pools, self._batch = recipe, pools, batch
        self._stream, self._step = Stream(recipe, pools), 0
        self._batches: Iterator[Any] | None = None

    def __iter__(self) -> Self:
        """Begin, or go on from a loaded state; at the end, begin again."""
        if self._step == self._stream.num_steps:
            self._step = 0
        self._batches = self._stream.batches(self._step, read_ahead=0)
        return self

    def __next__(self) -> tuple[np.ndarray, np.ndarray]:
        """The next batch."""
        assert self._batches is not None, "iter() comes first"
        step, batch = next(self._batches)
        self._step = step + 1
        return batch["input_ids"], batch["labels"]

    def state_dict(self) -> dict[str, Any]:
        """A few integers a pool."""
        return {"snapshot": self._stream.snapshot(self._step).to_plain()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Stand where the state was taken."""
        snapshot = Snapshot.from_plain(state["snapshot"])
        self._stream, self._step = Stream(self._recipe, self._pools, [snapshot]), snapshot.step

    def close(self) -> None:
        """Let go of the files."""
        for pool in self._pools.values():
            pool.close()


def open(  # the contract's word, as T is
    pools: Sequence[NamedPair],
    weights: Sequence[float],
    T: int,  # noqa: N803
    batch: int,
    seed: int,
    workers: int = 0,
    samples: int = 100_000,
    cache_dir: str | None = None,
    packing: str = "concat",
) -> Loader:
    """A loader over Megatron pairs; keeps no index, so ``cache_dir`` is not used, nor are workers needed."""
    if workers:
        raise ValueError(f"workers={workers}: batches are assembled in the process that trains")
    stage = {
        "tokens": -(-samples // batch) * batch * T,
        "context": T,
        "batch": {"sequences": batch},
        "weights": {pool.name: weight for pool, weight in zip(pools, weights, strict=True)},
        "slicing": {"tail": "drop"} if packing == "concat" else {},
        "packing": JOINED if packing == "concat" else {"method": packing},
    }
    plain = {
        "seed": seed,
        "max_epochs": 1_000_000,
        "pools": {pool.name: {"path": str(Path(pool.prefix).absolute())} for pool in pools},
        "stages": {"only": stage},
    }
    recipe = recipe_from_plain(plain, source="peers")
    opened = open_pools(recipe)
    return Loader(settle_with(recipe, opened), opened, batch)
