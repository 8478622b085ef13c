"""A tokenizer.json by ranks: the same ids for every text that is given to them, and none for the others."""

from __future__ import annotations

import json
import pickle
import re
import sys
from unicodedata import category

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.text.tokenizers import JsonTokenizer, load_tokenizer
from recipe.text.tokenizers.equal_ranks import equal_ranks, merged_alike
from recipe.text.tokenizers.splitting import SPLITS
from tests.text.small_tokenizers import LINES, byte_level, change_rule, composed, fallback
from tests.text.test_tokenizer_kinds import make_twins

LETTERS = {letter: number for number, letter in enumerate("abcd")}
WORDS = ("'s", "'ſ", "  ", " \n  ", "<|endoftext|>", "<|", "2024")
TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.lists(
    st.sampled_from([*LINES, *"aé中1 \n\r\t'\u0301\u212b\U0001f600", *WORDS])
).map("".join)

ALIKE = re.compile("[\u3400-\u4db5\u4e00-\u9fa5\uac00-\ud7a3\U00020000-\U0002a6d6]")
"""Some are looked at of many of one kind."""


@pytest.fixture(scope="module", params=list(SPLITS))
def tokenizer(request, tmp_path_factory) -> JsonTokenizer:
    made, _ = make_twins(tmp_path_factory.mktemp("twins"), request.param, nfc=request.param == "qwen")
    loaded = load_tokenizer(made)
    assert isinstance(loaded, JsonTokenizer)
    return loaded


def test_the_ids_are_those_of_the_library(tokenizer):
    quick = equal_ranks(tokenizer.content(), specials=False)
    assert quick is not None

    @given(text=TEXT)
    @settings(max_examples=300)
    def check(text):
        ids = quick.encode(text)
        assert ids is None or ids.tolist() == tokenizer._ids([text])[0].tolist()

    check()
    for text in LINES[:4]:
        assert quick.encode(text).tolist() == tokenizer._ids([text])[0].tolist()


def test_every_character_that_is_taken_is_split_alike(tokenizer):
    """Beside a letter, a digit, a sign, a blank and an apostrophe: what a class decides about."""
    quick = equal_ranks(tokenizer.content(), specials=False)
    every = [chr(code) for code in range(0x32000) if category(chr(code)) not in ("Cs", "Co")]
    characters = [c for number, c in enumerate(every) if number % 97 == 0 or not ALIKE.match(c)]
    taken = 0
    for start in range(0, len(characters), 256):
        some = [c for c in characters[start : start + 256] if quick.encode(c) is not None]
        taken += len(some)
        text = "".join(f"a{c}1{c}.{c} {c}'{c}\n{c}A" for c in some)
        ids = quick.encode(text)
        assert ids is None or np.array_equal(ids, tokenizer._ids([text])[0]), f"{ord(some[0]):#x}"
    assert taken > 15_000
    assert quick.encode("\u017f") is None and quick.encode(chr(sys.maxunicode)) is None


def test_a_pair_that_only_ranks_would_merge_is_found():
    """``abc`` is listed as ab + c, but bc comes first: by the list ``a bc`` stays, by ranks it is one."""
    vocabulary = {**LETTERS, "bc": 4, "ab": 5, "abc": 6}
    assert merged_alike({"vocab": vocabulary, "merges": ["b c", "a b", "ab c"]}) is None
    alike = merged_alike({"vocab": vocabulary, "merges": ["b c", "a b", "a bc"]})
    assert alike is not None and alike[b"abc"] == 6


def test_a_list_in_another_order_than_the_ids_is_no_list_of_ranks():
    vocabulary = {**LETTERS, "ab": 4, "bc": 5}
    assert merged_alike({"vocab": vocabulary, "merges": ["b c", "a b"]}) is None


