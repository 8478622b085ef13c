"""``recipe attach`` at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recipe
from recipe.cli.main import main
from recipe.config import load_recipe
from recipe.run.comparing.history import read_history
from recipe.run.comparing.measured import metrics_at


@pytest.fixture
def run_path(small: Path) -> Path:
    with recipe.start_run(load_recipe("small.yaml"), "runs/a") as run:
        run.checkpoint(4)
        run.checkpoint(8)
    return Path("runs/a")


def test_sets_from_words_and_from_a_file(run_path: Path, capsys: pytest.CaptureFixture[str]):
    Path("more.json").write_text('{"maths": {"loss": 2.5}}', encoding="utf-8")
    words = ["--set", "code", "loss=1.25", "accuracy=1e-1", "--set", "sft/short", "acc=1"]
    assert main(["attach", "runs/a@1", *words, "--metrics", "more.json"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "runs/a: attached to manifest 1",
        "  maths: loss",
        "  code: accuracy, loss",
        "  sft/short: acc",
    ]
    assert metrics_at(read_history(run_path), 4) == {
        "maths": {"loss": 2.5},
        "code": {"loss": 1.25, "accuracy": 0.1},
        "sft/short": {"acc": 1},
    }


def test_json_names_what_was_attached_and_repeats_no_number(run_path: Path, capsys):
    assert main(["attach", "runs/a", "--set", "final/code", "loss=1.98765", "--json"]) == 0
    out = capsys.readouterr().out
    plain = json.loads(out)
    assert (plain["run"], plain["manifest"], plain["sets"]) == ("runs/a", 2, {"final/code": ["loss"]})
    assert "1.98765" not in out
    assert main(["attach", "runs/a@step:4", "--set", "final/code", "loss=1.98765"]) == 0
    assert "final/code: loss (sealed)" in capsys.readouterr().out


def test_a_value_that_replaces_another_a_new_set_and_nan_are_said(run_path: Path, capsys):
    assert (
        main(["attach", "runs/a@1", "--set", "code", "loss=2.41", "--set", "final/code", "loss=1.98765"]) == 0
    )
    assert "note" not in capsys.readouterr().out  # a run without metrics: nothing to mistake it for
    words = ["--set", "code", "loss=2.40", "--set", "coed", "loss=nan", "--set", "final/code", "loss=1.9"]
    assert main(["attach", "runs/a@1", *words]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "runs/a: attached to manifest 1",
        "  code: loss (replaces 2.41)",
        "  coed: loss (nan: not finite)",
        "    note: new set; the run's others: code, final/code",
        "  final/code: loss (replaces an earlier value) (sealed)",
    ]
    assert main(["attach", "runs/a@2", "--set", "code", "loss=2", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert (plain["replaced"], plain["new_sets"], plain["not_finite"]) == ({}, [], {})


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "at least one metric"),
        (["--set", "code"], "a set, then NAME=NUMBER"),
        (["--set", "code", "loss"], "NAME=NUMBER"),
        (["--set", "code", "loss=high"], "NAME=NUMBER"),
        (["--set", "loss=1", "b=2"], "a set, then NAME=NUMBER"),
        *((["--set", "code", f"loss={text}"], "NAME=NUMBER") for text in ("1_0", "\u0661", " 1", "0x1", "")),
        (["--set", "code", "=1"], "NAME=NUMBER"),
        (["--set", "code", "5"], "NAME=NUMBER"),
        (["--set", "code", "loss=1", "loss=2"], "loss again"),
        (["--set", "code", "loss=1", "--set", "code", "loss=1"], "loss again"),
        (["--set", "", "loss=1"], "it needs a name"),
        (["--set", "final/", "loss=1"], "such as final/code"),
        (["--set", "SFT/ ", "loss=1"], "such as sft/code"),
        (["--metrics", "nameless.json"], "has no name"),
        (["--metrics", "list.json"], "JSON: {set: {name: number}}"),
        (["--metrics", "twice.json"], "'loss' twice in one object"),
        (["--metrics", "text.json"], "'high' is no number"),
        (["--metrics", "none.json"], "No such file"),
    ],
)
def test_what_is_wrong_is_one_message_and_nothing_written(run_path: Path, capsys, words, told):
    Path("list.json").write_text("[1]")
    Path("twice.json").write_text('{"code": {"loss": 1, "loss": 2}}')
    Path("nameless.json").write_text('{"code": {"": 1}}')
    Path("text.json").write_text('{"code": {"loss": "high"}}')
    before = (run_path / "ledger.jsonl").read_bytes()
    assert main(["attach", "runs/a", *words]) == 2
    assert told in capsys.readouterr().err
    assert (run_path / "ledger.jsonl").read_bytes() == before


@pytest.mark.parametrize("place", ["runs/a@9", "runs/a@step:5"])
def test_a_checkpoint_that_is_not_there_is_told_with_those_that_are(run_path: Path, capsys, place):
    assert main(["attach", place, "--set", "code", "loss=1"]) == 2
    assert "1 at step 4, 2 at step 8" in capsys.readouterr().err


def test_a_folder_of_that_very_name_is_the_run(small: Path, capsys):
    recipe.start_run(load_recipe("small.yaml"), "runs/b@7").checkpoint(2)
    assert main(["attach", "runs/b@7", "--set", "code", "loss=1"]) == 0
