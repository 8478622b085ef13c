"""E6: what was measured gives the GPU-hours and the time of the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

import recipe
from recipe.run.comparing.history import read_history
from recipe.run.comparing.throughput import Throughput, rest_at, rest_of_run
from tests.run.conftest import Build

POSITIONS = 15 * 48 + 10 * 96
"""15 steps of 3 × 16 positions and 10 of 3 × 32."""


@pytest.fixture
def path(build: Build, tmp_path: Path) -> Path:
    """Steps 0..5 took 10 GPU-hours, warming up; 5..10 took 4, so 60 positions a GPU-hour."""
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(5, gpu_hours=10)
        run.checkpoint(10, gpu_hours=14)
    return tmp_path / "run"


def test_E6_the_last_two_checkpoints_give_the_rate_of_the_rest(path: Path):
    rest = rest_of_run(path)
    assert rest is not None
    assert (rest.measured.steps, rest.measured.positions, rest.measured.gpu_hours) == ((5, 10), 240, 4.0)
    assert rest.measured.positions_per_gpu_hour == 60
    assert rest.positions == POSITIONS - 480
    assert rest.gpu_hours == (POSITIONS - 480) / 60


def test_E6_packing_shows_in_the_counted_tokens_per_gpu_hour(build: Build, tmp_path: Path):
    """The same hardware works through as many positions; without packing more of them are padding."""
    rates = {}
    for method in ("best_fit", "none"):
        path = tmp_path / method
        stages = build().model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)[
            "stages"
        ]
        for stage in stages.values():
            stage["packing"] = {"method": method}
        with recipe.start_run(build(stages=stages), path) as run:
            run.checkpoint(5, gpu_hours=1)
            run.checkpoint(10, gpu_hours=2)
        rest = rest_of_run(path)
        assert rest is not None
        rates[method] = rest.measured
    assert rates["best_fit"].positions_per_gpu_hour == rates["none"].positions_per_gpu_hour
    assert rates["best_fit"].counted_per_gpu_hour > 1.2 * rates["none"].counted_per_gpu_hour


def test_E6_other_positions_may_be_asked_about(path: Path):
    rest = rest_of_run(path, positions=120)
    assert rest is not None
    assert rest.gpu_hours == 2


def test_a_rate_needs_two_steps_with_rising_gpu_hours(build: Build, tmp_path: Path):
    with recipe.start_run(build(), tmp_path / "run") as run:
        assert rest_of_run(tmp_path / "run") is None
        run.checkpoint(4, gpu_hours=1)
        assert rest_of_run(tmp_path / "run") is None
        run.checkpoint(4, gpu_hours=2)
        assert rest_of_run(tmp_path / "run") is None
        run.checkpoint(6)
        assert rest_of_run(tmp_path / "run") is None
        run.checkpoint(8, gpu_hours=2)
        assert rest_of_run(tmp_path / "run") is None
        run.checkpoint(10, gpu_hours=3)
    rest = rest_of_run(tmp_path / "run")
    assert rest is not None
    assert rest.measured.steps == (8, 10)


def test_at_an_older_step_only_what_was_known_there_counts(path: Path):
    with recipe.open_run(path) as run:
        run.checkpoint(15, gpu_hours=100)
    rest = rest_at(read_history(path), 10)
    assert rest is not None
    assert rest.measured.steps == (5, 10)


def test_a_complete_run_needs_nothing_more(path: Path):
    with recipe.open_run(path) as run:
        run.checkpoint(run.num_steps, gpu_hours=30)
    rest = rest_of_run(path)
    assert rest is not None
    assert (rest.positions, rest.gpu_hours) == (0, 0.0)


def test_time_is_in_proportion_and_unknown_where_the_clock_stood_still():
    made = Throughput(steps=(0, 2), positions=100, counted=90, gpu_hours=2.0, seconds=3600.0)
    assert (made.rest(50).gpu_hours, made.rest(50).seconds) == (1.0, 1800.0)
    still = Throughput(steps=(0, 2), positions=100, counted=90, gpu_hours=2.0, seconds=None)
    assert still.rest(50).seconds is None
