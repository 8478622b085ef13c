"""Fact C6: files of a repository in one group, separated by their path markers, which are special."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from recipe.errors import RecipeError
from recipe.pools import Pool
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import load_tokenizer

SEPARATOR, END = "<|file_sep|>", "<|endoftext|>"


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """One token a byte, and two special ones."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(models.BPE(vocab={c: i for i, c in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens([SEPARATOR, END])
    made.save(str(tmp_path / "tokenizer.json"))
    return tmp_path / "tokenizer.json"


def files(root: Path) -> Path:
    """Two files of one folder, one of another, one of none."""
    texts = {"one/a.py": "x = 1\n", "one/b.py": f"y = '{SEPARATOR}'\n", "two/c.py": "z\n", "top.py": "t\n"}
    for name, text in texts.items():
        path = root / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "src"


def prepare(root: Path, tokenizer: Path, marker: str | None = f"{SEPARATOR}{{path}}\n", **more: Any) -> Pool:
    read = ReadOptions(group_depth=1, marker=marker, **more)
    loaded = load_tokenizer(tokenizer, eos=END)
    return prepare_pool([files(root)], root / "pool", loaded, PrepareOptions(read=read, workers=1))


def front(pool: Pool, number: int) -> list[int]:
    size = 0 if pool.leads is None else int(pool.leads[number])
    return pool.stored(number)[:size].tolist()


def test_C6_each_file_of_a_group_has_its_name_in_front(tmp_path: Path, tokenizer: Path):
    pool, loaded = prepare(tmp_path, tokenizer), load_tokenizer(tokenizer, eos=END)
    names = {row.document: row.source for row in pool.rows(range(4))}
    separator = loaded.vocabulary()[SEPARATOR]  # type: ignore[attr-defined]
    for number, name in names.items():
        right = [] if name == "top.py" else [separator, *loaded.encode_batch([f"{name}\n"])[0].tolist()]
        assert front(pool, number) == right
        assert loaded.decode(pool.tokens(number)) == (tmp_path / "src" / name).read_text()
    assert pool.card.special_tokens == 4 + sum(len(front(pool, number)) for number in range(4))


def test_C6_a_special_token_in_a_text_stays_text(tmp_path: Path, tokenizer: Path):
    pool, loaded = prepare(tmp_path, tokenizer), load_tokenizer(tokenizer, eos=END)
    separator = loaded.vocabulary()[SEPARATOR]  # type: ignore[attr-defined]
    assert not any((pool.tokens(number) == separator).any() for number in range(4))


def test_C6_without_markers_nothing_changes(tmp_path: Path, tokenizer: Path):
    pool = prepare(tmp_path / "none", tokenizer, None)
    assert pool.leads is None and pool.card.special_tokens == 4
    record = json.loads((tmp_path / "none/pool/prepare.json").read_text())
    assert "marker" not in record["settings"]["read"]


def test_C6_markers_and_sections_stand_together(tmp_path: Path, tokenizer: Path):
    text = "import os\n\ndef f():\n    pass\n"
    (tmp_path / "src/one").mkdir(parents=True)
    (tmp_path / "src/one/d.py").write_text(text)
    pool = prepare(tmp_path, tokenizer, sections="python")
    number = next(row.document for row in pool.rows(range(5)) if row.source == "one/d.py")
    begin = int(pool.offsets[number]) + len(front(pool, number))
    assert pool.sections is not None and pool.sections.tolist() == [begin + text.index("def")]


def test_C6_group_and_id_of_records_may_be_named(tmp_path: Path):
    rows = [{"id": "t1", "thread": "x", "text": "a"}, {"id": "t2", "thread": "x", "text": "b"}]
    (tmp_path / "chat.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    read = ReadOptions(group_key="thread", marker="{group}/{id}: ")
    options = PrepareOptions(read=read, workers=1)
    pool = prepare_pool([tmp_path / "chat.jsonl"], tmp_path / "pool", load_tokenizer("bytes"), options)
    assert [bytes(front(pool, k)) for k in range(2)] == [b"x/t1: ", b"x/t2: "]


@pytest.mark.parametrize("marker", ["", "{name}", "{path!r:>9}", "{", "{}"])
def test_a_marker_that_names_nothing_known_is_refused(marker: str):
    with pytest.raises(RecipeError, match="marker"):
        ReadOptions(marker=marker)


def test_a_name_that_is_a_special_token_is_refused(tmp_path: Path, tokenizer: Path):
    (tmp_path / "src/one").mkdir(parents=True)
    (tmp_path / f"src/one/{SEPARATOR}.py").write_text("x")
    with pytest.raises(RecipeError, match="special token"):
        prepare(tmp_path, tokenizer)
