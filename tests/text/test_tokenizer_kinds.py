"""Ranks, SentencePiece models and folders: each against the library whose files they are."""

from __future__ import annotations

import json
import os
import pickle
import sys
from base64 import b64encode
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer

from recipe.errors import RecipeError
from recipe.pools import open_pool
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.tokenizers import PROBES, load_tokenizer
from recipe.text.tokenizers.composing import composed, composed_spans
from recipe.text.tokenizers.rank_files import PATTERNS, as_bytes
from recipe.text.tokenizers.splitting import SPLITS, pieces, ranks_seam, seam_of
from recipe.text.vocabulary import token_bytes
from tests.text.small_tokenizers import LINES, change_rule

TEXT = st.text(st.characters(codec="utf-8"))


def make_twins(folder: Path, split: str, *, nfc: bool = False) -> tuple[Path, Path]:
    """One vocabulary, as a ``tokenizer.json`` and as ranks with what goes with them."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLITS[split]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    if nfc:
        made.normalizer = normalizers.NFC()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(
        LINES * 2, trainers.BpeTrainer(vocab_size=500, initial_alphabet=alphabet, show_progress=False)
    )
    made.add_special_tokens(["<|endoftext|>"])
    vocabulary = made.get_vocab()
    eos = vocabulary.pop("<|endoftext|>")
    made.save(str(folder / "tokenizer.json"))
    ranks = folder / "ranks.tiktoken"
    ordered = sorted(vocabulary.items(), key=lambda one: one[1])
    ranks.write_bytes(b"".join(b64encode(as_bytes(token)) + b" %d\n" % id for token, id in ordered))
    beside = {
        "pattern": split,
        "special_tokens": {"<|endoftext|>": eos},
        "normalizer": "NFC" if nfc else None,
    }
    ranks.with_name("ranks.tiktoken.json").write_text(json.dumps(beside))
    return folder / "tokenizer.json", ranks


@pytest.fixture(scope="module", params=list(SPLITS))
def twins(request, tmp_path_factory):
    files = make_twins(tmp_path_factory.mktemp(request.param), request.param, nfc=request.param == "qwen")
    return tuple(load_tokenizer(file) for file in files)


@given(text=TEXT)
@settings(max_examples=150)
def test_B7_ranks_give_the_ids_of_the_same_vocabulary_as_a_tokenizer_json(twins, text):
    one, two = twins
    for each in (text, text + " \n\t" + text, *PROBES):
        [ids] = two.encode_batch([each])
        assert ids.tolist() == one.encode_batch([each])[0].tolist()
        assert two.decode(ids) == two.normalise(each) == one.normalise(each)
        assert b"".join(token_bytes(two)[id] for id in ids.tolist()).decode() == two.normalise(each)


@given(text=TEXT)
@settings(max_examples=100)
def test_spans_of_ranks_are_those_of_the_library_on_composed_text(twins, text):
    one, two = twins
    form = two.normalise(text)
    assert two.offsets(form).tolist() == one.offsets(form).tolist()


def test_spans_hold_all_characters_that_were_composed(twins):
    _, two = twins
    text = "x e\u0301\u0323 \u1112\u1161\u11ab 2024"
    spans = two.offsets(text)
    assert len(spans) == len(two.encode_batch([text])[0])
    assert spans[0, 0] == 0
    assert spans[-1, 1] == len(text)
    assert all(a[1] >= b[0] for a, b in pairwise(spans))


def test_composed_characters_are_of_the_stretch_they_came_from():
    assert composed_spans("", "").tolist() == []
    assert composed_spans("\u1112\u1161\u11abx", "\ud55cx").tolist() == [[0, 3], [3, 4]]
    assert composed_spans("ab", "X").tolist() == [[0, 2]]


SIGNS = "aB 中 。，、か\n\r\t'.1é\u0301\u00a0\u200b\u3000#"
PARTS = ["'s", "  ", "\n\n", " a", "a ", "中。", "<|endoftext|>", "12345", "a1", "1a", ". ", ".\n", "1\n"]
SIGNED = ["a=", "b(", "c1;", "中！", "か“x", "d+/e", "A9", '"k":', "x\t", "y\r\n", "it's.", "½,"]
MORE = ["1 ", "か、", "'ll ", "½ ", "\x00 ", "\u0301 ", "\U0001f600 "]
SEAMY = st.lists(
    st.sampled_from([*SIGNS, *PARTS, *SIGNED, *MORE]),
    max_size=40,
).map("".join)


@pytest.mark.parametrize("specials", ["", "#specials"])
@pytest.mark.parametrize("split", [*SPLITS, "bytes"])
def test_a_long_text_has_the_ids_it_has_in_one_piece(split, specials, tmp_path):
    made, _ = make_twins(tmp_path, "gpt2" if split == "bytes" else split, nfc=split == "qwen")
    if split == "bytes":
        content = json.loads(made.read_text())
        content["pre_tokenizer"] = {**content["pre_tokenizer"]["pretokenizers"][1], "use_regex": True}
        made.write_text(json.dumps(content))
    tokenizer = load_tokenizer(f"{made}{specials}")

    @given(text=SEAMY)
    @settings(max_examples=60)
    def check(text):
        whole = tokenizer._ids([text])[0].tolist()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("recipe.text.tokenizers.hugging_face.LONG", 3)
            assert tokenizer.encode_batch([text])[0].tolist() == whole

    check()
    seam = tokenizer._seam
    assert list(pieces("ab c。d", 2, seam)) == ["ab", " c", "。d"]
    assert list(pieces("1c\n.\n 。", 1, seam)) == ["1c", "\n.\n 。"]
    assert list(pieces("aQ1z+b,3;中！x", 1, seam)) == ["aQ", "1z", "+b", ",3", ";中", "！x"]


@pytest.mark.parametrize(
    "line",
    ["12,345,", '{"k":[1,2]},', "\tf(x);\tg=1;\n", "Zm9vYmFy0a/+", "a=b(c);", "没有空白的文字！可是有标点。"],
)
def test_long_texts_without_blanks_are_taken_apart(line):
    seam = ranks_seam(PATTERNS["cl100k"], [])
    assert max(map(len, pieces(line * 1000, 50, seam))) < 50 + len(line)


def test_texts_are_not_cut_inside_tokens_that_are_found_first():
    text = "a b.c1"
    found = {mark: list(pieces(text, 1, seam)) if (seam := ranks_seam(PATTERNS["qwen"], [mark])) else None
             for mark in ("<|x|>", "b.", "x1", "y z.1", "a b,c1\n")}  # fmt: skip
    assert found["<|x|>"] == ["a", " b", ".c", "1"]
    assert found["b."] == ["a", " b.c", "1"]
    assert found["x1"] == ["a", " b", ".c1"]
    assert found["y z.1"] == ["a b.c", "1"]
    assert found["a b,c1\n"] is None


@pytest.mark.parametrize("specials", ["", "#specials"])
@pytest.mark.parametrize("split", SPLITS)
def test_a_long_text_has_the_ids_of_ranks_that_it_has_in_one_piece(split, specials, tmp_path):
    _, made = make_twins(tmp_path, split, nfc=split == "qwen")
    tokenizer = load_tokenizer(f"{made}{specials}", eos="<|endoftext|>")

    @given(text=SEAMY)
    @settings(max_examples=60)
    def check(text):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("recipe.text.tokenizers.ranks.LONG", 3)
            parts = list(tokenizer.pieces(text))
        found = [id for ids in tokenizer.encode_batch(parts) for id in ids.tolist()]
        assert found == tokenizer.encode_batch([text])[0].tolist()

    assert len(list(tokenizer.pieces("one two " * (1 << 17)))) > 2
    check()


@pytest.mark.parametrize("what", ["normaliser", "dropout", "split", "digits", "mark", "blank first"])
def test_a_text_stays_whole_where_rules_might_reach_across(tmp_path, what):
    made, _ = make_twins(tmp_path, "gpt2")
    content = json.loads(made.read_text())
    change_rule(content, what)
    assert seam_of(content, specials=False) is None


@given(text=TEXT)
@settings(max_examples=50)
def test_a_long_text_is_composed_like_a_short_one(text):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("recipe.text.tokenizers.composing._CHARACTERS", 3)
        for each in (text, f"{text}e\u0301\u0323a\u1112\u1161\u11ab.{text}"):
            assert composed(each) == normalizers.NFC().normalize_str(each)


def test_more_blanks_than_the_matcher_takes_are_tokenised_all_the_same(twins):
    _, two = twins
    text = "a" + " " * 1_500_000 + "b"
    [ids] = two.encode_batch([text])
    assert two.decode(ids) == text


def test_marks_in_a_text_are_text_unless_asked_for(twins):
    for tokenizer in twins:
        text = "a<|endoftext|>b"
        asked = load_tokenizer(f"{tokenizer.files[0]}#specials")
        assert tokenizer.eos not in tokenizer.encode_batch([text])[0]
        assert asked.encode_batch([text])[0].tolist().count(tokenizer.eos) == 1
        assert asked.decode(asked.encode_batch([text])[0]) == text
        assert asked.fingerprint() != tokenizer.fingerprint()
        assert load_tokenizer(asked.spec).fingerprint() == asked.fingerprint()


def test_a_tokenizer_is_called_by_its_folder_also_from_inside_it(tmp_path, monkeypatch):
    plain, _ = make_twins(tmp_path, "gpt2")
    monkeypatch.chdir(tmp_path)
    assert load_tokenizer(plain.name).name == load_tokenizer(plain).name == tmp_path.name


def test_gpt2s_pair_is_the_same_tokenizer_as_its_ranks(tmp_path):
    plain, ranks = make_twins(tmp_path, "gpt2")
    content = json.loads(plain.read_text())["model"]
    pair = tmp_path / "pair"
    pair.mkdir()
    made = load_tokenizer(ranks)
    (pair / "encoder.json").write_text(json.dumps({**content["vocab"], "<|endoftext|>": made.eos}))
    merges = "\n".join(" ".join(merge) for merge in content["merges"])
    (pair / "vocab.bpe").write_text(f"#version: 0.2\n{merges}\n")
    loaded = [load_tokenizer(place) for place in (pair, pair / "vocab.bpe", pair / "encoder.json")]
    assert {one.fingerprint() for one in loaded} == {made.fingerprint()}
    assert {one.name for one in loaded} == {"pair"}
    assert made.fingerprint() != load_tokenizer(plain).fingerprint()


def test_C01_what_stands_beside_the_ranks_is_part_of_the_fingerprint(tmp_path):
    _, ranks = make_twins(tmp_path, "gpt2")
    beside = tmp_path / "ranks.tiktoken.json"
    said = json.loads(beside.read_text())
    found = {load_tokenizer(ranks).fingerprint()}
    for change in ({"pattern": "cl100k"}, {"normalizer": "NFC"}, {"special_tokens": {"<|endoftext|>": 900}}):
        beside.write_text(json.dumps(said | change))
        found.add(load_tokenizer(ranks).fingerprint())
    assert len(found) == 4


def test_unknown_ranks_need_a_file_that_says_how_texts_are_split(tmp_path):
    _, ranks = make_twins(tmp_path, "gpt2")
    (tmp_path / "ranks.tiktoken.json").unlink()
    with pytest.raises(RecipeError, match=r"ranks\.tiktoken\.json beside it"):
        load_tokenizer(ranks)
    (tmp_path / "ranks.tiktoken.json").write_text('{"patern": "gpt2"}')
    with pytest.raises(RecipeError, match="unknown key 'patern'"):
        load_tokenizer(ranks)


@pytest.mark.parametrize(
    ("line", "said"),
    [(b"%%% 3\n", "line 501"), (b"IQ== \n", "line 501"), (b"YWJj 3\n", "two tokens of one rank")],
)
def test_damaged_ranks_are_refused(tmp_path, line, said):
    _, ranks = make_twins(tmp_path, "gpt2")
    ranks.write_bytes(ranks.read_bytes() + line)
    with pytest.raises(RecipeError, match=said):
        load_tokenizer(ranks)


def test_ranks_without_a_byte_are_refused(tmp_path):
    _, ranks = make_twins(tmp_path, "gpt2")
    ranks.write_bytes(b"".join(ranks.read_bytes().splitlines(keepends=True)[1:]))
    with pytest.raises(RecipeError, match="no token for the byte 0x21"):
        load_tokenizer(ranks)


def test_the_pattern_of_gpt2_is_that_of_the_package():
    import tiktoken_ext.openai_public as public

    assert PATTERNS["gpt2"] == public.r50k_pat_str


@pytest.mark.parametrize("name", ["tiktoken", "sentencepiece"])
def test_a_package_that_is_not_there_is_named(tmp_path, monkeypatch, name):
    _, ranks = make_twins(tmp_path, "gpt2")
    place = ranks if name == "tiktoken" else make_model(tmp_path / "m.model")
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(RecipeError, match=rf"pip install .*\[{name}\]"):
        load_tokenizer(place)


def make_model(path: Path, **options: object) -> Path:
    """A SentencePiece model of a few lines."""
    model = BytesIO()
    sentences = [part for line in LINES for part in line.splitlines() if part]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences * 3), model_writer=model, byte_fallback=True,
        model_type="bpe", minloglevel=2, num_threads=1, **{"vocab_size": 420, **options},
    )  # fmt: skip
    path.write_bytes(model.getvalue())
    return path


@pytest.fixture(scope="module", params=["identity", "nmt_nfkc"])
def model(request, tmp_path_factory):
    plain = {"remove_extra_whitespaces": False} if request.param == "identity" else {}
    path = tmp_path_factory.mktemp("model") / "tokenizer.model"
    return load_tokenizer(make_model(path, normalization_rule_name=request.param, **plain))


@given(text=TEXT)
@settings(max_examples=100)
def test_B7_a_sentencepiece_model_gives_its_own_normalisation_back(model, text):
    library = sentencepiece.SentencePieceProcessor(model_file=str(model.path))
    for each in (text, f"def f():  {text}\n"):
        [ids] = model.encode_batch([each])
        assert ids.tolist() == library.encode(each)
        assert model.decode(ids) == model.normalise(each)
        assert len(model.offsets(each)) == len(ids)


def test_bytes_of_pieces_joined_are_the_text(model):
    vocabulary = token_bytes(model)
    assert len(vocabulary) == model.vocab_size == 420
    for text in (*LINES, "é👩 ¥"):
        spelt = b"".join(vocabulary[id] for id in model.encode_batch([text])[0].tolist()).decode()
        assert spelt.removeprefix(" ") == model.normalise(text)


def test_all_bytes_of_a_character_have_its_span(model):
    text = "ab 鑫"
    spans = model.offsets(text)
    assert spans[-3:].tolist() == [[3, 4]] * 3


def test_marks_of_a_model_are_never_found_in_texts_and_are_shown(model):
    [ids] = model.encode_batch(["a </s> b"])
    assert model.eos not in ids
    assert model.decode([*ids.tolist(), model.eos]).endswith("b</s>")
    with pytest.raises(RecipeError, match="#specials"):
        load_tokenizer(f"{model.path}#specials")


def test_a_model_says_what_its_normaliser_does(model, request):
    told = {"identity": "none", "nmt_nfkc": "NFKC+blanks joined"}
    assert model.normaliser == told[request.node.callspec.params["model"]]


def test_C01_two_models_and_two_ends_differ(tmp_path):
    one, two = make_model(tmp_path / "a.model"), make_model(tmp_path / "b.model", vocab_size=400)
    marks = [load_tokenizer(one), load_tokenizer(two), load_tokenizer(one, eos="<s>")]
    assert len({tokenizer.fingerprint() for tokenizer in marks}) == 3
    assert marks[2].eos == 1


def test_ids_out_of_range_are_the_callers_fault(twins, model):
    for tokenizer in (twins[1], model):
        with pytest.raises(ValueError, match="id"):
            tokenizer.decode([10_000])


def test_every_kind_is_pickled_whole(twins, model):
    for tokenizer in (*twins, model):
        copy = pickle.loads(pickle.dumps(tokenizer))
        text = "a <|endoftext|> b</s>"
        assert copy.encode_batch([text])[0].tolist() == tokenizer.encode_batch([text])[0].tolist()
        assert copy.fingerprint() == tokenizer.fingerprint()


@pytest.mark.parametrize("kind", ["ranks", "model"])
def test_N01_a_pool_keeps_the_ids_of_every_kind(twins, model, tmp_path, kind):
    tokenizer = twins[1] if kind == "ranks" else model
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in LINES))
    with prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", tokenizer) as pool:
        found = {tokenizer.decode(pool.tokens(number)) for number in range(pool.num_documents)}
        assert found == {tokenizer.normalise(line) for line in LINES}
        assert pool.card.tokenizer == tokenizer.fingerprint()


def test_N01_ids_above_65535_are_kept(tmp_path):
    _, ranks = make_twins(tmp_path, "gpt2")
    lines = ranks.read_bytes().splitlines(keepends=True)
    token = lines[-1].split()[0]
    ranks.write_bytes(b"".join(lines[:-1]) + token + b" 100257\n")
    beside = {"pattern": "gpt2", "special_tokens": {"<|endoftext|>": 119_546}}
    (tmp_path / "ranks.tiktoken.json").write_text(json.dumps(beside))
    tokenizer = load_tokenizer(ranks)
    [text] = [tokenizer.decode([100_257])]
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": text}) + "\n")
    prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", tokenizer).close()
    with open_pool(tmp_path / "pool", "pool") as pool:
        assert (tokenizer.vocab_size, pool.tokens(0).tolist()) == (119_547, [100_257])


def test_a_folder_is_what_AutoTokenizer_takes_it_for(tmp_path):
    made, _ = make_twins(tmp_path, "qwen", nfc=True)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}
    (made.parent / "tokenizer_config.json").write_text(json.dumps(config))
    theirs, ours = AutoTokenizer.from_pretrained(tmp_path), load_tokenizer(tmp_path)
    for text in (*PROBES, *LINES):
        ids = theirs(text, add_special_tokens=False, split_special_tokens=True)["input_ids"]
        assert ours.encode_batch([text])[0].tolist() == ids
    assert (ours.vocab_size, ours.eos) == (len(theirs), theirs.eos_token_id)


def test_tokens_that_only_the_configuration_adds_are_refused(tmp_path):
    made, _ = make_twins(tmp_path, "gpt2")
    config = {"added_tokens_decoder": {"501": {"content": "<|chat|>"}}, "eos_token": "<|endoftext|>"}
    (made.parent / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(RecipeError, match=r"'<\|chat\|>' as 501, the file has not"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["vocab.json", "merges.txt"], "do not say how a text is split"),
        (["vocab.txt"], "does not say how a text is split"),
        (["tokenizer_config.json"], "a class of Python code"),
        ([], "no tokenizer.json in it"),
        (["a.tiktoken", "b.tiktoken"], r"a\.tiktoken and b\.tiktoken"),
    ],
)
def test_a_folder_without_a_tokenizer_json_says_what_it_lacks(tmp_path, names, said):
    for name in names:
        (tmp_path / name).write_text("{}")
    with pytest.raises(RecipeError, match=said):
        load_tokenizer(tmp_path)


def test_ranks_and_models_are_found_in_their_folders(tmp_path):
    for name in ("ranks", "model"):
        (tmp_path / name).mkdir()
    _, ranks = make_twins(tmp_path / "ranks", "gpt2")
    (tmp_path / "ranks" / "tokenizer.json").unlink()
    make_model(tmp_path / "model" / "spiece.model")
    assert load_tokenizer(tmp_path / "ranks").fingerprint() == load_tokenizer(ranks).fingerprint()
    assert load_tokenizer(tmp_path / "model").kind == "sentencepiece"


REAL = os.environ.get("RECIPE_TOKENIZERS")
G4 = {
    "保留重复元素。": (14, 4),
    "sorted(xs)": (5, 3),
    "[3, 1, 3]": (7, 9),
}


@pytest.mark.skipif(REAL is None, reason="RECIPE_TOKENIZERS names no folder with gpt2/ and qwen3/ files")
@pytest.mark.parametrize(
    ("gpt2", "qwen3"),
    [
        ("gpt2/tokenizer.json", "qwen3/tokenizer.json"),
        ("gpt2/r50k_base.tiktoken", "qwen3/qwen.tiktoken"),
        ("gpt2/encoder.json", "qwen3/qwen.tiktoken"),
    ],
)
def test_G4_the_table_of_two_real_tokenizers(gpt2, qwen3):
    for which, (place, eos) in enumerate(((gpt2, 50_256), (qwen3, 151_643))):
        tokenizer = load_tokenizer(Path(str(REAL)) / place)
        assert tokenizer.eos == eos
        for text, counts in G4.items():
            [ids] = tokenizer.encode_batch([text])
            assert len(ids) == counts[which]
            assert tokenizer.decode(ids) == text


def test_marks_in_texts_are_text_in_other_processes_too(twins, tmp_path, monkeypatch):
    monkeypatch.setattr("recipe.text.engines.choosing.SMALL_BYTES", 0)
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "a<|endoftext|>b"}) + "\n")
    for number, tokenizer in enumerate(twins):
        options = PrepareOptions(workers=2)
        with prepare_pool([tmp_path / "a.jsonl"], tmp_path / f"{number}", tokenizer, options) as pool:
            assert tokenizer.eos not in pool.tokens(0)
