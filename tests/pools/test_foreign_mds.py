"""Shards that the real mosaicml-streaming writes, as pools."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from recipe.errors import RecipeError
from recipe.pools import Pool, open_pool
from recipe.pools.foreign.form import Form

WRITE = """\
import json, sys
import numpy as np
from streaming import MDSWriter

for out, columns, compression, dtype, fixed in json.loads(sys.argv[1]):
    documents = [[(7 * n + k) % 90 + 1 for k in range(8 if fixed else n % 9 + 1)] for n in range(40)]
    with MDSWriter(out=out, columns=columns, compression=compression, size_limit=600) as writer:
        for number, document in enumerate(documents):
            sample = {"tokens": np.array(document, dtype)}
            if columns["tokens"] == "bytes":
                sample["tokens"] = sample["tokens"].tobytes()
            if "text" in columns:
                sample["text"] = "x" * (number % 5)
            if "mask" in columns:
                sample["mask"] = np.ones(len(document), np.uint8)
            if "id" in columns:
                sample["id"] = number
            writer.write(sample)
"""

KINDS: dict[str, tuple[dict[str, str], str | None, str, bool]] = {
    "any": ({"tokens": "ndarray"}, None, "uint16", False),
    "any_wide": ({"tokens": "ndarray"}, None, "int64", False),
    "typed": ({"tokens": "ndarray:int32"}, None, "int32", False),
    "typed_wide": ({"tokens": "ndarray:int64"}, None, "int64", False),
    "unsigned": ({"tokens": "ndarray:uint32"}, None, "uint32", False),
    "fixed": ({"tokens": "ndarray:uint16:8"}, None, "uint16", True),
    "bytes": ({"tokens": "bytes"}, None, "int64", False),
    "zstd": ({"tokens": "ndarray:uint16"}, "zstd:7", "uint16", False),
    "gz": ({"tokens": "ndarray:uint16"}, "gz", "uint16", False),
    "snappy": ({"tokens": "ndarray:uint16"}, "snappy", "uint16", False),
    "others": ({"id": "int", "text": "str", "tokens": "ndarray:uint16", "z": "int"}, None, "uint16", False),
    "masked": ({"mask": "ndarray:uint8", "tokens": "ndarray:uint16"}, None, "uint16", False),
}
del KINDS["others"][0]["z"]


@pytest.fixture(scope="module")
def written(streaming_python: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of each kind, forty samples in several shards."""
    folder = tmp_path_factory.mktemp("mds")
    wanted = [[str(folder / name), *kind] for name, kind in KINDS.items()]
    subprocess.run([str(streaming_python), "-c", WRITE, json.dumps(wanted)], check=True)
    return folder


@pytest.fixture
def mds(written: Path, tmp_path: Path) -> Path:
    """The folders, to be changed."""
    return Path(shutil.copytree(written, tmp_path / "mds"))


def documents(*, fixed: bool) -> list[list[int]]:
    return [[(7 * n + k) % 90 + 1 for k in range(8 if fixed else n % 9 + 1)] for n in range(40)]


def bodies(pool: Pool) -> list[list[int]]:
    return [pool.tokens(number).tolist() for number in range(pool.num_documents)]


@pytest.mark.parametrize("name", [name for name in KINDS if name != "snappy"])
def test_samples_of_the_real_writer_are_the_documents(mds, name):
    columns, _, dtype, fixed = KINDS[name]
    form = Form(
        dtype=dtype if columns["tokens"] == "bytes" else None, column="tokens" if "mask" in columns else None
    )
    pool = open_pool(mds / name, "p", form=form)
    assert bodies(pool) == documents(fixed=fixed)
    assert pool.num_parts > 1 and pool.verify(full=True) == []
    assert pool.layout.notes[0].startswith("its tokens are decoded into")
    assert pool.card.source["mds"] == pool.num_parts and pool.card.source["decoded_bytes"] > 0


def test_tokens_of_64_bits_are_kept_in_half_and_none_is_lost(mds):
    assert open_pool(mds / "typed_wide", "p").token_dtype.name == "int32"
    assert open_pool(mds / "typed_wide", "p", form=Form(dtype="uint8")).token_dtype.name == "uint8"


