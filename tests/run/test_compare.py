"""Runs held against each other at equal steps."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe import RecipeError
from recipe.run.canonical import canonical
from recipe.run.comparing.compare import compared, read_histories
from recipe.run.comparing.comparison import Question
from tests.run.compared import loss, started
from tests.run.conftest import Build, stage


@pytest.fixture
def two(build: Build, tmp_path: Path) -> list[Path]:
    """Two runs that share nothing but the recipe: a reads 61.6 %, then 56.6 % of stage one."""
    other = {
        "one": stage(tokens=700, context=16, chunk=150, quotas={"a": "56.6%", "rest": "43.4%"}),
        "two": stage(tokens=900, context=32, chunk=200, quotas={"a": "50%", "b": "30%", "c": "20%"}),
    }
    return [
        started(build(), tmp_path / "A", **loss(2.5)),
        started(build(stages=other), tmp_path / "B", **loss(2.25)),
    ]


def test_runs_are_compared_at_the_last_step_that_all_have(build: Build, tmp_path: Path):
    paths = [
        started(build(), tmp_path / "A", (4, 8, 12, 16)),
        started(build(seed=2), tmp_path / "B", (2, 4, 8, 14)),
    ]
    made = recipe.compare_runs(paths)
    assert (made.step, made.common_steps) == (8, (4, 8))
    assert [(run.manifest, run.gpu_hours) for run in made.runs] == [(2, 2.0), (3, 2.0)]
    assert recipe.compare_runs(paths, 4).step == 4
    with pytest.raises(RecipeError, match="one of the common steps: 4, 8"):
        recipe.compare_runs(paths, 12)


def test_no_common_step_is_an_error_with_the_steps_of_each(build: Build, tmp_path: Path):
    paths = [started(build(), tmp_path / "A", (4, 8)), started(build(), tmp_path / "B", (5, 9))]
    with pytest.raises(RecipeError) as told:
        recipe.compare_runs(paths)
    assert [problem.given for problem in told.value.problems] == [
        "checkpoints at 4, 8",
        "checkpoints at 5, 9",
    ]


def test_what_each_read_more_and_less_is_exact(two: list[Path]):
    made = recipe.compare_runs(two)
    spent = []
    for path in two:
        pools = recipe.run_status(path).pools
        spent.append({name: pool.spent for name, pool in pools.items()})
    assert [run.spent for run in made.runs] == spent
    more = made.to_plain()["runs"][1]["more"]
    assert more == {name: spent[1][name] - spent[0][name] for name in "abc"}
    assert more["a"] < 0 < more["b"]
    assert [run.counted for run in made.runs] == [sum(pools.values()) for pools in spent]
    assert made.runs[0].positions == made.runs[1].positions == 12 * 3 * 16


def test_runs_without_a_common_ancestor_are_said_loudly(two: list[Path]):
    made = recipe.compare_runs(two)
    assert not made.controlled
    assert any("no common ancestor" in line for line in made.remarks)
    assert any(line.startswith("B against A: not named: stages.one.quotas") for line in made.remarks)


def test_metrics_attached_later_count(two: list[Path]):
    recipe.attach_metrics(two[1], {"code": {"loss": 2.0}, "maths": {"accuracy": 0.5}})
    made = recipe.compare_runs(two)
    code, maths = made.metrics
    assert (code.name, code.better, maths.name, maths.better) == (
        "code.loss",
        "lower",
        "maths.accuracy",
        "higher",
    )
    assert code.cells[1].delta is not None
    assert code.cells[1].delta.mean == Fraction(-1, 2)
    assert maths.cells[0].values == {}
    assert maths.cells[1].delta is None


def test_A03_how_many_labels_were_scored_is_no_metric_and_must_be_the_same(two: list[Path]):
    for path, labels in zip(two, (640, 640), strict=True):
        recipe.attach_metrics(path, {"code": {"loss": 2.0, "labels": labels}})
    made = recipe.compare_runs(two)
    assert "code.loss" in [each.name for each in made.metrics]
    assert "code.labels" not in [each.name for each in made.metrics]
    assert [run.metrics["code"]["labels"] for run in made.runs] == [640, 640]
    assert not any("labels scored" in line for line in made.remarks)
    recipe.attach_metrics(two[1], {"code": {"labels": 320}})
    (said,) = [line for line in recipe.compare_runs(two).remarks if "scored" in line]
    assert said.startswith("code: labels scored: 640 in ") and ", 320 in " in said


@pytest.mark.parametrize(("margin", "violated"), [(0.1, True), ("0.25", False), (0.249, True), (-0.5, True)])
def test_E3_a_regression_beyond_a_margin_is_a_violation(two: list[Path], margin: Any, violated: bool):
    """Against B, A is worse by 0.25; decimals are compared exactly."""
    made = recipe.compare_runs(two[::-1], no_worse_than={"code.loss": margin})
    assert made.violated is violated
    assert recipe.compare_runs(two, no_worse_than={"code.loss": 0}).violated is False


def test_a_margin_is_exact_where_floats_are_not(build: Build, tmp_path: Path):
    """2.11 - 2.10 is 0.00999… in floats, 1.11 - 1.10 is 0.01000…1: both are within 0.01."""
    for name, (a, b) in {"low": (2.10, 2.11), "high": (1.10, 1.11)}.items():
        paths = [
            started(build(), tmp_path / f"{name}A", **loss(a)),
            started(build(max_epochs=8), tmp_path / f"{name}B", **loss(b)),
        ]
        assert not recipe.compare_runs(paths, no_worse_than={"loss": 0.01}).violated
        assert recipe.compare_runs(paths, no_worse_than={"loss": "0.009999"}).violated


def test_which_way_a_metric_is_better_may_be_said(two: list[Path]):
    recipe.attach_metrics(two[0], {"code": {"score": 1}})
    recipe.attach_metrics(two[1], {"code": {"score": 2}})
    asked: dict[str, Any] = {"no_worse_than": {"code.score": 0}}
    assert not recipe.compare_runs(two, **asked).violated
    assert recipe.compare_runs(two, better={"score": "lower"}, **asked).violated
    assert recipe.compare_runs(two, better={"code.score": "lower"}, **asked).violated


@pytest.mark.parametrize(
    ("values", "violated"), [((2.0, "nan"), True), (("nan", 2.0), False), (("nan", "nan"), True)]
)
def test_a_diverged_loss_is_worse_than_any(build: Build, tmp_path: Path, values: Any, violated: bool):
    paths = [
        started(build(max_epochs=9 - k), tmp_path / str(k), **loss(float(value)))
        for k, value in enumerate(values)
    ]
    assert recipe.compare_runs(paths, no_worse_than={"code.loss": 100}).violated is violated


def test_a_margin_of_nothing_that_was_measured_is_refused(two: list[Path]):
    with pytest.raises(RecipeError, match=r"did you mean 'code.loss'"):
        recipe.compare_runs(two, no_worse_than={"code.los": 1})
    recipe.attach_metrics(two[0], {"maths": {"loss": 1}})
    with pytest.raises(RecipeError, match="none for B"):
        recipe.compare_runs(two, no_worse_than={"maths.loss": 1})
    with pytest.raises(RecipeError, match="a number in the metric's units"):
        recipe.compare_runs(two, no_worse_than={"code.loss": "much"})


def test_a_metric_by_its_name_alone_is_that_of_every_set(two: list[Path]):
    for path, value in zip(two, (1.0, 3.0), strict=True):
        recipe.attach_metrics(path, {"maths": {"loss": value}})
    made = recipe.compare_runs(two, no_worse_than={"loss": 0.5})
    assert [(each.metric, each.verdict) for each in made.judgements] == [
        ("code.loss", "holds on the mean"),
        ("maths.loss", "violated"),
    ]


def test_E3_arms_are_ranked_by_a_short_fine_tuning_as_well_as_by_loss(two: list[Path]):
    for path, value in zip(two, (0.6, 0.4), strict=True):
        recipe.attach_metrics(path, {"sft/short": {"accuracy": value}})
    ranking = recipe.compare_runs(two, rank_by="sft/short.accuracy").ranking
    assert [cell.arm for cell in ranking] == ["A", "B"]
    assert [cell.arm for cell in recipe.compare_runs(two, rank_by="code.loss").ranking] == ["B", "A"]
    with pytest.raises(RecipeError, match="rank by"):
        recipe.compare_runs(two, rank_by="sft/long.accuracy")


def test_runs_that_differ_only_in_seeds_are_one_arm(build: Build, tmp_path: Path):
    """E3: three seeds each, paired by seed: B is lower by exactly 0.25 under every seed."""
    losses = {1: 2.5, 2: 3.0, 3: 2.75}
    paths = [
        started(build(seed=seed, max_epochs=epochs), tmp_path / f"{name}-seed{seed}", **loss(value - less))
        for name, epochs, less in (("A", 9, 0.0), ("B", 8, 0.25))
        for seed, value in losses.items()
    ]
    made = recipe.compare_runs(paths, no_worse_than={"code.loss": 0})
    assert [(arm.name, arm.runs) for arm in made.arms] == [("A", (0, 1, 2)), ("B", (3, 4, 5))]
    a, b = made.metrics[0].cells
    assert a.estimate is not None
    assert (a.estimate.mean, a.estimate.spread) == (Fraction("2.75"), 0.25)
    assert a.estimate.half_width == pytest.approx(4.302653 * 0.25 / 3**0.5, rel=1e-6)
    assert b.paired
    assert b.delta is not None
    assert (b.delta.mean, b.delta.half_width) == (Fraction(-1, 4), 0.0)
    assert [each.verdict for each in made.judgements] == ["holds"]


def test_other_seeds_are_not_paired_and_two_have_no_spread(build: Build, tmp_path: Path):
    def arm(name: str, epochs: int, losses: dict[int, float]) -> list[Path]:
        return [
            started(build(seed=seed, max_epochs=epochs), tmp_path / f"{name}{seed}", **loss(value))
            for seed, value in losses.items()
        ]

    a = arm("A", 9, {1: 2.0, 2: 2.5})
    b = arm("B", 8, {1: 2.0, 2: 2.5, 3: 3.0})
    cells = recipe.compare_runs([*a, *b]).metrics[0].cells
    assert cells[0].estimate is not None
    assert cells[0].estimate.spread is None
    assert cells[1].delta is not None
    assert (cells[1].paired, cells[1].delta.mean, cells[1].delta.half_width) == (False, Fraction(1, 4), None)


def test_a_difference_within_the_margin_may_not_be_shown(build: Build, tmp_path: Path):
    """The mean is worse by 0.1, three seeds scatter by far more: within 0.2, but not shown to be."""
    other = {1: 2.0, 2: 3.2, 3: 2.6}
    paths = [
        started(build(seed=seed, max_epochs=epochs), tmp_path / f"{name}-{seed}", **loss(values[seed]))
        for name, epochs, values in (("A", 9, {1: 2.5, 2: 2.5, 3: 2.5}), ("B", 8, other))
        for seed in values
    ]
    made = recipe.compare_runs(paths, no_worse_than={"code.loss": 0.2})
    (judgement,) = made.judgements
    assert (judgement.verdict, judgement.worse_by, made.violated) == ("not shown", Fraction(1, 10), False)


def test_a_margin_with_nothing_to_hold_it_against_is_refused(build: Build, tmp_path: Path):
    paths = [started(build(seed=seed), tmp_path / f"A-{seed}", **loss(2.0)) for seed in (1, 2)]
    with pytest.raises(RecipeError, match="arms to hold against the first"):
        recipe.compare_runs(paths, no_worse_than={"code.loss": 1})


def test_a_seed_given_twice_is_said(build: Build, tmp_path: Path):
    paths = [started(build(), tmp_path / name) for name in ("A-1", "A-2")]
    assert any("the same seed" in line for line in recipe.compare_runs(paths).remarks)


def test_seeds_of_the_trainer_count_as_seeds(build: Build, tmp_path: Path):
    paths = [
        started(build(trainer={"lr": "1e-3", "init": {"seed": k}}), tmp_path / f"A-{k}") for k in range(2)
    ]
    made = recipe.compare_runs(paths)
    assert [arm.runs for arm in made.arms] == [(0, 1)]
    assert made.runs[1].seeds == (("seed", 1), ("trainer.init.seed", 1))


def test_a_run_given_twice_or_none_is_refused(two: list[Path]):
    with pytest.raises(RecipeError, match="the same run as"):
        recipe.compare_runs([two[0], two[1], two[0]])
    with pytest.raises(RecipeError, match="no run"):
        recipe.compare_runs([])


def test_comparing_writes_nothing_and_needs_no_pool(two: list[Path], tmp_path: Path):
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    recipe.compare_runs(two)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_the_plain_form_is_canonical_json(two: list[Path]):
    plain = recipe.compare_runs(two, no_worse_than={"code.loss": 1}, rank_by="code.loss").to_plain()
    assert json.loads(canonical(plain)) == json.loads(json.dumps(plain))


def test_sealed_sets_are_named_and_not_shown(two: list[Path]):
    recipe.attach_metrics(two[0], {"final/code": {"loss": 1.98765}})
    made = recipe.compare_runs(two)
    assert made.sealed == {"final/code": ("A",)}
    assert "1.98765" not in json.dumps(made.to_plain())
    for asked in ({"no_worse_than": {"final/code.loss": 1}}, {"rank_by": "final/code.loss"}):
        with pytest.raises(RecipeError, match="that may be seen"):
            recipe.compare_runs(two, **asked)


def test_runs_of_one_name_are_told_apart_by_their_paths(build: Build, tmp_path: Path):
    paths = [started(build(max_epochs=9 - k), tmp_path / str(k) / "run") for k in range(2)]
    made = recipe.compare_runs(paths)
    assert [run.label for run in made.runs] == [str(path) for path in paths]
    assert [arm.name for arm in made.arms] == [str(path) for path in paths]


def test_what_goes_on_meanwhile_is_not_looked_at(two: list[Path]):
    """The record is read once: a rewind that comes after it changes nothing."""
    histories = read_histories(two)
    before = compared(histories, Question()).to_plain()
    recipe.open_run(two[0], step=4).checkpoint(5)
    assert compared(histories, Question()).to_plain() == before


def test_a_rewound_run_is_compared_at_what_counts(two: list[Path]):
    recipe.open_run(two[0], step=4).checkpoint(8, metrics=loss(9.0))
    made = recipe.compare_runs(two)
    assert made.step == 8
    assert made.runs[0].metrics == loss(9.0)