def test_a_token_that_no_text_gets_is_none_of_the_ranks():
    vocabulary = {**LETTERS, "abcd": 4}
    assert merged_alike({"vocab": vocabulary, "merges": []}) == {
        letter.encode(): number for letter, number in LETTERS.items()
    }
    looked_up = merged_alike({"vocab": vocabulary, "merges": [], "ignore_merges": True})
    assert looked_up is not None and looked_up[b"abcd"] == 4


@given(
    merges=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8),
    text=st.text("abcd", max_size=12),
    ignore=st.booleans(),
)
@settings(max_examples=500)
def test_what_is_merged_alike_has_the_same_ids(merges, text, ignore):
    """Any list of merges at all: where it is taken for ranks, both libraries agree on every text."""
    import tiktoken
    from tokenizers import Tokenizer, models

    words, pairs = list(LETTERS), []
    for one, two in merges:
        if one < len(words) and two < len(words) and words[one] + words[two] not in words:
            pairs.append((words[one], words[two]))
            words.append(words[one] + words[two])
    vocabulary = {word: number for number, word in enumerate(words)}
    ranks = merged_alike({"vocab": vocabulary, "merges": pairs, "ignore_merges": ignore})
    if ranks is not None:
        whole = tiktoken.Encoding("x", pat_str=r"[a-z]+", mergeable_ranks=ranks, special_tokens={})
        library = Tokenizer(models.BPE(vocabulary, pairs, ignore_merges=ignore))
        assert whole.encode(text) == library.encode(text).ids


@pytest.mark.parametrize("what", ["normaliser", "dropout", "split", "blank first", "byte", "prefix"])
def test_rules_that_are_not_known_are_left_to_the_library(tmp_path, what):
    made, _ = make_twins(tmp_path, "gpt2")
    content = json.loads(made.read_text())
    change_rule(content, what)
    assert equal_ranks(content, specials=False) is None


def test_a_vocabulary_that_is_not_of_bytes_is_left_to_the_library(tmp_path):
    assert equal_ranks(fallback(tmp_path).content(), specials=False) is None


def test_texts_with_added_tokens_are_left_to_the_library(tmp_path):
    content = byte_level(tmp_path).content()
    content["added_tokens"].append(
        {**content["added_tokens"][0], "id": 900, "content": "<think>", "special": False}
    )
    quick, special = (equal_ranks(content, specials=each) for each in (False, True))
    assert quick is not None and special is not None
    assert quick.encode("a <think> b") is None and special.encode("a <think> b") is None
    assert quick.encode("<|endoftext|>") is not None and special.encode("<|endoftext|>") is None


@pytest.mark.parametrize("make", [byte_level, composed])
def test_a_tokenizer_goes_over_to_ranks_and_its_ids_stay(tmp_path, monkeypatch, make):
    tokenizer = make(tmp_path)
    before = tokenizer.encode_batch([*LINES, "'ſ"])
    monkeypatch.setattr("recipe.text.tokenizers.hugging_face.QUICK", 0)
    after = tokenizer.encode_batch([*LINES, "'ſ"])
    assert tokenizer._quick is not None
    assert [ids.tolist() for ids in after] == [ids.tolist() for ids in before]
    assert {ids.dtype for ids in after} == {np.dtype(np.int32)}


def test_what_was_found_out_once_is_sent_to_other_processes(tmp_path, monkeypatch):
    monkeypatch.setattr("recipe.text.tokenizers.hugging_face.MUCH", 100)
    tokenizer = composed(tmp_path)
    before = [ids.tolist() for ids in tokenizer.encode_batch(LINES)]
    tokenizer.expect(100)
    assert "_quick" not in vars(pickle.loads(pickle.dumps(tokenizer)))
    tokenizer.expect(101)
    sent = pickle.loads(pickle.dumps(tokenizer))
    assert vars(sent)["_quick"] is not None
    assert [ids.tolist() for ids in sent.encode_batch(LINES)] == before
    assert sent.fingerprint() == tokenizer.fingerprint()
