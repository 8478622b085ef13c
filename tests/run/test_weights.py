"""What became of a checkpoint's weights: shown by status, and asked before a branch starts from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recipe
from recipe import RecipeError
from recipe.cli.main import main
from recipe.run.weights import weights_fate
from tests.run.conftest import Build


@pytest.fixture
def path(build: Build, tmp_path: Path) -> Path:
    """Checkpoints at 2 .. 10: forgotten, removed, kept, elsewhere, without a place."""
    path = tmp_path / "run"
    with recipe.start_run(build(), path) as run:
        for step in (2, 4, 6):
            run.checkpoint(step, uri=f"saved/{step}.pt")
        run.checkpoint(8, uri="s3://bucket/8")
        run.checkpoint(10)
        run.forget(1, reason="old")
    (path / "saved").mkdir()
    (path / "saved/6.pt").touch()
    return path


def test_a_file_is_kept_removed_or_out_of_sight(tmp_path: Path):
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved/1.pt").touch()
    told = {
        "saved/1.pt": "kept",
        f"{tmp_path}/saved/1.pt": "kept",
        f"file://{tmp_path}/saved/1.pt": "kept",
        "saved/2.pt": "removed",
        f"{tmp_path}/saved/2.pt": "removed",
        "other/2.pt": "not seen",
        "2": "not seen",
        "s3://saved/1.pt": "not seen",
    }
    assert {uri: weights_fate(tmp_path, uri) for uri in told} == told
    assert weights_fate(tmp_path, "saved/1.pt", forgotten=True) == "forgotten"


def test_status_shows_what_became_of_the_weights(path: Path, capsys: pytest.CaptureFixture[str]):
    fates = [None, "not seen", "kept", "removed", "forgotten"]
    assert [at.weights for at in recipe.run_status(path).checkpoints] == fates
    assert main(["status", str(path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "saved/" in line]
    assert [line[:2] for line in lines] == [
        ["saved/6.pt", "kept"],
        ["saved/4.pt", "removed"],
        ["saved/2.pt", "forgotten"],
    ]
    assert main(["status", str(path), "--manifests", "all", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert [one["weights"] for one in plain["manifests"]] == fates[::-1]
    assert main(["status", str(path), "--manifests", "all"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines if "saved/" in line] == ["old", "removed", "kept"]


def test_a_branch_of_weights_that_were_removed_is_refused_with_the_way_to_others(path: Path, capsys):
    assert main(["branch", f"{path}@step:4", "late", "--yes"]) == 2
    said = capsys.readouterr().err
    assert "saved/4.pt, which is not there" in said and "--manifests all" in said
    assert not (path.parent / "late").exists()
    assert main(["branch", f"{path}@step:6", "late", "--yes"]) == 0
    assert main(["branch", f"{path}@step:8", "far", "--yes"]) == 0


def test_start_weights_that_a_branch_names_by_a_path_are_there(path: Path):
    def named(weights: str | Path) -> recipe.Wish:
        return recipe.Wish(name="other", overrides=(f"+start={{weights: {weights}}}",))

    with pytest.raises(RecipeError, match=r"start\.weights(.|\n)*nowhere"):
        recipe.branch_run(f"{path}@step:6", named(path.parent / "nowhere"))
    assert recipe.branch_run(f"{path}@step:6", named("org/model-8b"))
