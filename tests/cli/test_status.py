"""``recipe status`` at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recipe
from recipe.cli.main import main
from recipe.config import recipe_from_plain


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    for name in "ab":
        recipe.write_pool(tmp_path / name, [[1, 2, 3, 4, 5]] * 40, vocab_size=10, eos=0)
    plain = {
        "seed": 1,
        "pools": {name: {"path": str(tmp_path / name)} for name in "ab"},
        "stages": {"s": {"steps": 6, "context": 8, "batch": {"sequences": 2}, "weights": {"a": 3, "b": 1}}},
    }
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "runs" / "trial") as run:
        run.checkpoint(4, uri="ckpt/4.pt", gpu_hours=1.5)
    return tmp_path / "runs" / "trial"


def test_status_prints_where_the_run_stands(run_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["status", str(run_path)]) == 0
    out = capsys.readouterr().out
    assert "trial: step 4 of 6 (66.7%), next in stage s" in out
    assert "ckpt/4.pt" in out


def test_status_as_json(run_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["status", str(run_path), "--json"]) == 0
    status = json.loads(capsys.readouterr().out)
    assert (status["step"], status["num_steps"], status["stage"]) == (4, 6, "s")
    assert sum(pool["spent"] for pool in status["pools"].values()) == sum(
        p["owed"] for p in status["pools"].values()
    )


def test_status_of_no_run_is_bad_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["status", str(tmp_path)]) == 2
    assert "no run" in capsys.readouterr().err
