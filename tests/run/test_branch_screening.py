"""E3: small proxies screen mixtures, and checkpoints of the target model confirm the best."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import recipe
from recipe import RecipeError
from recipe.config import Recipe
from recipe.config.stage import Stage
from recipe.run.branching.branch import create_branches
from recipe.run.branching.origin import find_origin
from recipe.run.comparing.attach import attach_metrics
from recipe.run.ledger import read_rows
from recipe.run.manifest import sealed
from recipe.run.screening.mixtures import Draws, Grid, Mixture, Table, mixtures, with_mixture
from recipe.run.screening.ranking import plan_confirmation, rank_screen
from recipe.run.screening.screen import (
    Ask,
    create_screen,
    plan_screen,
    plan_screen_of_branches,
    read_screen,
)
from tests.run.conftest import Build, served, stage

QUOTAS = {"a": "50%", "b": "30%", "c": "20%"}
DRAWS = Draws(number=4, concentration=Fraction(6), seed=7)


@pytest.fixture
def proxy(build: Build) -> Recipe:
    return build(stages={"s": stage(tokens=480, context=16, quotas=QUOTAS)}, groups={})


def told(error: RecipeError) -> str:
    return "\n".join(f"{p.where}: {p.given}; {p.expected}; {p.fix}" for p in error.problems)


def refused(stage: Stage, *args: Any) -> str:
    with pytest.raises(RecipeError) as caught:
        mixtures(stage, *args)
    return told(caught.value)


def test_a_grid_has_every_mixture_of_the_varied_names_and_keeps_the_others(proxy: Recipe):
    found = mixtures(proxy.stages["s"], Grid(step=Fraction(1, 5)), ["a", "b"])
    assert [mixture.name for mixture in found] == ["m000", "m001", "m002", "m003", "m004"]
    assert [[str(share) for share in mixture.shares.values()] for mixture in found] == [
        ["0", "4/5", "1/5"],
        ["1/5", "3/5", "1/5"],
        ["2/5", "2/5", "1/5"],
        ["3/5", "1/5", "1/5"],
        ["4/5", "0", "1/5"],
    ]
    assert len(mixtures(proxy.stages["s"], Grid(step=Fraction(1, 10), least=Fraction(1, 10)))) == 36


def test_a_step_that_does_not_fit_is_refused(proxy: Recipe):
    text = refused(proxy.stages["s"], Grid(step=Fraction(3, 10)), ["a", "b"])
    assert text.startswith("--grid: steps of 30%; steps that 80% is a whole number of")
    assert "--least" in refused(
        proxy.stages["s"], Grid(step=Fraction(1, 5), least=Fraction(1, 10)), ["a", "b"]
    )
    assert "each is a run" in refused(proxy.stages["s"], Grid(step=Fraction(1, 100)))


@given(st.integers(0, 2**63 - 1), st.integers(1, 500))
def test_draws_are_exact_parts_of_a_million_and_sum_to_one(seed: int, tenths: int):
    parts = {"a": Fraction(1, 2), "b": Fraction(3, 10), "c": Fraction(1, 5)}
    one = Stage.model_validate(
        {
            "name": "s",
            "tokens": 480,
            "context": 16,
            "batch": {"sequences": 3},
            "quotas": {name: f"{float(100 * part):g}%" for name, part in parts.items()},
        }
    )
    how = Draws(number=2, concentration=Fraction(tenths, 10), seed=seed)
    for mixture in mixtures(one, how):
        assert sum(mixture.shares.values()) == 1
        assert all((10**6 * share).denominator == 1 for share in mixture.shares.values())


def test_draws_are_the_same_whoever_draws_and_however_many(proxy: Recipe):
    few, many = (
        mixtures(proxy.stages["s"], Draws(number=n, concentration=Fraction(6), seed=7)) for n in (2, 5)
    )
    assert many[:2] == few
    assert (
        many[0].shares == {"a": Fraction(0), "b": Fraction(0), "c": Fraction(0)}
        or sum(many[0].shares.values()) == 1
    )


def test_a_table_of_weights_is_normalised_exactly(proxy: Recipe, tmp_path: Path):
    file = tmp_path / "weights.csv"
    file.write_text("name,a,c\nhalf,1,1\nthirds,2/3,1/3\n")
    found = mixtures(proxy.stages["s"], Table(path=file))
    assert [mixture.name for mixture in found] == ["half", "thirds"]
    assert found[0].shares == {"a": Fraction(7, 20), "b": Fraction(3, 10), "c": Fraction(7, 20)}
    assert found[1].shares["a"] == Fraction(7, 15)
    assert with_mixture(proxy, "s", found[1]).shares("s") == found[1].shares


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("a,b\n1,x\n0,0\n1,-2\n", [":2", ":3", ":4"]),
        ("a,b\n1\n", [":2: 1 cells"]),
        ("a,a\n1,2\n", [":1"]),
        ("a,d\n1,2\n", ["--over: d"]),
        ("a\n1\n", ["--over"]),
        ("name,a,b\nx,1,2\nx,3,4\n../y,1,1\n", [":3", ":4"]),
        ("a,b\n", ["mixtures"]),
        ("", ["mixtures"]),
    ],
)
def test_a_table_that_is_none_is_refused_line_by_line(
    proxy: Recipe, tmp_path: Path, text: str, wrong: list[str]
):
    file = tmp_path / "w.csv"
    file.write_text(text)
    answer = refused(proxy.stages["s"], Table(path=file))
    assert all(mark in answer for mark in wrong), answer


def test_names_to_vary_must_be_stated(proxy: Recipe, tmp_path: Path):
    one = proxy.stages["s"]
    assert "z" in refused(one, DRAWS, ["a", "z"])
    assert "2 times" in refused(one, DRAWS, ["a", "a", "b"])
    assert "two names" in refused(one, DRAWS, ["a"])
    assert "no such file" in refused(one, Table(path=tmp_path / "none.csv")).casefold()


def test_E3_proxies_are_drawn_run_and_ranked_and_the_best_confirmed_on_the_target(
    proxy: Recipe, build: Build, tmp_path: Path
):
    out = tmp_path / "screen"
    create_screen(plan_screen(proxy, Ask(how=DRAWS), out))
    record = read_screen(out)
    assert record["how"] == {"dirichlet": 4, "concentration": "6", "seed": 7, "centre": "own"}
    names = [mixture["name"] for mixture in record["mixtures"]]
    assert names == ["m000", "m001", "m002", "m003"]
    losses = dict(zip(names, [2.5, 2.25, 2.75, 2.25], strict=True))
    for mixture in record["mixtures"]:
        with recipe.open_run(out / mixture["name"]) as run:
            assert {k: str(v) for k, v in run.recipe.shares("s").items()} == {
                name: str(Fraction(share)) for name, share in mixture["shares"].items()
            }
            metrics = {"validation": {"loss": losses[mixture["name"]]}}
            run.checkpoint(run.num_steps, metrics=metrics)
    ranking = rank_screen(out, "validation.loss")
    assert [(each.rank, each.name) for each in ranking.ranked] == [
        (1, "m001"),
        (1, "m003"),
        (3, "m000"),
        (4, "m002"),
    ]
    with recipe.start_run(build(), tmp_path / "target") as run:
        run.checkpoint(9)
    with pytest.raises(RecipeError, match="--stage"):
        plan_confirmation(ranking, find_origin(tmp_path / "target"), 2)
    branches = plan_confirmation(ranking, find_origin(tmp_path / "target"), 2, stage="two")
    paths = create_branches(branches)
    assert [path.name for path in paths] == ["confirm-m001", "confirm-m003"]
    for path, mixture in zip(paths, [record["mixtures"][1], record["mixtures"][3]], strict=True):
        row = next(read_rows(path / "ledger.jsonl")).data
        assert row["parent"]["controlled"]
        with recipe.open_run(path) as run:
            shares = {name: Fraction(share) for name, share in mixture["shares"].items()}
            assert run.recipe.shares("two") == shares
            assert run.step == 9


def test_a_screen_of_branches_starts_all_from_one_checkpoint(proxy: Recipe, tmp_path: Path):
    with recipe.start_run(proxy, tmp_path / "trunk") as run:
        run.checkpoint(4)
    out = tmp_path / "screen"
    create_screen(plan_screen_of_branches(find_origin(tmp_path / "trunk"), Ask(how=DRAWS), out))
    assert read_screen(out)["parent"]["step"] == 4
    for mixture in read_screen(out)["mixtures"]:
        with recipe.open_run(out / mixture["name"]) as run:
            assert run.step == 4
            assert served(run.stream(), 4)
            run.checkpoint(6)
        assert (out / mixture["name"] / "parent.yaml").is_file()


def test_a_screen_appears_whole_or_not_at_all(proxy: Recipe, tmp_path: Path):
    screen = plan_screen(proxy, Ask(how=DRAWS), tmp_path / "screen")
    create_screen(screen)
    with pytest.raises(RecipeError, match="something else"):
        create_screen(screen)
    with pytest.raises(RecipeError):
        plan_screen(proxy, Ask(how=DRAWS), tmp_path / "screen")
    assert sorted(path.name for path in tmp_path.glob("*screen*")) == ["screen"]


def test_mixtures_that_run_out_for_certain_are_named(build: Build, tmp_path: Path):
    short = build(stages={"s": stage(tokens=1440, context=16, quotas=QUOTAS)}, groups={}, max_epochs=3)
    with pytest.raises(RecipeError) as caught:
        plan_screen(short, Ask(how=Grid(step=Fraction(35, 100)), over=("a", "c")), tmp_path / "screen")
    assert "m000: pools.c" in told(caught.value)
    assert not (tmp_path / "screen").exists()


def test_metrics_that_come_later_rank_too_and_gaps_are_told(proxy: Recipe, tmp_path: Path):
    out = tmp_path / "screen"
    create_screen(plan_screen(proxy, Ask(how=DRAWS), out))
    for number in range(3):
        with recipe.open_run(out / f"m00{number}") as run:
            run.checkpoint(5)
            run.checkpoint(10)
    with pytest.raises(RecipeError, match="nothing to rank"):
        rank_screen(out, "code.accuracy")
    for number, value in enumerate([0.25, 0.5, float("nan")]):
        attach_metrics(out / f"m00{number}", {"code": {"accuracy": value}}, step=5)
    attach_metrics(out / "m000", {"code": {"accuracy": 0.75}}, step=10)
    ranking = rank_screen(out, "code.accuracy")
    assert (ranking.step, ranking.direction) == (5, "higher")
    assert [each.name for each in ranking.ranked] == ["m001", "m000"]
    assert ranking.lacking == ("m002", "m003")
    assert [each.name for each in rank_screen(out, "code.accuracy", direction="lower").ranked] == [
        "m000",
        "m001",
    ]
    assert [each.name for each in rank_screen(out, "code.accuracy", step=10).ranked] == ["m000"]


@pytest.mark.parametrize("metric", ["loss", ".loss", "code.", "code.loss", "final/code.loss", "Final/x.loss"])
def test_a_metric_that_is_none_or_sealed_is_refused(proxy: Recipe, tmp_path: Path, metric: str):
    create_screen(plan_screen(proxy, Ask(how=DRAWS), tmp_path / "screen"))
    with pytest.raises(RecipeError, match="--metric"):
        rank_screen(tmp_path / "screen", metric)


def test_a_name_alone_is_enough_where_one_set_has_it(proxy: Recipe, tmp_path: Path):
    out = tmp_path / "screen"
    create_screen(plan_screen(proxy, Ask(how=DRAWS), out))
    for mixture, value in (("m000", 2.0), ("m001", 1.0)):
        with recipe.open_run(out / mixture) as run:
            run.checkpoint(5, metrics={"code": {"loss": value}, "final/code": {"loss": 0.1}})
    ranking = rank_screen(out, "loss")
    assert (ranking.metric, [each.name for each in ranking.ranked]) == ("code.loss", ["m001", "m000"])
    recipe.attach_metrics(out / "m000", {"maths": {"loss": 1.0}})
    with pytest.raises(RecipeError, match=r"one of code\.loss, maths\.loss"):
        rank_screen(out, "loss")


def test_a_proxy_sees_the_repetition_of_the_full_run(build: Build, tmp_path: Path):
    """``simulate_budget``: pools are shrunk as the run is, so that the epochs are those of the full one."""
    quotas = {"a": "60%", "b": "40%"}
    for name in "ab":
        recipe.write_pool(tmp_path / name, [np.arange(1, 15)] * 64, vocab_size=500, eos=0)
    pools = {name: {"path": str(tmp_path / name)} for name in "ab"}
    stages = {"s": stage(tokens=960, context=16, quotas=quotas)}
    wanted = build(stages=stages, groups={}, pools=pools, simulate_budget=4 * 960)
    screen = plan_screen(wanted, Ask(how=Grid(step=Fraction(1, 2))), tmp_path / "screen")
    assert screen.record["simulated_fraction"] == "1/4"
    whole = build(stages={"s": stage(tokens=4 * 960, context=16, quotas=quotas)}, groups={}, pools=pools)
    full = plan_screen(whole, Ask(how=Grid(step=Fraction(1, 2))), tmp_path / "full")
    for name in ("m000", "m001", "m002"):
        for pool in "ab":
            assert screen.outlooks[name].pools[pool].epochs == full.outlooks[name].pools[pool].epochs


def test_a_damaged_screen_is_told(proxy: Recipe, tmp_path: Path):
    out = tmp_path / "screen"
    create_screen(plan_screen(proxy, Ask(how=DRAWS), out))
    (out / "screen.yaml").write_bytes((out / "screen.yaml").read_bytes().replace(b"m000", b"m009"))
    with pytest.raises(RecipeError, match="damaged"):
        read_screen(out)
    with pytest.raises(RecipeError, match="no screen"):
        read_screen(tmp_path)


@pytest.mark.parametrize(
    "changed", [{"name": "../x"}, {"shares": {"a": "1/2"}}, {"shares": ["a"]}, {"shares": {"a": "no"}}]
)
def test_a_screen_that_was_written_by_somebody_else_leads_nowhere(
    proxy: Recipe, tmp_path: Path, changed: dict[str, Any]
):
    out = tmp_path / "screen"
    create_screen(plan_screen(proxy, Ask(how=DRAWS), out))
    record = {key: value for key, value in read_screen(out).items() if key != "hash"}
    record["mixtures"][0] |= changed
    (out / "screen.yaml").write_bytes(sealed(record))
    with pytest.raises(RecipeError):
        rank_screen(out, "validation.loss")


def test_a_mixture_of_thirds_is_stated_in_weights(proxy: Recipe):
    thirds = Mixture(name="x", shares=dict.fromkeys("abc", Fraction(1, 3)))
    assert with_mixture(proxy, "s", thirds).shares("s") == thirds.shares
