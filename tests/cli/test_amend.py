"""``recipe amend``, ``skip`` and ``withdraw`` as they are typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import recipe
from recipe.cli.main import main
from recipe.config import Recipe
from tests.run.conftest import build, pools_root  # noqa: F401 - fixtures

Build = Callable[..., Recipe]
WHY = ["--reason", "evaluation of May", "--approved-by", "Ada"]


@pytest.fixture
def run(tmp_path: Path, build: Build) -> str:  # noqa: F811
    """A run that stands at step 12 of 35."""
    with recipe.start_run(build(), tmp_path / "run") as opened:
        for step in (7, 12):
            opened.checkpoint(step, uri=f"w{step}")
    return str(tmp_path / "run")


def files(run: str) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in Path(run).rglob("*") if path.is_file()}


def test_amend_shows_what_changes_and_writes_with_yes(run: str, capsys: pytest.CaptureFixture[str]):
    assert main(["amend", run, "stages.one.quotas.rest=60%", "--from", "a", "--yes", *WHY]) == 0
    out, err = capsys.readouterr()
    for words in (
        "stages.one.quotas.a: 61.6% → 40%",
        "left from step 12 on",
        "readings of each pool at the end",
        "the end of the run",
    ):
        assert words in out
    assert "manifest 3 has it" in err
    assert recipe.run_status(run).step == 12


def test_amend_without_a_terminal_and_without_yes_writes_nothing(
    run: str, capsys: pytest.CaptureFixture[str]
):
    before = files(run)
    assert main(["amend", run, "stages.one.quotas.rest=60%", "--from", "a", *WHY]) == 1
    assert "nothing was written" in capsys.readouterr().err
    assert files(run) == before


def test_amend_answers_in_json(run: str, capsys: pytest.CaptureFixture[str]):
    words = ["amend", run, "stages.two.tokens=1200", "--at", "7", "--yes", "--json", *WHY]
    assert main(words) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["step"], answer["version"], answer["manifest"], answer["discards"]) == (7, 2, 3, 5)
    assert answer["after"]["end_positions"] > answer["before"]["end_positions"]


def test_E6_amend_shows_what_the_rest_takes_at_the_measured_rate(
    tmp_path: Path,
    build: Build,  # noqa: F811
    capsys: pytest.CaptureFixture[str],
):
    with recipe.start_run(build(), tmp_path / "run") as opened:
        opened.checkpoint(4, gpu_hours=10)
        opened.checkpoint(12, gpu_hours=30)
    words = ["amend", str(tmp_path / "run"), "stages.two.tokens=1920", "--yes", *WHY]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "the rest takes 107.5 GPU-hours" in out, "3 * 48 + 20 * 96 = 2064 positions, 384 took 20"
    assert "as steps 4 to 12 did" in out


def test_amend_by_totals(run: str, capsys: pytest.CaptureFixture[str]):
    words = ["amend", run, "stages.one.quotas.rest=41%", "--from", "a", "--total", "--yes", "--json", *WHY]
    assert main(words) == 0
    changes = "\n".join(json.loads(capsys.readouterr().out)["changes"])
    assert "stages.one.quotas" in changes
    assert "41%" not in changes, "forward shares, not the totals"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["stages.one.quotas.rest=60%"], "100%"),
        (["stages.one.quotas.rest=60%", "--from", "nobody"], "nobody"),
        (["stages.one.context=8"], "end the stage here"),
        (["seed=7"], "branch the run"),
        (["stages.three.tokens=5"], "stages.three"),
        ([], "a change of it"),
        (["stages.two.tokens=1200", "--at", "8"], "no checkpoint at step 8"),
        (["stages.one.quotas={a: 1%, b: 90%, c: 9%}", "--total"], "totals that cannot be reached"),
    ],
)
def test_amend_refuses_with_one_message(
    run: str, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
):
    before = files(run)
    assert main(["amend", run, "--yes", *WHY, *words]) == 2
    out, err = capsys.readouterr()
    assert told in err
    assert "Traceback" not in out + err
    assert files(run) == before


def test_a_reason_that_cannot_be_put_on_record_is_refused_by_the_option(
    run: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as exit_code:
        main(["amend", run, "stages.two.tokens=1200", "--reason", "a\nb"])
    assert exit_code.value.code == 2
    assert "cannot be put on record" in capsys.readouterr().err


def test_skip_and_withdraw_as_they_are_typed(run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["skip", run, "--steps", "7..9", "--yes", *WHY]) == 0
    assert "left out, dropped" in capsys.readouterr().out
    (tmp_path / "ids").write_text("3\n5\n")
    words = ["withdraw", run, "--documents", str(tmp_path / "ids"), "--pool", "b", "--ticket", "T-1"]
    assert main([*words, "--yes", "--json", *WHY]) == 0
    assert json.loads(capsys.readouterr().out)["documents"] == {"b": 2}
    assert main([*words, "--yes", *WHY]) == 2
    assert "nothing to withdraw" in capsys.readouterr().err


@pytest.mark.parametrize("steps", ["9..7", "7", "a..b", "7..7", "-1..3"])
def test_steps_that_are_none_are_refused_by_the_option(run: str, steps: str):
    with pytest.raises(SystemExit) as exit_code:
        main(["skip", run, f"--steps={steps}", "--yes", *WHY])
    assert exit_code.value.code == 2
