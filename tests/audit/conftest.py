"""A recorded run, and audits of changed copies of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe.audit import Audit
from tests.audit.runs import start, write_pools


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with several checkpoints, a stage that cuts blocks anew, and a rewind."""
    root = tmp_path_factory.mktemp("recorded")
    write_pools(root, {"web": 120, "code": 90, "maths": 40})
    with start(root) as run:
        run.checkpoint(5)
        run.checkpoint(11, uri="ckpt/11", gpu_hours=1.5, metrics={"validation": {"loss": 2.5}})
        run.checkpoint(40)
    with recipe.open_run(root / "run", step=11) as run:
        run.checkpoint(13)
        run.checkpoint(run.num_steps)
    return root / "run"


@pytest.fixture
def changed(recorded: Path, tmp_path: Path) -> Callable[..., Audit]:
    """Audit a copy of the recorded run after something was done to it."""

    def audit(change: Callable[[Path], None], **options: Any) -> Audit:
        copy = tmp_path / "run"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(recorded, copy)
        change(copy)
        return recipe.audit_run(copy, workers=1, **options)

    return audit
