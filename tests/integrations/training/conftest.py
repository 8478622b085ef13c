"""A small run that the reference trainer trains in seconds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import recipe
from recipe.config import Recipe, recipe_from_plain

TRAINER = {
    "layers": 1,
    "heads": 2,
    "width": 16,
    "warmup_steps": 2,
    "threads": 1,
    "checkpoint_steps": 4,
    "micro_batch": 2,
    "learning_rate": "3e-3",
}


@pytest.fixture(scope="session")
def pools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pools with habits of their own, and a held-out one of each habit."""
    root, dice = tmp_path_factory.mktemp("training"), np.random.default_rng(3)
    for name, low in (("text", 0), ("code", 30), ("held_text", 0), ("held_code", 30)):
        documents = [low + np.cumsum(dice.integers(1, 3, size=n)) % 30 for n in dice.integers(4, 60, size=80)]
        recipe.write_pool(root / name, documents, vocab_size=61, eos=60)
    return root


@pytest.fixture
def build(pools: Path) -> Callable[..., Recipe]:
    """A recipe over the pools: 24 steps in two stages; ``trainer`` is laid over ``TRAINER``."""

    def built(trainer: dict[str, Any] | None = None, **changes: Any) -> Recipe:
        stage = {"context": 32, "batch": {"sequences": 4}, "quotas": {"text": "60%", "code": "40%"}}
        plain = {
            "seed": 7,
            "model": {"vocab_size": 61},
            "pools_root": str(pools),
            "pools": {"text": {"path": "text"}, "code": {"path": "code"}},
            "groups": {"all": ["text", "code"]},
            "stages": {"one": stage | {"steps": 16}, "two": stage | {"steps": 8, "context": 64}},
            "max_epochs": 99,
            "sink": "train",
            "trainer": TRAINER | (trainer or {}),
        }
        return recipe_from_plain(plain | changes, source="test")

    return built


def weights(path: Path, step: int) -> dict[str, torch.Tensor]:
    """The model on disk at a step."""
    content = torch.load(path / f"checkpoints/step-{step:09d}.pt", weights_only=True)
    return content["model"]
