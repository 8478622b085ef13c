"""``recipe tokenizer train``, ``recipe tokenizer compare``, ``recipe pools recount``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recipe.cli.main import main
from tests.text.small_tokenizers import LINES


@pytest.fixture
def texts(in_tmp) -> Path:
    path = Path("texts.jsonl")
    path.write_text("".join(json.dumps({"text": f"{line} {k}"}) + "\n" for k in range(30) for line in LINES))
    return path


def answer(capsys, *words: str):
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_tokenizer_is_trained_on_pools_compared_and_pools_are_counted_again(texts, capsys):
    answer(capsys, "prepare", "pools/a", str(texts))
    made = answer(capsys, "tokenizer", "train", "ours", "--pool", "pools/a", "--vocab-size", "400")
    from_text = answer(capsys, "tokenizer", "train", "same", str(texts), "--vocab-size", "400")
    assert made["fingerprint"] == from_text["fingerprint"]
    assert made["made_from"]["pools"][0]["path"] == "pools/a"
    compared = answer(
        capsys, "tokenizer", "compare", "bytes", "ours", "--pool", "pools/a", "--file", str(texts)
    )
    assert compared["files"][0]["tokens"] == [one["tokens"] for one in compared["pools"][0]["recounts"]]
    exact = answer(capsys, "pools", "recount", "pools/a", "--under", "ours", "--exact")
    assert exact["recount"]["tokens"] == compared["files"][0]["tokens"][1]
    assert exact["recount"]["fingerprint"] == made["fingerprint"]
    again = answer(capsys, "prepare", "pools/b", str(texts), "--tokenizer", "ours")
    assert again["tokens"] == exact["recount"]["tokens"]
    back = answer(
        capsys,
        "pools",
        "recount",
        "pools/b",
        "--tokenizer",
        "ours",
        "--under",
        "bytes",
        "--sample",
        "20",
    )
    assert back["recount"]["low"] < exact["stock"] < back["recount"]["high"]


def test_answers_are_tables_too(texts, capsys):
    assert main(["prepare", "pools/a", str(texts), "--json"]) == 0
    assert main(["tokenizer", "train", "ours", str(texts), "--vocab-size", "300", "--sample", "50%"]) == 0
    assert main(["tokenizer", "compare", "bytes", "ours", "--text", "x = 2024", "--pool", "pools/a"]) == 0
    assert main(["pools", "recount", "pools/a", "--under", "ours", "--sample", "20"]) == 0
    said = capsys.readouterr().out
    for words in ("rows of the input and output tables", "2|0|2|4", "x = 2024", "estimated from 20 draws"):
        assert words in said


def test_texts_are_shown_as_they_were_given(in_tmp, capsys):
    assert main(["tokenizer", "compare", "bytes", "--text", "a[i] [/x] :smile: 7"]) == 0
    assert "a[i] [/x] :smile: 7" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tokenizer", "train", "ours", "--vocab-size", "400"], "sources, or --pool"),
        (["tokenizer", "train", "ours", "texts.jsonl", "--vocab-size", "90000"], "--vocab-size "),
        (["tokenizer", "compare", "none"], "no such file"),
        (["pools", "recount", "none", "--under", "bytes"], "none"),
        (["tokenizer"], "usage: recipe tokenizer VERB"),
    ],
)
def test_faults_are_one_message_and_2(texts, capsys, words, said):
    assert main(words) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""
    assert not Path("ours").exists()


@pytest.mark.parametrize("option", [["--sample", "2"], ["--sample", "x"], ["--exact", "--sample", "5"]])
def test_samples_without_an_interval_are_refused(texts, capsys, option):
    with pytest.raises(SystemExit) as stop:
        main(["pools", "recount", "pools/a", "--under", "bytes", *option])
    assert stop.value.code == 2
