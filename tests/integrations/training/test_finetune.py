"""E3: one fixed short fine-tuning measures checkpoints, and spends nothing of their runs."""

from __future__ import annotations

import json

import pytest

import recipe
from recipe.cli.main import main
from recipe.errors import RecipeError
from recipe.integrations.training.finetune import FineTuning, fine_tune
from recipe.integrations.training.loop import train


@pytest.fixture
def path(tmp_path, build):
    with recipe.start_run(build(), tmp_path / "run") as run:
        train(run)
    return tmp_path / "run"


@pytest.fixture
def told(pools):
    return FineTuning(data=pools / "held_text", test=pools / "held_code", steps=3, learning_rate=1e-2)


def test_E3_the_same_weights_give_the_same_number_and_the_run_stays_as_it_was(path, told, pools):
    before = recipe.run_status(path)
    one, two = fine_tune(path, told, step=8), fine_tune(path, told, step=8)
    assert one == two
    assert one[1]["loss"] != one[1]["loss_before"]
    assert recipe.run_status(path).step == before.step
    assert recipe.audit_run(path, pools_root=pools).findings == ()


def test_windows_that_score_measure_it_and_rows_teach_it(tmp_path, build, told):
    with recipe.start_run(
        build(evaluation={"window": 32, "stride": 12, "offset": 5}), tmp_path / "run"
    ) as run:
        train(run)
    one, two = fine_tune(tmp_path / "run", told), fine_tune(tmp_path / "run", told)
    assert one == two
    assert one[1]["loss"] != one[1]["loss_before"]


def test_E3_compare_ranks_by_it(path, told):
    (other,) = recipe.branch_run(f"{path}@step:8", recipe.Wish(name="other", overrides=("seed=8",)))
    with recipe.open_run(other) as run:
        train(run)
    for arm in (path, other):
        fine_tune(arm, told)
    compared = recipe.compare_runs([path, other], rank_by="sft/short.loss")
    assert "sft/short" in compared.runs[0].metrics


def test_the_command_attaches_it(path, pools, capsys):
    words = ["--data", str(pools / "held_text"), "--test", str(pools / "held_code"), "--steps", "2"]
    assert main(["finetune", f"{path}@step:8", *words, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["manifest"], answer["set"]) == (2, "sft/short")
    assert main(["finetune", str(path), *words[:-1], "0"]) == 2


@pytest.mark.parametrize(
    ("uri", "who"), [("sequences/steps-0-4.parquet", "sink files"), ("s3://ours/4", "another trainer")]
)
def test_a_run_that_the_trainer_did_not_train_is_told_so(tmp_path, build, told, uri, who):
    with recipe.start_run(build(sink="parquet"), tmp_path / "files") as run:
        run.checkpoint(4, uri=uri, digest="0" * 64)
    with pytest.raises(RecipeError, match=f"this run was written by {who}") as refused:
        fine_tune(tmp_path / "files", told)
    assert "sink=train" in refused.value.problems[0].fix


@pytest.mark.parametrize(
    ("data", "test", "says"),
    [("text", "held_code", "does not train on"), ("held_code", "held_code", "another pool")],
)
def test_a_yardstick_that_measures_nothing_is_refused(path, pools, data, test, says):
    with pytest.raises(RecipeError, match=says):
        fine_tune(path, FineTuning(data=pools / data, test=pools / test))
