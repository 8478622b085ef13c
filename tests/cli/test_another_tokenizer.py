"""Texts of pools by a tokenizer that is not theirs: one message, no traceback, no clean bill (B7)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from recipe.cli.main import main
from recipe.pools import PoolWriter
from tests.text.small_tokenizers import byte_level


@pytest.fixture
def wide(in_tmp: Path) -> str:
    """Two documents of ids that bytes do not have, each with an end mark 0."""
    np.array([77, 49_794, 0, 300, 5, 0], "<u2").tofile("wide.u16")
    return "wide.u16"


def answer(capsys, *words):
    code = main([*words, "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "words",
    [
        ("pools", "show", "wide.u16", "--eos", "0", "--samples", "2"),
        ("pools", "verify", "wide.u16", "--eos", "0"),
    ],
)
def test_ids_that_a_tokenizer_does_not_have_are_told_with_pool_and_document(words, wide, capsys):
    assert main([*words, "--tokenizer", "bytes"]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 5, "one problem"
    assert "bytes, for document" in told
    assert "of wide.u16 with ids" in told
    assert "this one has the ids 0..256" in told


def test_a_tokenizer_json_that_lacks_ids_does_not_pass_over_them(wide, capsys):
    """The library leaves out ids that it does not know: the text would be empty."""
    byte_level(Path())
    assert main(["pools", "show", wide, "--eos", "0", "--tokenizer", "tokenizer.json"]) == 2
    assert "ids" in capsys.readouterr().err


def test_b7_most_documents_otherwise_is_a_finding_where_the_pool_says_no_tokenizer(in_tmp, capsys):
    """Letters one by one: a tokenizer that merges them gives other tokens. Of a pool that it made: none."""
    made = byte_level(Path())
    apart = [id for sign in "the quick" for id in made.encode_batch([sign])[0].tolist()]
    own = made.encode_batch(["The quick brown fox"])[0].tolist()
    for name, ids in (("apart", apart), ("own", own)):
        np.array([*ids, made.eos] * 3, "<u2").tofile(f"{name}.u16")
    words = ("--eos", str(made.eos), "--tokenizer", "tokenizer.json")
    code, told = answer(capsys, "pools", "verify", "apart.u16", *words)
    assert (code, told["ok"], told["pools"][0]["round_trips"]["documents"]) == (1, False, {"otherwise": 3})
    assert told["pools"][0]["findings"][0]["check"] == "tokenizer"
    assert main(["pools", "verify", "apart.u16", *words]) == 1
    shown = capsys.readouterr().out
    assert "this is not its tokenizer" in shown
    assert "nothing wrong was found" not in shown
    assert answer(capsys, "pools", "verify", "own.u16", *words)[0] == 0


@pytest.mark.parametrize("verb", ["show", "verify"])
def test_the_fix_names_the_option_that_the_verb_has(verb, in_tmp, capsys):
    with PoolWriter("p", vocab_size=300, tokenizer="0" * 64, tokenizer_name="ours") as writer:
        writer.add([1, 2])
        writer.close()
    assert main(["pools", verb, "p", "--tokenizer", "bytes"]) == 2
    told = capsys.readouterr().err
    assert "name it with --tokenizer" in told


def test_sources_without_a_tokenizer_are_compared_by_the_one_that_needs_no_file_or_refused(in_tmp, capsys):
    Path("texts").mkdir()
    Path("texts/a.jsonl").write_text('{"text": "one"}\n')
    assert main(["prepare", "p", "texts/a.jsonl", "--json"]) == 0
    capsys.readouterr()
    code, told = answer(capsys, "pools", "verify", "p", "--sources", "texts")
    assert (code, told["pools"][0]["round_trips"]["documents"]) == (0, {"exact": 1})
    with PoolWriter("other", vocab_size=300, tokenizer="0" * 64, tokenizer_name="ours") as writer:
        writer.add([1, 2])
        writer.close()
    assert main(["pools", "verify", "other", "--sources", "texts"]) == 2
    assert "name it with --tokenizer" in capsys.readouterr().err


def test_sources_of_the_pool_that_was_extended_are_read_too(in_tmp, capsys):
    """Its files are not in the new pool's record; where they were read otherwise, nobody says changed."""
    Path("texts").mkdir()
    Path("texts/a.jsonl").write_text('{"text": "one", "body": "uno"}\n{"text": "two", "body": "due"}\n')
    Path("texts/b.jsonl").write_text('{"text": "three"}\n')
    for name, key in (("p", "text"), ("other", "body")):
        assert main(["prepare", name, "texts/a.jsonl", "--text-key", key, "--json"]) == 0
        assert main(["prepare", f"more-{name}", "texts/b.jsonl", "--extends", name, "--json"]) == 0
    capsys.readouterr()
    words = ("pools", "verify", "more-p", "--tokenizer", "bytes", "--sources", "texts")
    assert answer(capsys, *words)[1]["pools"][0]["round_trips"]["documents"] == {"exact": 3}
    trips = answer(capsys, "pools", "verify", "more-other", *words[3:])[1]["pools"][0]["round_trips"]
    assert trips["documents"] == {"exact": 1, "again": 2}
