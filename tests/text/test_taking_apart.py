"""Long texts in pieces, by tokenizers that are not byte-level: the ids, and spans, of the whole."""

from __future__ import annotations

import json
import pickle
from contextlib import nullcontext
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from recipe.text.long_texts import encode_long, spans_of
from recipe.text.tokenizers import load_tokenizer
from recipe.text.tokenizers.blanks import blank_seam
from tests.text.small_tokenizers import LINES

SIGNS = "aB 中。，、か\n\r\t'.1é▁#`-\u0301\u00a0\u200b\u3000\u2028\x85"
PARTS = [
    "  ",
    "\n\n",
    " a",
    "a ",
    "中。",
    "</s>",
    "<tag>",
    " <tag> ",
    "▁ ",
    " ▁",
    "a▁",
    "hello ",
    "保留",
    "``",
]
ODD = [
    "ﬁ ",
    "¨ ",
    " \u0301",
    "ﾞ ",
    "🇨🇳 ",
    "👩‍👩‍👧 ",
    "\x00 ",
    "٣ ",
    "ﷺ ",
    "'' ",
    "Ａ ",
    "ｶﾞ ",
    "☃ ",
    "☃☃\n",
    "\ufeff ",
]
TEXTS = st.lists(st.sampled_from([*SIGNS, *PARTS, *ODD]), max_size=40).map("".join)

REPLACED, FIRST = normalizers.Replace(" ", "▁"), normalizers.Prepend("▁")
MERGES = {
    "llama": (normalizers.Sequence([FIRST, REPLACED]), None),
    "gemma": (REPLACED, pre_tokenizers.Split(" ", "merged_with_previous")),
    "mistral": (None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False)),
    "always": (normalizers.NFC(), pre_tokenizers.Metaspace(prepend_scheme="always", split=False)),
    "words": (normalizers.NFKC(), pre_tokenizers.Metaspace(prepend_scheme="never")),
}


def charsmap() -> bytes:
    """How a SentencePiece model folds characters."""
    model = trained_model("unigram", normalization_rule_name="nmt_nfkc")
    start = model.index(b"\x0a\x08nmt_nfkc\x12") + 11
    size = model[start] & 127 | (model[start + 1] & 127) << 7 | model[start + 2] << 14
    return model[start + 3 : start + 3 + size]


def trained_model(kind: str, **options) -> bytes:
    out = BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 20), model_writer=out, model_type=kind, vocab_size=450,
        hard_vocab_limit=False, character_coverage=0.98, user_defined_symbols=["<tag>"],
        minloglevel=2, **options,
    )  # fmt: skip
    return out.getvalue()


def merges(normaliser, rule, *, tag=None, newline="\n") -> Tokenizer:
    """BPE with bytes for what it does not know."""
    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation()])
    every = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<unk>", "</s>", *every], initial_alphabet=["▁"], show_progress=False
    )
    made.train_from_iterator([line.replace("\n", newline) for line in LINES * 2], trainer)
    content = json.loads(made.to_str())
    content["added_tokens"] = content["added_tokens"][:2]
    made = Tokenizer.from_str(json.dumps(content))
    made.normalizer, made.pre_tokenizer = normaliser, rule
    made.add_tokens([AddedToken("<tag>", normalized=False)] if tag else [])
    return made


def words(kind: str) -> Tokenizer:
    """Words first: what T5, XLM-R, ALBERT and BERT do."""
    space, many = pre_tokenizers.WhitespaceSplit(), normalizers.Replace(Regex(" {2,}"), " ")
    folds = normalizers.Precompiled(charsmap())
    parts = normalizers.Sequence
    quotes = [normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.StripAccents()]
    rules = {
        "t5": (parts([folds, normalizers.Strip(left=False), normalizers.Replace(Regex(" {2,}"), "▁")]), None),
        "xlm-r": (parts([folds, many]), pre_tokenizers.Sequence([space, pre_tokenizers.Metaspace()])),
        "first": (folds, pre_tokenizers.Metaspace(prepend_scheme="first")),
        "first word": (
            folds,
            pre_tokenizers.Sequence([space, pre_tokenizers.Metaspace(prepend_scheme="first")]),
        ),
        "albert": (
            parts([*quotes, normalizers.Lowercase(), folds]),
            pre_tokenizers.Sequence([space, pre_tokenizers.Metaspace()]),
        ),
        "bert": (normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()),
        "cased": (normalizers.BertNormalizer(lowercase=False), pre_tokenizers.BertPreTokenizer()),
        "signs": (parts([normalizers.NFD(), normalizers.StripAccents()]), pre_tokenizers.Whitespace()),
    }
    is_pieces = kind in {"bert", "cased", "signs"}
    made = Tokenizer(models.WordPiece(unk_token="<unk>") if is_pieces else models.Unigram())
    made.normalizer, rule = rules[kind]
    made.pre_tokenizer = rule or pre_tokenizers.Metaspace()
    trainer = (
        trainers.WordPieceTrainer(vocab_size=300, special_tokens=["<unk>", "</s>"], show_progress=False)
        if is_pieces
        else trainers.UnigramTrainer(
            vocab_size=400, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False
        )
    )
    made.train_from_iterator(LINES * 2, trainer)
    made.add_tokens([AddedToken("<tag>", normalized=True)])
    return made


