"""Ids and back, and what makes two tokenizers the same."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from recipe.errors import RecipeError
from recipe.text.tokenizers import PROBES, ByteTokenizer, load_tokenizer

TEXT = st.text(st.characters(codec="utf-8"))


@given(TEXT)
def test_B7_bytes_come_back(text):
    tokenizer = ByteTokenizer()
    [ids] = tokenizer.encode_batch([text])
    assert tokenizer.decode(ids) == tokenizer.normalise(text) == text


@given(text=TEXT)
@settings(max_examples=50)
def test_B7_a_tokenizer_file_gives_its_own_normalisation_back(tokenizer_file, text):
    tokenizer = load_tokenizer(tokenizer_file)
    [ids] = tokenizer.encode_batch([text])
    assert tokenizer.decode(ids) == tokenizer.normalise(text)


@pytest.mark.parametrize("text", PROBES)
def test_a_fresh_load_gives_the_same_ids_as_the_library(tokenizer_file, train, text):
    tokenizer = load_tokenizer(tokenizer_file.parent)
    plain = train()
    plain.encode_special_tokens = True
    assert tokenizer.encode_batch([text])[0].tolist() == plain.encode(text, add_special_tokens=False).ids


def test_truncation_padding_and_marks_of_the_file_are_off(tokenizer_file):
    tokenizer = load_tokenizer(tokenizer_file)
    short, long = tokenizer.encode_batch(["a", "the quick brown fox " * 20])
    assert (len(short), len(long) > 8) == (1, True)
    assert tokenizer.eos not in [*short, *long]


def test_special_tokens_in_text_are_text(tokenizer_file):
    tokenizer = load_tokenizer(tokenizer_file)
    text = "a <|endoftext|> b <|im_start|>"
    [ids] = tokenizer.encode_batch([text])
    assert not {0, 1} & set(ids.tolist())
    assert tokenizer.decode(ids) == text


def test_the_vocabulary_size_is_the_largest_id_plus_one():
    assert load_tokenizer("bytes").vocab_size == 257


def test_added_tokens_count_as_rows(train, tmp_path):
    tokenizer = train()
    before = tokenizer.get_vocab_size()
    tokenizer.add_tokens(["zzz"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    assert load_tokenizer(tmp_path).vocab_size == before + 1


def test_the_end_of_a_document_is_named_declared_or_common(train, tmp_path):
    path = tmp_path / "tokenizer.json"
    train(specials=("<|endoftext|>", "<|im_end|>", "</s>")).save(str(path))
    with pytest.raises(RecipeError, match="--eos TOKEN"):
        load_tokenizer(path)
    assert load_tokenizer(path, eos="<|im_end|>").eos == load_tokenizer(path, eos=1).eos == 1
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": {"content": "</s>"}}')
    assert load_tokenizer(path).eos == 2


def test_a_name_that_is_plain_text_in_the_vocabulary_is_no_mark(train, tmp_path):
    tokenizer = train()
    content = json.loads(tokenizer.to_str())
    content["model"]["vocab"]["</s>"] = max(content["model"]["vocab"].values()) + 1
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    assert load_tokenizer(tmp_path).eos == 0


def test_a_common_name_of_the_vocabulary_is_the_end_although_other_tokens_were_added(train, tmp_path):
    """As in a file made from vocab.json and merges.txt, to which a token for chats was added."""
    tokenizer = train(specials=())
    content = json.loads(tokenizer.to_str())
    eos = content["model"]["vocab"]["<|endoftext|>"] = max(content["model"]["vocab"].values()) + 1
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    added = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    added.add_special_tokens(["<|chat|>"])
    added.save(str(tmp_path / "tokenizer.json"))
    assert load_tokenizer(tmp_path).eos == eos
    content["model"]["vocab"]["</s>"] = eos + 2
    content["added_tokens"] = json.loads(added.to_str())["added_tokens"]
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    with pytest.raises(RecipeError, match=r"<\|endoftext\|> and </s>"):
        load_tokenizer(tmp_path)


def test_no_end_of_document_is_an_error(train, tmp_path):
    train(specials=()).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(RecipeError, match="none of the common names"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("content", [None, "{}", "not json"])
def test_no_tokenizer_is_an_error(tmp_path, content):
    path = tmp_path / "tokenizer.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(RecipeError, match=r"tokenizer\.json"):
        load_tokenizer(path)


def test_C01_the_fingerprint_is_the_content_not_the_file(tokenizer_file, tmp_path):
    copy = tmp_path / "other.json"
    content = json.loads(tokenizer_file.read_text("utf-8"))
    content["truncation"] = content["padding"] = content["post_processor"] = None
    copy.write_text(json.dumps(content, indent=7))
    assert load_tokenizer(copy).fingerprint() == load_tokenizer(tokenizer_file).fingerprint()


def changed(content, what):
    """One small change of a tokenizer."""
    match what:
        case "merges":
            content["model"]["merges"].pop()
        case "merge order":
            merges = content["model"]["merges"]
            merges[-1], merges[-2] = merges[-2], merges[-1]
        case "normaliser":
            content["normalizer"] = {"type": "NFKC"}
        case "pre-tokenizer":
            content["pre_tokenizer"]["add_prefix_space"] = True
        case "ids":
            vocab = content["model"]["vocab"]
            one, two = list(vocab)[10:12]
            vocab[one], vocab[two] = vocab[two], vocab[one]
    return content


@pytest.mark.parametrize("what", ["merges", "merge order", "normaliser", "pre-tokenizer", "ids"])
def test_C01_any_change_of_the_rules_changes_the_fingerprint(tokenizer_file, tmp_path, what):
    content = changed(json.loads(tokenizer_file.read_text("utf-8")), what)
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    assert load_tokenizer(tmp_path).fingerprint() != load_tokenizer(tokenizer_file).fingerprint()


def test_C01_two_vocabularies_and_two_ends_differ(tokenizer_file, train, tmp_path):
    train(vocab_size=300).save(str(tmp_path / "tokenizer.json"))
    loaded = [
        load_tokenizer(tokenizer_file),
        load_tokenizer(tokenizer_file, eos="<|im_start|>"),
        load_tokenizer(tmp_path),
        load_tokenizer("bytes"),
    ]
    assert len({tokenizer.fingerprint() for tokenizer in loaded}) == 4


def test_the_fingerprint_of_bytes_stays():
    assert ByteTokenizer().fingerprint().startswith("86838a50bcee8730")


if "RECIPE_QWEN3" in os.environ:  # a tokenizer.json that no test may download

    def test_G4_the_table_of_qwen3():
        tokenizer = load_tokenizer(Path(os.environ["RECIPE_QWEN3"]))
        texts = ["保留重复元素。", "sorted(xs)", "[3, 1, 3]"]
        ids = [ids.tolist() for ids in tokenizer.encode_batch(texts)]
        assert ids[:2] == [[104465, 105444, 102268, 1773], [28298, 53322, 8]]
        assert (len(ids[2]), tokenizer.vocab_size, tokenizer.eos) == (9, 151_669, 151_643)
        assert [tokenizer.decode(one) for one in ids] == texts
