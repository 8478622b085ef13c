"""Small pools and recipes that runs are started from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe.config import Recipe, recipe_from_plain

Build = Callable[..., Recipe]


def write(path: Path, *, seed: int, documents: int, longest: int = 40) -> Path:
    """A pool of random documents with EOS 0."""
    rng = np.random.default_rng(seed)
    texts = [rng.integers(1, 500, rng.integers(1, longest)) for _ in range(documents)]
    recipe.write_pool(path, texts, vocab_size=500, eos=0)
    return path


@pytest.fixture(scope="session")
def pools_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pools a, b, c; nobody writes to them."""
    root = tmp_path_factory.mktemp("pools")
    for seed, (name, documents) in enumerate({"a": 90, "b": 60, "c": 12}.items()):
        write(root / name, seed=seed, documents=documents)
    return root


@pytest.fixture
def build(pools_root: Path) -> Build:
    """A recipe of two stages over three pools, some of which are read more than once; keys may be changed."""

    def plain(**changes: Any) -> Recipe:
        base: dict[str, Any] = {
            "seed": 1,
            "pools_root": str(pools_root),
            "pools": {"a": {"path": "a"}, "b": {"path": "b"}, "c": {"path": "c"}},
            "groups": {"rest": ["b", "c"]},
            "max_epochs": 9,
            "stages": {
                "one": stage(tokens=700, context=16, chunk=150, quotas={"a": "61.6%", "rest": "38.4%"}),
                "two": stage(tokens=900, context=32, chunk=200, quotas={"a": "50%", "b": "30%", "c": "20%"}),
            },
        }
        return recipe_from_plain({**base, **changes}, source="test")

    return plain


def stage(*, tokens: int, context: int, quotas: dict[str, str], **more: Any) -> dict[str, Any]:
    """A stage with batches of three sequences."""
    return {"tokens": tokens, "context": context, "batch": {"sequences": 3}, "quotas": quotas, **more}


def served(stream: Any, start: int, stop: int | None = None) -> list[bytes]:
    """The bytes of the batches of some steps."""
    return [
        b"".join(np.ascontiguousarray(batch[key]).tobytes() for key in sorted(batch))
        for _, batch in stream.batches(start, stop=stop, read_ahead=0)
    ]
