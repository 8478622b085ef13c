"""``recipe compare`` at the command line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import recipe
from recipe.cli.main import main
from recipe.config import load_recipe
from recipe.report.comparison import warning_lines
from recipe.run.comparing.evidence import read_evidence
from recipe.run.comparing.history import read_history
from recipe.run.folder import RunFolder

LOSSES = {"A": 2.5, "B": 2.25}
SECRET = 1.98765


@pytest.fixture
def runs(small: Path) -> Path:
    """Runs A and B at step 8; B has a final set that nobody may see."""
    for seed, (name, value) in enumerate(LOSSES.items()):
        with recipe.start_run(load_recipe("small.yaml", [f"seed={seed}"]), f"runs/{name}") as run:
            run.checkpoint(4, gpu_hours=1)
            metrics = {"code": {"loss": value}, **({"final/code": {"loss": SECRET}} if seed else {})}
            run.checkpoint(8, gpu_hours=3, metrics=metrics)
    return Path("runs")


def test_tables_show_tokens_metrics_rest_and_lineage(runs: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["compare", "runs/A", "runs/B"]) == 0
    out = capsys.readouterr().out
    for text in (
        "at step 8",
        "device-hours (of GPUs, or of a processor) as the trainers state them",
        "tokens read, cumulative",
        "code.loss",
        "2.375 (2 seeds)",
        "below 3 seeds: no spread known",
        "lineage: what each read itself, and in total",
        "UNCONTROLLED: B against A: no common ancestor",
        "sealed until a decision: final/code (B)",
    ):
        assert text in out
    assert str(SECRET) not in out
    assert out.count("no spread known") == 1


def test_tables_fit_and_runs_that_share_no_start_take_a_line(runs: Path, capsys):
    changes = [
        "stages.short.quotas={a: 50%, b: rest}",
        "stages.long.context=64",
        "max_epochs=9",
        "count=fresh",
    ]
    with recipe.start_run(load_recipe("small.yaml", changes), "runs/C") as run:
        run.checkpoint(8, gpu_hours=2)
    assert main(["compare", "runs/A", "runs/C"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) < 130
    told = [line for line in lines if line.startswith("UNCONTROLLED")]
    assert len(told) == 1 and told[0].endswith("(--json lists them)")
    assert "C against A: no common ancestor: they share no checkpoint; other differences: " in told[0]


def test_of_many_differences_the_first_are_shown_and_the_rest_counted(runs: Path):
    made = recipe.compare_runs(["runs/A", "runs/B"])
    for many, shown in ((7, 7), (8, 7), (30, 7)):
        told = [f"B against A: trainer.k{n}: 1 → 2" for n in range(many)]
        lines = [*warning_lines(replace(made, remarks=(*told, "B skipped steps at step 3"), sealed={}))]
        assert lines[:6] == [f"UNCONTROLLED: {line}" for line in told[:6]]
        assert len(lines) == shown + 1 and lines[-1] == "UNCONTROLLED: B skipped steps at step 3"
        more = f"B against A: differences more: {many - 6} (--json lists them)"
        assert lines[6] == f"UNCONTROLLED: {told[6] if many == 7 else more}"


def test_runs_without_GPU_hours_have_no_columns_of_them_and_seeds_share_one(small: Path, capsys):
    for name, epochs in (("A", 4), ("B", 5)):
        for seed in (1, 2, 3):
            changes = [f"max_epochs={epochs}", f"seed={seed}"]
            with recipe.start_run(load_recipe("small.yaml", changes), f"runs/{name}-s{seed}") as run:
                run.checkpoint(4, metrics={"code": {"loss": 2.5}})
    assert main(["compare", *(f"runs/{name}-s{seed}" for name in "AB" for seed in (1, 2, 3))]) == 0
    out = capsys.readouterr().out
    assert "device-hour" not in out
    read = out.split("tokens read, cumulative")[1].split("metrics")[0]
    assert read.split()[:7] == ["pool", "A", "B", "more", "(+),", "less", "(-)"]
    assert all(line.split()[-1] == "0" for line in read.splitlines() if line.startswith((" a", " b")))
    assert " equal" in out
    assert "+0" not in out


def test_json_has_the_same_and_nothing_sealed(runs: Path, capsys):
    assert main(["compare", "runs/A", "runs/B", "--json"]) == 0
    out = capsys.readouterr().out
    plain = json.loads(out)
    assert (plain["step"], plain["sealed"], plain["decision"]) == (8, {"final/code": ["B"]}, None)
    assert str(SECRET) not in out
    # Two seeds of one recipe are one arm: nothing to hold against the first.
    assert [arm["runs"] for arm in plain["arms"]] == [["A", "B"]]


def test_a_violated_margin_is_1(small: Path, capsys):
    for name, value, epochs in (("A", 2.5, 4), ("B", 2.75, 5)):
        with recipe.start_run(load_recipe("small.yaml", [f"max_epochs={epochs}"]), f"runs/{name}") as run:
            run.checkpoint(4, metrics={"code": {"loss": value, "score": 1}})
    words = ["compare", "runs/A", "runs/B"]
    assert main([*words, "--no-worse-than", "code.loss=0.25"]) == 0
    assert "holds on the mean (no spread known)" in capsys.readouterr().out
    assert main([*words, "--no-worse-than", "code.loss=0.1"]) == 1
    assert "VIOLATED" in capsys.readouterr().out
    assert main([*words, "--no-worse-than", "loss=0", "--higher", "loss"]) == 0
    assert main([*words, "--rank-by", "code.loss"]) == 0
    assert "ranked by code.loss" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--step", "7"], "one of the common steps: 4, 8"),
        (["--no-worse-than", "code.loss"], "METRIC=MARGIN"),
        (["--no-worse-than", "code.loss=x"], "a number in the metric's units"),
        (["--rank-by", "nothing"], "that may be seen: code.loss"),
        (["--lower", "loss", "--higher", "loss"], "give each metric one of the two"),
        (["--decide", "runs/C", "--approved-by", "x", "--reason", "y", "--yes"], "one of the compared runs"),
        (["--decide", "runs/A", "--yes"], "--approved-by"),
        (["--open-final", "--by", "x", "--reason", "y", "--yes"], "no decision on record"),
        (["--open-final", "--yes"], "--by"),
        (["--open-final", "--decide", "runs/A"], "one of the two"),
    ],
)
def test_what_is_wrong_is_one_message_and_nothing_written(runs: Path, capsys, words, told):
    before = {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()}
    assert main(["compare", "runs/A", "runs/B", *words, "--json"]) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert str(SECRET) not in said.err + said.out
    assert {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "which", [["--decide", "runs/A", "--approved-by", "x"], ["--open-final", "--by", "x"]]
)
def test_without_a_yes_nothing_is_written(runs: Path, capsys, which):
    before = {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()}
    assert main(["compare", "runs/A", "runs/B", *which, "--reason", "y", "--json"]) == 1
    said = capsys.readouterr()
    assert (said.out, "--yes" in said.err) == ("", True)
    assert {path: path.read_bytes() for path in runs.rglob("*") if path.is_file()} == before


def test_decide_then_open(runs: Path, capsys):
    words = ["compare", "runs/A", "runs/B"]
    decided = ["--decide", "runs/B", "--approved-by", "Li", "--reason", "code loss", "--yes"]
    assert main([*words, *decided]) == 0
    out = capsys.readouterr().out
    assert str(SECRET) not in out
    (row,) = read_history("runs/B").said("decision")
    assert f"evidence {row.data['evidence']}" in out
    assert str(SECRET) not in json.dumps(read_evidence(RunFolder(runs / "B"), row.data["evidence"]))
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "decided; --open-final opens: final/code (B)" in out
    assert "until a decision" not in out
    assert main([*words, "--json"]) == 0
    assert str(SECRET) not in capsys.readouterr().out  # still sealed: opening is an act of its own
    assert main([*words, "--open-final", "--by", "Wang", "--reason", "report", "--yes", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["opened"], plain["sealed"]) == (["final/code"], {})
    assert str(SECRET) in json.dumps(plain)
    (opened,) = read_history("runs/B").said("opened")
    assert opened.data["sets"] == ["final/code"]
    assert not read_history("runs/A").said("opened")


def test_no_verb_prints_a_sealed_number(runs: Path, capsys):
    assert main(["attach", "runs/A", "--set", "final/maths", f"loss={SECRET}"]) == 0
    for words in (
        ["status", "runs/B"],
        ["status", "runs/B", "--json"],
        ["compare", "runs/B", "runs/A"],
        ["audit", "runs/B", "--json"],
    ):
        main(words)
        said = capsys.readouterr()
        assert str(SECRET) not in said.out + said.err, words
    assert str(SECRET) not in recipe.ledger_table("runs/B").to_json()


@pytest.mark.parametrize(
    ("figure", "way"), [("no/such/figure.svg", "mkdir -p no/such"), ("runs", "--figure runs/compare.svg")]
)
def test_a_figure_that_cannot_be_written_is_told_before_anything_is_put_on_record(runs, capsys, figure, way):
    words = ["--decide", "runs/A", "--approved-by", "Ada", "--reason", "test", "--yes", "--figure", figure]
    assert main(["compare", "runs/A", "runs/B", *words]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("problem") == 1
    assert "--figure" in said.err and way in said.err
    assert not recipe.run_status("runs/A").decisions


def test_a_figure_is_written_where_it_is_wanted(runs, capsys):
    assert main(["compare", "runs/A", "runs/B", "--figure", "runs/compare.svg"]) == 0
    assert Path("runs/compare.svg").read_text().startswith("<svg")
