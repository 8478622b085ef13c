"""A small run for trainers to read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe.config import recipe_from_plain
from recipe.run.manifest import manifest_path, read_manifest

PLAIN = {
    "seed": 5,
    "pools": {"a": {"path": "pools/a"}, "b": {"path": "pools/b"}},
    "stages": {
        "short": {
            "tokens": "2Ki",
            "context": 32,
            "batch": {"sequences": 4},
            "quotas": {"a": "100%", "b": "0%"},
        },
        "long": {
            "tokens": "2Ki",
            "context": 64,
            "batch": {"sequences": 4},
            "quotas": {"a": "0%", "b": "100%"},
        },
    },
    "max_epochs": 9,
}
"""Sixteen steps of pool a, then eight of pool b."""

WEIGHTED = {
    "mixed": {
        "steps": 12,
        "context": 32,
        "batch": {"sequences": 4},
        "quotas": {"a": "50%", "b": "50%"},
        "objective": {"a": "80%", "b": "20%"},
    }
}
"""A stage of half and half, counted 4:1: weights 8/5 and 2/5."""


def started(tmp_path: Path, **changes: object) -> bytes:
    """The state of a run that was just started."""
    dice = np.random.default_rng(0)
    for name, mean in (("a", 40), ("b", 25)):
        documents = [dice.integers(0, 99, size=n) for n in dice.integers(1, 2 * mean, size=60)]
        recipe.write_pool(tmp_path / "pools" / name, documents, vocab_size=100, eos=99)
    plain = PLAIN | {"pools_root": str(tmp_path)} | changes
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        return run.state()


def begun(folder: Path, **changes: object) -> Path:
    """The folder of a run that was just started, with a held-out pool beside it."""
    started(folder, **changes)
    recipe.write_pool(folder / "held", [np.arange(40) + k for k in range(12)], vocab_size=100, eos=99)
    return folder


def last(folder: Path) -> Any:
    """The last manifest of a folder's run."""
    number = recipe.run_manifests(folder / "run")[-1].manifest
    return read_manifest(manifest_path(folder / "run", number))


def spent(folder: Path) -> Any:
    """What is on record of every pool, wherever it lies."""
    return {name: pool | {"path": ""} for name, pool in last(folder)["pools"].items()}


def equal(one: Any, other: Any) -> bool:
    """Whether arrays or tensors by name are the same to the bit."""
    return one.keys() == other.keys() and all(
        one[name].shape == other[name].shape and bool((one[name] == other[name]).all()) for name in one
    )


@pytest.fixture
def state(tmp_path: Path) -> bytes:
    """The state of a run that was just started."""
    return started(tmp_path)


@pytest.fixture(params=["stop", "redistribute"])
def ending(tmp_path: Path, request: pytest.FixtureRequest) -> bytes:
    """The state of a run that ends before its planned length: pool a runs dry in a stage of its own."""
    stages = {
        name: stage | {"tokens": "16Ki"} if name == "short" else stage
        for name, stage in PLAIN["stages"].items()
    }
    return started(tmp_path, stages=stages, max_epochs=1, on_exhausted=request.param)


@pytest.fixture
def uneven(tmp_path: Path) -> bytes:
    """The state of a run whose second stage has batches of two, its first of four."""
    stages = PLAIN["stages"]
    return started(
        tmp_path / "uneven", stages=stages | {"long": stages["long"] | {"batch": {"sequences": 2}}}
    )
