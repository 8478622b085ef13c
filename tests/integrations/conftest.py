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


@pytest.fixture
def state(tmp_path: Path) -> bytes:
    """The state of a run that was just started."""
    dice = np.random.default_rng(0)
    for name, mean in (("a", 40), ("b", 25)):
        documents = [dice.integers(0, 99, size=n) for n in dice.integers(1, 2 * mean, size=60)]
        recipe.write_pool(tmp_path / "pools" / name, documents, vocab_size=100, eos=99)
    plain = PLAIN | {"pools_root": str(tmp_path)}
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        return run.state()
