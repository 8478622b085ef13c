"""``recipe audit``: 0 when nothing is wrong, 1 when something is, named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipe.cli.main import main


@pytest.fixture
def run(small, capsys) -> Path:
    """A complete run."""
    assert main(["run", "small.yaml", "--json"]) == 0
    capsys.readouterr()
    return Path("runs/small")


def test_a_sound_run_is_0(run, capsys):
    assert main(["audit", str(run), "--full"]) == 0
    out = capsys.readouterr().out
    assert "nothing is wrong" in out
    assert "tokens on record" in out


def test_json_holds_tokens_and_drift(run, capsys):
    assert main(["audit", str(run), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["ok"] is True
    assert said["findings"] == []
    assert set(said["tokens"]["a"]) == {"body", "overlap", "special", "padding", "labels"}
    assert set(said["drift"]) == {"short", "long"}
    body, special, padding = (
        sum(pool[k] for pool in said["tokens"].values()) for k in ("body", "special", "padding")
    )
    assert body + special + padding == 2048


def test_a_changed_number_is_1_and_named(run, capsys):
    ledger = run / "ledger.jsonl"
    text = ledger.read_text()
    changed = text.replace('"counted":', '"counted":1', 1)
    assert changed != text
    ledger.write_text(changed)
    assert main(["audit", str(run)]) == 1
    out = capsys.readouterr().out
    assert "expected" in out
    assert "observed" in out
    assert main(["audit", str(run), "--json"]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert all(set(finding) == {"check", "where", "expected", "observed"} for finding in findings)
    assert ledger.read_text() == changed


def test_a_folder_that_is_no_run_is_2(in_tmp, capsys):
    assert main(["audit", "runs/none"]) == 2
    assert "runs/none" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--sample", "0"], ["--sample", "200%"], ["--workers", "0"], ["--sample", "x"]]
)
def test_a_sample_that_is_none_is_refused(run, capsys, words):
    with pytest.raises(SystemExit) as stop:
        main(["audit", str(run), *words])
    assert stop.value.code == 2


def test_a_sample_is_a_number_of_rows_or_a_share(run, capsys):
    for words in (["--sample", "2"], ["--sample", "50%"]):
        assert main(["audit", str(run), *words]) == 0