def test_samples_may_be_looked_through_for_marks(mds):
    """Packed chunks: documents begin and end anywhere in them."""
    pool = open_pool(mds / "fixed", "p", eos=5, form=Form(documents="eos"))
    stream = [token for document in documents(fixed=True) for token in document]
    assert sum(token == 5 for token in stream) <= pool.num_documents <= len(stream)
    assert [int(token) for number in range(pool.num_documents) for token in pool.stored(number)] == stream


def test_another_compression_is_refused_with_the_way_out(mds):
    with pytest.raises(RecipeError, match="compressed with snappy"):
        open_pool(mds / "snappy", "p")


@pytest.mark.parametrize(
    ("name", "form", "message"),
    [
        ("masked", Form(), "column: mask"),
        ("typed", Form(column="text"), "no column text"),
        ("others", Form(column="text"), "a column of str"),
        ("bytes", Form(), "write dtype"),
    ],
)
def test_what_may_be_meant_is_asked_for(mds, name, form, message):
    with pytest.raises(RecipeError, match=message):
        open_pool(mds / name, "p", form=form)


def shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("shard.*"))


def test_an_index_that_leaves_something_out_is_refused(mds):
    index = mds / "typed" / "index.json"
    plain = json.loads(index.read_text())
    del plain["shards"][1]["column_sizes"]
    index.write_text(json.dumps(plain))
    with pytest.raises(RecipeError, match="shard 1 without column_sizes"):
        open_pool(mds / "typed", "p")


@pytest.mark.parametrize("name", ["zstd", "gz", "typed"])
def test_a_shard_whose_content_is_damaged_is_refused(mds, name):
    """Its size is as the index says."""
    path = shards(mds / name)[0]
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2] + bytes(len(data) - len(data) // 2))
    with pytest.raises(RecipeError, match=r"shard\.00000\.mds"):
        open_pool(mds / name, "p")


def test_a_missing_shard_is_named(mds):
    shards(mds / "typed")[1].unlink()
    with pytest.raises(RecipeError, match=r"shard\.00001\.mds\n    given     no file"):
        open_pool(mds / "typed", "p")


def test_a_shard_cut_short_is_named(mds):
    path = shards(mds / "typed")[0]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(RecipeError, match=r"shard\.00000\.mds"):
        open_pool(mds / "typed", "p")


def test_C07_a_shard_that_changed_is_decoded_again_and_is_another_pool(mds):
    """A flipped token, the size as before."""
    before = open_pool(mds / "typed", "p")
    path = shards(mds / "typed")[-1]
    data = bytearray(path.read_bytes())
    data[-4] ^= 1
    path.write_bytes(data)
    after = open_pool(mds / "typed", "p")
    assert after.fingerprint != before.fingerprint
    assert int(after.tokens(39)[-1]) == int(before.tokens(39)[-1]) ^ 1
    assert [finding.check for finding in before.verify()] == ["contents"]


def test_splits_of_a_folder_come_in_sorted_order(mds, tmp_path):
    both = tmp_path / "both"
    shutil.copytree(mds / "fixed", both / "b")
    shutil.copytree(mds / "zstd", both / "a")
    pool = open_pool(both, "p")
    assert bodies(pool) == documents(fixed=False) + documents(fixed=True)


def test_a_merged_index_and_those_below_it_are_one_pool(mds, tmp_path):
    """As ``merge_index`` writes it: the shards of sub-folders, which keep their own."""
    both = tmp_path / "both"
    merged = []
    for name in ("fixed", "unsigned"):
        shutil.copytree(mds / "fixed", both / name)
        for shard in json.loads((both / name / "index.json").read_text())["shards"]:
            shard["raw_data"]["basename"] = f"{name}/{shard['raw_data']['basename']}"
            merged.append(shard)
    (both / "index.json").write_text(json.dumps({"version": 2, "shards": merged}))
    assert bodies(open_pool(both, "p")) == 2 * documents(fixed=True)


def test_an_index_of_something_else_is_no_shard(tmp_path):
    (tmp_path / "index.json").write_text('{"pages": []}')
    np.array([1, 0], np.uint16).tofile(tmp_path / "a.u16")
    assert open_pool(tmp_path, "p", eos=0).num_documents == 1
