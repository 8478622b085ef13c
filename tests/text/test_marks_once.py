"""One EOS a document and no BOS, whatever a tokenizer would add to a text by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers, processors

from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.tokenizers import load_tokenizer

BOS, EOS = "<s>", "</s>"


@pytest.mark.parametrize("template", [None, f"{BOS} $A", f"$A {EOS}", f"{BOS} $A {EOS}"])
def test_a_tokenizer_that_adds_none_one_or_both_marks_gives_the_same_pool(
    tmp_path: Path, template: str | None
):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.add_special_tokens([BOS, EOS])
    marks = [(mark, made.token_to_id(mark)) for mark in (BOS, EOS)]
    if template is not None:
        made.post_processor = processors.TemplateProcessing(single=template, special_tokens=marks)
    made.save(str(tmp_path / "tokenizer.json"))
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"text {name}")
    loaded = load_tokenizer(tmp_path / "tokenizer.json", eos=EOS)
    sources = [tmp_path / "a.txt", tmp_path / "b.txt"]
    pool = prepare_pool(sources, tmp_path / "pool", loaded, PrepareOptions(workers=1))
    for document in range(2):
        stored = pool.stored(document).tolist()
        assert (stored.count(dict(marks)[BOS]), stored.count(dict(marks)[EOS])) == (0, 1)
        assert stored[-1] == dict(marks)[EOS]
    assert (pool.card.body_tokens, pool.card.special_tokens) == (12, 2)
