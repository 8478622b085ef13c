"""Training: the same texts give the same file; what cannot be is refused and leaves nothing."""

from __future__ import annotations

import json
from fractions import Fraction

import pytest
from transformers import AutoTokenizer

from recipe.errors import RecipeError
from recipe.text.tokenizers import PROBES, load_tokenizer
from recipe.text.tokenizers.splitting import SPLITS
from recipe.text.training import TrainOptions, train_tokenizer
from tests.text.small_tokenizers import LINES

TEXTS = [f"{line} {number}" for number in range(20) for line in LINES]


def trained(out, texts=TEXTS, **options):
    given = TrainOptions(**{"vocab_size": 400, **options})
    record = train_tokenizer(texts, out, given, made_from={"sources": ["lines"]})
    return record, (out / "tokenizer.json").read_bytes()


def test_the_same_texts_in_any_order_give_the_same_file(tmp_path):
    one, two = trained(tmp_path / "a"), trained(tmp_path / "b", TEXTS[::-1])
    assert one == two


def test_the_vocabulary_has_as_many_rows_as_asked_for_and_marks_come_last(tmp_path):
    record, _ = trained(tmp_path / "t", marks=("<|im_start|>",), eos="</s>")
    tokenizer = load_tokenizer(tmp_path / "t")
    assert (tokenizer.vocab_size, tokenizer.eos, record["vocab_size"]) == (400, 398, 400)
    assert record["fingerprint"] == tokenizer.fingerprint()
    assert record["texts"]["bytes"] == sum(len(text.encode()) for text in TEXTS)


def test_AutoTokenizer_reads_what_was_trained(tmp_path):
    trained(tmp_path / "t")
    theirs, ours = AutoTokenizer.from_pretrained(tmp_path / "t"), load_tokenizer(tmp_path / "t")
    assert theirs.eos_token_id == ours.eos == 399
    text = "".join(LINES)
    assert theirs(text, add_special_tokens=False)["input_ids"] == ours.encode_batch([text])[0].tolist()


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("nfc", [False, True])
def test_B7_every_text_comes_back_from_a_trained_tokenizer(tmp_path, split, nfc):
    trained(tmp_path / "t", split=split, nfc=nfc)
    tokenizer = load_tokenizer(tmp_path / "t")
    for text in (*PROBES, *LINES):
        decoded = tokenizer.decode(tokenizer.encode_batch([text])[0])
        assert decoded == tokenizer.normalise(text)
        assert nfc or decoded == text
    longest = {"gpt2": 8, "cl100k": 3, "o200k": 3, "qwen": 1}[split]
    spans = tokenizer.offsets("12345678")
    assert max(spans[:, 1] - spans[:, 0]) <= longest


def test_a_sample_is_a_choice_of_texts_whatever_their_order(tmp_path):
    half = {"sample": Fraction(1, 2), "vocab_size": 300}
    one, two = trained(tmp_path / "a", **half), trained(tmp_path / "b", TEXTS[::-1], **half)
    other = trained(tmp_path / "c", seed=1, **half)
    assert one == two
    assert 30 < one[0]["texts"]["documents"] < 70
    assert other[0]["texts"]["digest"] != one[0]["texts"]["digest"]


def test_too_little_text_is_refused_with_the_size_it_gives(tmp_path):
    with pytest.raises(RecipeError, match="--vocab-size ") as caught:
        trained(tmp_path / "t", vocab_size=50_000)
    size = int(str(caught.value).rpartition(" ")[2])
    assert list(tmp_path.iterdir()) == []
    record, _ = trained(tmp_path / "t", vocab_size=size)
    assert record["vocab_size"] == size


def test_no_text_and_a_taken_folder_are_refused(tmp_path):
    with pytest.raises(RecipeError, match="name sources that hold text"):
        trained(tmp_path / "t", texts=[])
    trained(tmp_path / "t")
    with pytest.raises(RecipeError, match="a new folder"):
        trained(tmp_path / "t")
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == [
        "tokenizer.json", "tokenizer_config.json", "training.json"
    ]  # fmt: skip


@pytest.mark.parametrize("size", [0, 256])
def test_a_size_that_no_bytes_fit_into_is_refused(size):
    with pytest.raises(RecipeError, match="at least 257"):
        TrainOptions(vocab_size=size)


def test_the_record_says_all_that_decided(tmp_path):
    trained(tmp_path / "t", nfc=True)
    record = json.loads((tmp_path / "t" / "training.json").read_text())
    assert record["settings"] == {
        "vocab_size": 400, "split": "qwen", "nfc": True, "eos": "<|endoftext|>", "marks": [], "sample": "1",
        "seed": 0, "least_count": 2,
    }  # fmt: skip
    assert record["made_from"] == {"sources": ["lines"]}
