"""What the real datatrove writes, as pools."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from recipe.errors import RecipeError
from recipe.pools import Pool, open_pool
from recipe.pools.foreign.form import Form

WORDS = ["<eos>", *(f"w{number}" for number in range(50))]
TEXTS = [" ".join(f"w{(7 * number + at) % 50}" for at in range(number % 9 + 1)) for number in range(40)]


@pytest.fixture
def tokenizer(tmp_path: Path) -> str:
    """A file of a tokenizer of whole words; its end mark is 0."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="w0")
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    path = tmp_path / "tokenizer.json"
    made.save(str(path))
    return str(path)


def ids(text: str) -> list[int]:
    return [WORDS.index(word) for word in text.split()]


def bodies(pool: Pool) -> list[list[int]]:
    return [pool.tokens(number).tolist() for number in range(pool.num_documents)]


def written(folder: Path, tokenizer: str, **options: object) -> None:
    """Two ranks of datatrove's tokenizer, twenty texts each."""
    tokens = pytest.importorskip("datatrove.pipeline.tokens")
    data = pytest.importorskip("datatrove.data")
    documents = [data.Document(text=text, id=str(at)) for at, text in enumerate(TEXTS)]
    for rank in (0, 1):
        step = tokens.DocumentTokenizer(str(folder), tokenizer, eos_token="<eos>", seed=3, **options)
        step.run(iter(documents[20 * rank : 20 * rank + 20]), rank=rank, world_size=2)


def test_unshuffled_files_are_the_documents_in_turn(tmp_path, tokenizer):
    written(tmp_path / "ds", tokenizer, shuffle_documents=False)
    pool = open_pool(tmp_path / "ds", "p", eos=0)
    assert bodies(pool) == [ids(text) for text in TEXTS]
    assert (pool.token_dtype.name, pool.num_parts, pool.layout.notes) == ("uint16", 2, ())
    assert pool.card.special_tokens == len(TEXTS)
    assert pool.verify(full=True) == []


@pytest.mark.parametrize("more", [{}, {"max_tokens_per_file": 40}])
def test_shuffled_files_hold_the_same_documents(tmp_path, tokenizer, more):
    written(tmp_path / "ds", tokenizer, **more)
    pool = open_pool(tmp_path / "ds", "p", eos=0)
    assert sorted(bodies(pool)) == sorted(ids(text) for text in TEXTS)
    assert bodies(pool) != [ids(text) for text in TEXTS]


def test_files_of_shuffled_chunks_are_read_by_their_index_or_refused_with_the_way_out(tmp_path, tokenizer):
    """Chunks of seven tokens: what stands behind the last end of a file is no document of its index."""
    written(tmp_path / "ds", tokenizer, shuffle_chunk_size=7)
    files = sorted((tmp_path / "ds").glob("*.ds"))
    for file in files:
        ends = np.fromfile(f"{file}.index", "<u8")
        tokens = np.fromfile(file, "<u2")
        if int(ends[-1]) == len(tokens):
            assert open_pool(file, "p", eos=0).num_documents == len(ends)
        else:
            with pytest.raises(RecipeError, match="documents: eos"):
                open_pool(file, "p", eos=0)
        scanned = open_pool(file, "p", eos=0, form=Form(documents="eos"))
        assert scanned.num_documents == (tokens == 0).sum() + (tokens[-1] != 0)
    assert len(files) == 2


def test_merged_files_hold_the_same_documents(tmp_path, tokenizer):
    tokens = pytest.importorskip("datatrove.pipeline.tokens")
    written(tmp_path / "ds", tokenizer)
    merger = tokens.DocumentTokenizerMerger(
        str(tmp_path / "ds"), str(tmp_path / "merged"), "all", max_tokens_per_file=60, seed=1, progress=False
    )
    merger.run()
    pool = open_pool(tmp_path / "merged", "p", eos=0)
    assert pool.num_parts > 1
    assert sorted(bodies(pool)) == sorted(ids(text) for text in TEXTS)


