"""A run with two stages and an amendment."""

from __future__ import annotations

from pathlib import Path

import pytest

import recipe
from tests.cli.conftest import write_small


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """Sixteen steps, amended at the sixth: a quarter more of pool b from there on."""
    path = tmp_path / "runs" / "amended"
    write_small(tmp_path)
    loaded = recipe.load_recipe(tmp_path / "small.yaml", [f"pools_root='{tmp_path}'"])
    with recipe.start_run(loaded, path) as run:
        run.checkpoint(step=6)
        run.amend(["stages.short.quotas.b=60%"], from_pool="a", reason="test")
        run.checkpoint(step=9)
    return path
