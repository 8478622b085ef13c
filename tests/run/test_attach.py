"""Metrics that come later than their checkpoint."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe import RecipeError
from recipe.run.comparing.history import read_history
from recipe.run.comparing.measured import metrics_at, without_sealed
from tests.run.conftest import Build


@pytest.fixture
def path(build: Build, tmp_path: Path) -> Path:
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(6, metrics={"code": {"loss": 3.0, "accuracy": 0.1}})
        run.checkpoint(12)
    return tmp_path / "run"


def test_metrics_belong_to_the_last_checkpoint_or_to_the_one_that_is_named(path: Path):
    assert recipe.attach_metrics(path, {"code": {"loss": 2.0}}) == 2
    assert recipe.attach_metrics(path, {"code": {"loss": 2.5}}, 1) == 1
    assert recipe.attach_metrics(path, {"maths": {"loss": 4}}, step=6) == 1
    history = read_history(path)
    assert metrics_at(history, 12) == {"code": {"loss": 2.0}}
    assert metrics_at(history, 6) == {"code": {"loss": 2.5, "accuracy": 0.1}, "maths": {"loss": 4}}


def test_of_two_values_the_later_one_counts(path: Path):
    for loss in (2.0, 1.5):
        recipe.attach_metrics(path, {"code": {"loss": loss}}, 1)
    assert metrics_at(read_history(path), 6)["code"]["loss"] == 1.5


def test_a_second_manifest_of_one_step_is_about_the_same_weights(path: Path):
    recipe.attach_metrics(path, {"code": {"loss": 2.0}})
    recipe.open_run(path).checkpoint(12, metrics={"maths": {"loss": 5.0}})
    assert metrics_at(read_history(path), 12) == {"code": {"loss": 2.0}, "maths": {"loss": 5.0}}


def test_numbers_of_a_trainer_are_taken(path: Path):
    recipe.attach_metrics(
        path, {"sft/short": {"accuracy": np.float32(0.5), "loss": math.nan, "n": np.int64(3)}}
    )
    assert metrics_at(read_history(path), 12)["sft/short"] == {"accuracy": 0.5, "loss": "nan", "n": 3}


@pytest.mark.parametrize(
    "metrics", [{}, {"code": {}}, {"code": 1}, {"code": {"loss": "x"}}, {1: {"a": 1}}, None]
)
def test_what_is_no_metrics_is_refused_and_nothing_written(path: Path, metrics):
    before = (path / "ledger.jsonl").read_bytes()
    with pytest.raises(ValueError, match=r"metrics|number"):
        recipe.attach_metrics(path, metrics)
    assert (path / "ledger.jsonl").read_bytes() == before


def test_a_pool_that_the_run_has_not_is_named_with_the_nearest(path: Path):
    recipe.attach_metrics(path, {"pool:a": {"loss": 1}})
    with pytest.raises(RecipeError, match="a pool of the run: a, b, c"):
        recipe.attach_metrics(path, {"pool:x": {"loss": 1}})


def test_a_checkpoint_that_is_not_there_is_refused_with_those_that_are(path: Path):
    for place in ({"manifest": 3}, {"step": 7}):
        with pytest.raises(RecipeError, match="1 at step 6, 2 at step 12"):
            recipe.attach_metrics(path, {"code": {"loss": 1}}, **place)
    with pytest.raises(ValueError, match="give one"):
        recipe.attach_metrics(path, {"code": {"loss": 1}}, 1, step=6)


def test_a_run_without_checkpoints_has_nothing_to_attach_to(build: Build, tmp_path: Path):
    recipe.start_run(build(), tmp_path / "new").close()
    with pytest.raises(RecipeError, match="a run without checkpoints"):
        recipe.attach_metrics(tmp_path / "new", {"code": {"loss": 1}})


def test_final_sets_are_taken_and_told_apart(path: Path):
    recipe.attach_metrics(path, {"final/code": {"loss": 1}, "code": {"loss": 2}})
    assert without_sealed(metrics_at(read_history(path), 12)) == {"code": {"loss": 2}}
