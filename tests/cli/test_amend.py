"""``recipe amend``, ``skip`` and ``withdraw`` as they are typed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import recipe
from recipe.cli.main import main
from recipe.config import Recipe
from recipe.run.changing.amend import amend_run
from recipe.run.changing.approval import Approval
from recipe.run.changing.skip import skip_run
from recipe.run.changing.withdraw import Ticket, withdraw_run
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
        "epochs used up of each pool at the end",
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
    assert "the rest takes 107.5 device-hours" in out, "3 * 48 + 20 * 96 = 2064 positions, 384 took 20"
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


@pytest.mark.parametrize("verb", ["amend", "skip", "withdraw"])
@pytest.mark.parametrize("place", ["@1", "@step:7"])
def test_a_checkpoint_is_named_as_for_a_branch_and_a_dry_run_writes_nothing(
    run: str, verb: str, place: str, capsys: pytest.CaptureFixture[str]
):
    words = {
        "amend": ["stages.two.tokens=1200"],
        "skip": ["--steps", "7..9"],
        "withdraw": ["--document", "3", "--document", "4", "--pool", "b"],
    }
    before = files(run)
    assert main([verb, f"{run}{place}", *words[verb], "--dry-run", "--json", *WHY]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer.get("step", 7), answer["discards"], answer["manifest"]) == (7, 5, None)
    assert files(run) == before


@pytest.mark.parametrize(
    "words",
    [
        ["amend", "{run}@2", "stages.two.tokens=1200", "--at", "7"],
        ["withdraw", "{run}@step:12", "--document", "3", "--at", "7"],
        ["skip", "{run}@2", "--steps", "7..9"],
    ],
)
def test_two_places_that_differ_are_refused(run: str, words: list[str], capsys: pytest.CaptureFixture[str]):
    assert main([word.format(run=run) for word in words] + ["--yes", *WHY]) == 2
    assert "two places" in capsys.readouterr().err


def test_a_manifest_whose_step_has_a_later_one_is_refused(run: str, capsys: pytest.CaptureFixture[str]):
    assert main(["amend", run, "stages.two.tokens=1200", "--yes", *WHY]) == 0
    assert main(["amend", f"{run}@2", "stages.two.tokens=1500", "--yes", *WHY]) == 2
    assert f"change the run at {run}@3" in capsys.readouterr().err


def test_at_takes_steps_alone_and_says_so(run: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["amend", run, "stages.two.tokens=1200", "--at", "@1", "--yes", *WHY])
    assert "named beside the run: RUN@1" in capsys.readouterr().err


def test_total_does_not_swallow_the_run(run: str, capsys: pytest.CaptureFixture[str]):
    for option in ("--total", "--total-run"):
        words = ["amend", option, run, "stages.one.quotas.rest=41%", "--from", "a", "--dry-run", *WHY]
        assert main(words) == 0, capsys.readouterr().err


def test_what_people_had_a_say_in_is_named_before_it_is_discarded(
    run: str, capsys: pytest.CaptureFixture[str]
):
    recipe.attach_metrics(run, {"email": {"loss": 2.0}, "asyncio": {"loss": 1.0}})
    assert main(["amend", run, "stages.two.tokens=1200", "--yes", *WHY]) == 0
    capsys.readouterr()
    assert main(["amend", run, "stages.two.tokens=1500", "--at", "7", "--dry-run", *WHY]) == 0
    out = capsys.readouterr().out
    assert "discards manifest 2 (step 12): metrics asyncio, email" in out
    assert "discards manifest 3 (step 12): an amendment" in out


def test_a_skip_and_a_withdrawal_say_how_the_run_goes_on(run: str, capsys: pytest.CaptureFixture[str]):
    assert main(["skip", run, "--steps", "7..9", "--dry-run", *WHY]) == 0
    out = capsys.readouterr().out
    assert "the data of steps 7 to 8 is left out" in out
    assert "ends at step 25" in out
    assert main(["withdraw", run, "--document", "3", "--pool", "b", "--dry-run", *WHY]) == 0
    assert "the run goes on at step 12 without them" in capsys.readouterr().out


def test_withdraw_wants_documents_and_says_how_to_name_one(run: str, capsys: pytest.CaptureFixture[str]):
    assert main(["withdraw", run, "--yes", *WHY]) == 2
    assert "--document ID" in capsys.readouterr().err
    assert main(["withdraw", run, "--documents", "asyncio/locks.py", "--yes", *WHY]) == 2
    assert "--document ID" in capsys.readouterr().err


def test_a_group_of_which_one_pool_changes_is_said_to_be_replaced(
    run: str, capsys: pytest.CaptureFixture[str]
):
    words = ["groups.rest.within={shares: {b: 50%, c: 50%}}"]
    assert main(["amend", run, *words, "--yes", *WHY]) == 0
    capsys.readouterr()
    assert main(["amend", run, "stages.one.quotas.b=25%", "--from", "a", "--dry-run", *WHY]) == 0
    assert "group rest (38.4%) is replaced by its pools: b, c" in capsys.readouterr().out


def test_defaults_of_a_new_stage_go_without_saying(run: str, capsys: pytest.CaptureFixture[str]):
    words = ["amend", run, "+stages.three={like: two, tokens: 500}", "--dry-run", *WHY]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "stages.three.tokens: (nothing) → 500" in out
    assert "stages.three.packing" not in out
    words[2] = "+stages.three={like: two, tokens: 500, packing: concat}"
    assert main(words) == 0
    assert "stages.three.packing.method: (nothing) → concat" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--max-rise", "3"], "--total or --total-run beside it"),
        (["--max-rise", "any"], "--total or --total-run beside it"),
        (["--grown", "now"], "no pool has more parts now"),
        (["--grown", "next-epoch"], "no pool has more parts now"),
    ],
)
def test_options_of_amend_that_would_have_no_effect(run: str, capsys, words, told):
    before = files(run)
    assert main(["amend", run, "stages.one.quotas.rest=60%", "--from", "a", "--yes", *WHY, *words]) == 2
    assert told in capsys.readouterr().err
    assert files(run) == before


def test_steps_below_zero_are_the_callers_fault(run: str):
    why = Approval(reason="x")
    with pytest.raises(ValueError, match="at is -1"):
        amend_run(run, ["stages.two.tokens=1200"], approval=why, at=-1)
    with pytest.raises(ValueError, match="steps is -1"):
        skip_run(run, (-1, 3), reason="x")
    with pytest.raises(ValueError, match="at is -1"):
        withdraw_run(run, [1], ticket=Ticket(reason="x"), at=-1)