def test_wide_tokens_are_read_as_wide_as_the_metadata_say(tmp_path):
    tokenized = pytest.importorskip("datatrove.pipeline.tokens.tokenizer")
    file = tokenized.TokenizedFile(
        str(tmp_path), "a.ds", token_size=4, save_final_metadata=True, tokenizer_name_or_path="wide|4"
    )
    file.write([1, 70_000, 0], None)
    file.write([4_000_000_000, 0], None)
    file.close()
    pool = open_pool(tmp_path, "p", eos=0)
    assert pool.token_dtype.name == "uint32"
    assert bodies(pool) == [[1, 70_000], [4_000_000_000]]
    assert "id 4000000000 at position 3" in pool.check_ids(100_000)[0].given


def plain(path: Path, tokens: list[int], ends: list[int], width: int = 2) -> None:
    """A ``.ds`` file of the tests' own, after the format's description."""
    np.array(tokens, f"<u{width}").tofile(path)
    Path(f"{path}.index").write_bytes(struct.pack(f"<{len(ends)}Q", *ends))


@pytest.mark.parametrize("width", [2, 4])
def test_without_metadata_the_width_follows_from_the_index(tmp_path, width):
    plain(tmp_path / "a.ds", [1, 2, 0, 3, 0], [3, 5], width)
    pool = open_pool(tmp_path, "p", eos=0)
    assert pool.token_dtype.itemsize == width
    assert bodies(pool) == [[1, 2], [3]]


def test_D04_the_index_is_believed_not_the_marks(tmp_path):
    plain(tmp_path / "a.ds", [1, 0, 2, 3, 0], [3, 5])
    assert bodies(open_pool(tmp_path, "p", eos=0)) == [[1, 0, 2], [3]]
    scanned = open_pool(tmp_path, "p", eos=0, form=Form(documents="eos", dtype="uint16"))
    assert bodies(scanned) == [[1], [2, 3]]


def test_tokens_behind_the_last_end_are_refused_or_looked_through_for_marks(tmp_path):
    """Chunks that were shuffled leave a piece of a document at the end of a file."""
    plain(tmp_path / "a.ds", [1, 2, 0, 3], [3])
    with pytest.raises(RecipeError, match=r"8 bytes.*ends at token 3"):
        open_pool(tmp_path, "p", eos=0)
    pool = open_pool(tmp_path, "p", eos=0, form=Form(documents="eos", dtype="uint16"))
    assert bodies(pool) == [[1, 2], [3]] and "end without the mark 0" in pool.layout.notes[0]


def test_a_missing_index_is_asked_for(tmp_path):
    plain(tmp_path / "a.ds", [1, 0], [2])
    (tmp_path / "a.ds.index").unlink()
    with pytest.raises(RecipeError, match=r"the index of a\.ds"):
        open_pool(tmp_path, "p", eos=0)


@pytest.mark.parametrize("data", [b"", b"1234567"])
def test_an_index_cut_short_is_refused(tmp_path, data):
    plain(tmp_path / "a.ds", [1, 0], [2])
    (tmp_path / "a.ds.index").write_bytes(data)
    with pytest.raises(RecipeError, match=r"ends at token 0|8 bytes for each document"):
        open_pool(tmp_path, "p", eos=0)


def test_an_index_that_falls_is_refused_when_documents_are_asked_for(tmp_path):
    plain(tmp_path / "a.ds", [1, 2, 0], [2, 1, 3])
    pool = open_pool(tmp_path, "p", eos=0)
    with pytest.raises(RecipeError, match="document 1 that ends at token 1"):
        _ = pool.offsets
    assert [finding.check for finding in pool.verify()] == ["index"]


def test_masks_of_the_loss_are_refused_by_name(tmp_path):
    """They would be trained on without a word."""
    tokenized = pytest.importorskip("datatrove.pipeline.tokens.tokenizer")
    file = tokenized.TokenizedFile(str(tmp_path), "a.ds", save_loss_metadata=True)
    file.write([1, 0], np.array([1, 0]))
    file.close()
    with pytest.raises(RecipeError, match=r"a\.ds\.loss\n    given     a mask"):
        open_pool(tmp_path, "p", eos=0)


def test_metadata_that_contradict_the_recipe_are_refused(tmp_path):
    plain(tmp_path / "a.ds", [1, 0], [2])
    (tmp_path / "a.ds.metadata").write_text("gpt2|2\n2\n2 T")
    with pytest.raises(RecipeError, match="uint16, as its metadata say"):
        open_pool(tmp_path, "p", eos=0, form=Form(dtype="uint32"))
