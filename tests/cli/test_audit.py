"""``recipe audit``: 0 when nothing is wrong, 1 when something is, named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import recipe
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


def answer(capsys, *words: str, code: int = 0) -> dict:
    """The JSON of a command."""
    assert main([*words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_json_says_what_was_looked_at_and_what_cannot_be_proved(run, capsys):
    said = answer(capsys, "audit", str(run), "--sample", "2", "--seed", "3")
    checked = said["checked"]
    assert checked["computed"] < checked["replayable"] and checked["sample_seed"] == 3
    first, several = checked["detection"]["if_wrong"]
    assert 0 < first["found_with_probability"] < 1 and several["rows"] == 1
    assert any("recipe seal" in line for line in said["cannot_prove"])
    assert said == answer(capsys, "audit", str(run), "--sample", "2", "--seed", "3")


def test_the_text_says_what_cannot_be_proved(run, capsys):
    assert main(["audit", str(run)]) == 0
    out = capsys.readouterr().out
    assert "what this cannot prove:" in out and out.splitlines()[-1] == "nothing is wrong"
    assert out.splitlines()[0] == f"{run}: nothing is wrong"


def test_chain_only_looks_at_no_number(run, capsys):
    assert main(["audit", str(run), "--chain-only"]) == 0
    out = capsys.readouterr().out
    assert "chain only" in out and out.splitlines()[-1].endswith("its numbers were not looked at")
    assert answer(capsys, "audit", str(run), "--chain-only")["checked"]["chain_only"] is True


def test_rows_since_a_step_and_of_a_stage(run, capsys):
    whole = answer(capsys, "audit", str(run))["checked"]
    part = answer(capsys, "audit", str(run), "--since", "8", "--stage", "long")["checked"]
    assert 0 < part["computed"] < whole["computed"]
    assert part["computed"] + part["outside"] == whole["computed"]
    assert part["scope"] == "since step 8 of stage long"
    assert main(["audit", str(run), "--since", "@1"]) == 0
    assert "not covered" in capsys.readouterr().out.splitlines()[-1]


def test_a_seal_is_one_line_and_proves_what_came_before_it(run, capsys):
    assert main(["seal", str(run)]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    seal = answer(capsys, "seal", str(run))
    assert seal["line"] == line and seal["run"] == "small"
    assert main(["audit", str(run), "--head", line, "--chain-only"]) == 0
    assert "were then" in capsys.readouterr().out
    for piece in (
        line.split()[1],
        f"head={seal['head'].upper()}",
        f"recipe-seal/1 head={seal['head']}",
        f" {line}\n",
    ):
        said = answer(capsys, "audit", str(run), "--chain-only", "--head", piece)
        assert "0 rows came later" in said["checked"]["head"]
    assert "0 rows came later" in answer(capsys, "audit", str(run), "--head", seal["head"])["checked"]["head"]
    said = answer(capsys, "audit", str(run), "--chain-only", "--head", "0" * 64, code=1)
    assert [finding["check"] for finding in said["findings"]] == ["head"]


def test_metadata_alone_will_do(run, capsys):
    for path in Path("pools").rglob("part-*"):
        path.unlink()
    assert main(["audit", str(run), "--metadata-only"]) == 0
    assert "contents not looked at (metadata only)" in capsys.readouterr().out
    assert main(["audit", str(run)]) == 1


def test_digests_turn_would_serve_into_served(run, capsys):
    with recipe.open_run(run, step=0) as opened, recipe.BatchDigests(run) as digests:
        for step, batch in opened.stream().batches(0, stop=4):
            digests.add(step, batch)
    said = answer(capsys, "audit", str(run), "--served")
    assert "4 of 4 steps" in said["checked"]["served"]
    assert any("handed" in line for line in said["cannot_prove"])
    lines = (run / "digests/rank-00000.jsonl").read_text().splitlines()
    lines[1] = json.dumps({**json.loads(lines[1]), "digest": "0" * 32})
    (run / "digests/rank-00000.jsonl").write_text("\n".join(lines) + "\n")
    said = answer(capsys, "audit", str(run), "--served", code=1)
    assert [(f["check"], f["where"]) for f in said["findings"]] == [("served", "digests, step 1")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--chain-only", "--since", "3", "--stage", "long"], "with --since, --stage"),
        (["--metadata-only", "--served"], "--metadata-only"),
        (["--digests", "d"], "--served beside it"),
        (["--served"], "no batch digests"),
        (["--since", "@77"], "a manifest on record"),
        (["--stage", "lomg"], "did you mean 'long'?"),
        (["--head", "12ab"], "64 hexadecimal digits"),
    ],
)
def test_options_that_do_not_fit_are_2_and_one_message(run, capsys, words, told):
    assert main(["audit", str(run), *words]) == 2
    assert told in capsys.readouterr().err


def test_seal_of_no_run_is_2(in_tmp, capsys):
    assert main(["seal", "runs/none"]) == 2
    assert "runs/none" in capsys.readouterr().err


def test_metadata_alone_and_every_byte_are_one_message(run, capsys):
    assert main(["audit", str(run), "--metadata-only", "--full"]) == 2
    assert "--sample 100% computes every row" in capsys.readouterr().err