def check(tokenizer, module, most=150):
    """Ids and spans of some texts, whole and in the smallest pieces; pieces are found often."""
    found = []

    @given(text=TEXTS)
    @settings(max_examples=most)
    def law(text):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(f"recipe.text.tokenizers.{module}.LONG", 1 << 40)
            ids, spans = tokenizer.encode_batch([text])[0].tolist(), tokenizer.offsets(text).tolist()
            patch.setattr(f"recipe.text.tokenizers.{module}.LONG", 1)
            patch.setattr("recipe.text.long_texts.LONG", -1)
            pieces = list(tokenizer.pieces(text))
            assert "".join(pieces) == text
            assert encode_long(text, tokenizer, 1, None, nullcontext()).tolist() == ids
            assert spans_of(text, tokenizer, 1).tolist() == spans
            assert tokenizer.encode_batch([text])[0].tolist() == ids
            found.append(len(pieces))

    law()
    assert 2 * sum(found) > 3 * len(found)


@pytest.mark.parametrize("newline", ["\n", " "])
@pytest.mark.parametrize(("tag", "specials"), [(False, ""), (True, ""), (False, "#specials")])
@pytest.mark.parametrize("kind", MERGES)
def test_B7_merges_over_whole_texts_are_the_same_in_pieces(tmp_path, kind, tag, specials, newline):
    merges(*MERGES[kind], tag=tag, newline=newline).save(str(tmp_path / "tokenizer.json"))
    tokenizer = load_tokenizer(f"{tmp_path / 'tokenizer.json'}{specials}")
    check(tokenizer, "hugging_face", 100)
    if newline == " " and kind in ("llama", "gemma"):
        assert list(tokenizer.pieces("x" * (1 << 18) + "\n" + "y"))[1:] == ["\ny"]


@pytest.mark.parametrize("specials", ["", "#specials"])
@pytest.mark.parametrize("kind", ["t5", "xlm-r", "first", "first word", "albert", "bert", "cased", "signs"])
def test_B7_words_are_the_same_in_pieces(tmp_path, kind, specials):
    words(kind).save(str(tmp_path / "tokenizer.json"))
    check(load_tokenizer(f"{tmp_path / 'tokenizer.json'}{specials}"), "hugging_face")


@pytest.mark.parametrize("fallback", [False, True])
@pytest.mark.parametrize("rule", ["identity", "nmt_nfkc"])
@pytest.mark.parametrize(("first", "joined"), [(True, True), (True, False), (False, False)])
def test_B7_models_that_merge_pairs_give_the_same_in_pieces(tmp_path, first, joined, rule, fallback):
    (tmp_path / "a.model").write_bytes(
        trained_model(
            "bpe", byte_fallback=fallback, add_dummy_prefix=first, remove_extra_whitespaces=joined,
            normalization_rule_name=rule,
        )
    )  # fmt: skip
    check(load_tokenizer(tmp_path / "a.model", eos="</s>"), "sentence_pieces")


def test_another_process_encodes_later_pieces_the_same(tmp_path):
    (tmp_path / "a.model").write_bytes(
        trained_model("bpe", normalization_rule_name="identity", remove_extra_whitespaces=False)
    )
    merges(*MERGES["llama"]).save(str(tmp_path / "tokenizer.json"))
    for path in (tmp_path / "a.model", tmp_path / "tokenizer.json"):
        tokenizer = load_tokenizer(path, eos="</s>")
        ids = tokenizer.later.encode_batch(["a  b"])[0]
        sent = pickle.loads(pickle.dumps(tokenizer))
        assert np.array_equal(sent.later.encode_batch(["a  b"])[0], ids)
        assert not np.array_equal(sent.encode_batch(["a  b"])[0], ids)


def change(content, what):
    model = content["model"]
    if what == "token":
        model["vocab"]["e▁"] = len(model["vocab"])
        model["vocab"] |= {f"{one}{stop}": len(model["vocab"]) + n for n, (one, stop) in enumerate(
            [("e", "\n"), ("e", "。"), ("e", "，"), ("e", "、")])}  # fmt: skip
    elif what in ("ignore_merges", "dropout", "continuing_subword_prefix"):
        model[what] = {"ignore_merges": True, "dropout": 0.5}.get(what, "##")
    elif what == "normaliser":
        content["normalizer"] = {"type": "Lowercase"}
    elif what == "split":
        content["pre_tokenizer"] = {"type": "Digits", "individual_digits": True}
    elif what == "strip":
        content["added_tokens"][1] |= {"special": False, "rstrip": True}
    else:
        content["added_tokens"][1]["content"] = "a b。\nc，。，d、e，"


@pytest.mark.parametrize(
    "what",
    [
        "token",
        "ignore_merges",
        "dropout",
        "continuing_subword_prefix",
        "normaliser",
        "split",
        "strip",
        "mark",
    ],
)
def test_B7_a_text_stays_whole_where_something_may_reach_across(tmp_path, what):
    content = json.loads(merges(*MERGES["llama"]).to_str())
    assert blank_seam(content, str, specials=False) is not None
    change(content, what)
    assert blank_seam(content, str, specials=False) is None


def test_models_that_add_up_numbers_keep_texts_whole(tmp_path: Path):
    (tmp_path / "a.model").write_bytes(trained_model("unigram"))
    assert list(load_tokenizer(tmp_path / "a.model").pieces("a b " * (1 << 17))) == ["a b " * (1 << 17)]
