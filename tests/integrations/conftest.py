"""A small run for trainers to read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe.config import recipe_from_plain

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


def started(tmp_path: Path, **changes: object) -> bytes:
    """The state of a run that was just started."""
    dice = np.random.default_rng(0)
    for name, mean in (("a", 40), ("b", 25)):
        documents = [dice.integers(0, 99, size=n) for n in dice.integers(1, 2 * mean, size=60)]
        recipe.write_pool(tmp_path / "pools" / name, documents, vocab_size=100, eos=99)
    plain = PLAIN | {"pools_root": str(tmp_path)} | changes
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        return run.state()


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
