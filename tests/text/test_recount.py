"""Pools counted under other tokenizers: exact counts by hand, and intervals that hold the truth."""

from __future__ import annotations

import json
from random import Random

import pytest

from recipe.errors import RecipeError
from recipe.text.comparing import SAMPLES, Comparison, characters_changed
from recipe.text.pool_texts import maker_of, text_of
from recipe.text.prepare import prepare_pool
from recipe.text.recount import Sampling, recount
from recipe.text.tokenizers import PROBES, load_tokenizer
from tests.text.small_tokenizers import LINES, byte_level, composed, word_piece

BYTES = load_tokenizer("bytes")
EXACT = Sampling(draws=None)


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return byte_level(tmp_path_factory.mktemp("other"))


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
    """900 documents, most short, a few a hundred times as long."""
    root = tmp_path_factory.mktemp("texts")
    chance = Random(1)
    texts = [
        chance.choice(LINES)[: chance.randint(5, 90)] * chance.choice([1] * 9 + [40]) for _ in range(900)
    ]
    (root / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    with prepare_pool([root / "a.jsonl"], root / "pool", BYTES) as pool:
        yield pool


def exact_tokens(pool, tokenizer):
    texts = [text_of(pool, BYTES, number) for number in range(pool.num_documents)]
    return sum(len(ids) for ids in tokenizer.encode_batch(texts))


def test_an_exact_count_is_the_sum_over_all_documents(pool, other):
    counted = recount(pool, BYTES, [other, BYTES], EXACT)
    one, same = counted.recounts
    assert one.tokens == one.low == one.high == exact_tokens(pool, other)
    assert same.tokens == same.bytes == one.bytes == pool.stock
    assert (counted.draws, counted.looked_at, counted.stock) == (None, 900, pool.stock)


def test_a_pool_with_no_more_documents_than_draws_is_counted_whole(pool, other):
    assert recount(pool, BYTES, [other], Sampling(draws=900)) == recount(pool, BYTES, [other], EXACT)


def test_the_interval_holds_the_truth_about_as_often_as_it_says(pool, other):
    truth = exact_tokens(pool, other)
    found = [recount(pool, BYTES, [other], Sampling(draws=60, seed=seed)).recounts[0] for seed in range(60)]
    assert sum(one.low <= truth <= one.high for one in found) >= 52
    assert abs(sum(one.tokens for one in found) / 60 - truth) < truth / 50
    assert all(one.high - one.low < truth / 3 for one in found)


def test_a_sample_is_the_same_for_the_same_seed_alone(pool, other):
    one, two, three = (recount(pool, BYTES, [other], Sampling(draws=50, seed=seed)) for seed in (4, 4, 5))
    assert one == two != three
    assert one.looked_at < 50


def test_fewer_than_three_draws_have_no_interval():
    with pytest.raises(ValueError, match="at least 3"):
        Sampling(draws=2)


def test_the_tokenizer_must_be_the_one_that_made_the_pool(pool, other):
    assert maker_of(pool, None).name == maker_of(pool, "bytes").name == "bytes"
    with pytest.raises(RecipeError, match="--tokenizer"):
        maker_of(pool, str(other.path.parent / "tokenizer.json"))


def test_G4_a_comparison_counts_the_same_text_for_all(pool, other):
    comparison = Comparison([BYTES, other])
    for text in SAMPLES:
        comparison.add_text(text)
    comparison.add_file("lines", LINES)
    comparison.add_pool(pool, BYTES, EXACT)
    plain = comparison.to_plain()
    assert [one["tokens"][0] for one in plain["texts"]] == [21, 10, 9]
    assert plain["files"][0]["tokens"] == [
        sum(len(line.encode()) for line in LINES),
        sum(len(ids) for ids in other.encode_batch(LINES)),
    ]
    assert plain["pools"][0]["recounts"][1]["tokens"] == exact_tokens(pool, other)
    trips = [one["round_trip"] for one in plain["tokenizers"]]
    seen = len(PROBES) + len(SAMPLES) + len(LINES) + pool.num_documents
    assert [(one["texts"], one["exact"]) for one in trips] == [(seen, seen)] * 2
    assert [one["rows"] for one in plain["tokenizers"]] == [257, other.vocab_size]
    assert plain["digits"][1] == {"text": " 2024", "pieces": ["▁|2|0|2|4", plain["digits"][1]["pieces"][1]]}


def test_what_does_not_come_back_is_told_apart(tmp_path):
    (tmp_path / "nfc").mkdir()
    comparison = Comparison([composed(tmp_path / "nfc"), word_piece(tmp_path)])
    for text in ("e\u0301", "tokens of 2024."):
        comparison.add_text(text)
    first, second = (one["round_trip"] for one in comparison.to_plain()["tokenizers"])
    assert (first["lost"], first["normalised"]) == (0, 2)  # one of the probes, too
    assert second["lost"] > 3
    assert len(second["first_lost"]) == 3


def test_tokenizers_with_the_same_ids_are_named(tmp_path, other):
    comparison = Comparison([BYTES, other, other])
    assert [one["same_ids_as"] for one in comparison.to_plain()["tokenizers"]] == [None, None, 1]


def test_characters_that_composition_changes_are_counted(tmp_path):
    assert characters_changed(BYTES) == 0
    assert 1000 < characters_changed(composed(tmp_path)) < 1300
