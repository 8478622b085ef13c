"""Golden bytes: pools made of JSON lines and texts stay as they were, whatever else can be read."""

from __future__ import annotations

import gzip
import json
from hashlib import sha256

import pytest
import zstandard

from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import ByteTokenizer

RECORDS = [
    {
        "id": f"d{i}",
        "text": f"text {i} " + "é" * (i % 7),
        "repo": f"r{i % 3}",
        "lang": "en" if i % 2 else None,
    }
    for i in range(40)
]
BAD = b'\n{"text": 7}\n{"text": ""}\n{"id":"bad","text": "x\\ud800"}\n'

OPTIONS = {
    "skip": {"on_bad": "skip"},
    "replace": {"on_bad": "replace"},
    "groups": {"on_bad": "skip", "group_key": "repo", "tag_keys": ("lang",)},
}

GOLDEN = {
    "skip": {
        "hashes.npy": "befa6912649a66e5",
        "offsets.npy": "b5292d2467f10066",
        "part-00000.bin": "a63554ee8db2b648",
        "part-00000.idx": "f623135bfeed378f",
        "quarantine.jsonl": "466647dac37800da",
        "settings": "e3f63e04b76257fc",
    },
    "replace": {
        "hashes.npy": "3e869b2e929633e8",
        "offsets.npy": "cf825a1813d949fd",
        "part-00000.bin": "be1b5ae0742ad0af",
        "part-00000.idx": "4b75fa7b9c4c84d0",
        "quarantine.jsonl": "e22fa89f7c79d492",
        "settings": "2d56b81c785d0e59",
    },
    "groups": {
        "hashes.npy": "5a388ac584ea0d90",
        "offsets.npy": "31af6e8ca35ba9dd",
        "part-00000.bin": "70aa4bee47d57e88",
        "part-00000.idx": "8c3b59c174757f78",
        "quarantine.jsonl": "466647dac37800da",
        "units.npy": "26b3490223438800",
        "settings": "fc6f20e0008653e7",
    },
}


def write_corpus(folder):
    rows = [json.dumps(record).encode() + b"\n" for record in RECORDS]
    (folder / "tree").mkdir(parents=True)
    (folder / "a.jsonl").write_bytes(b"".join(rows[:10]) + BAD)
    members = gzip.compress(b"".join(rows[10:20])) + gzip.compress(b"".join(rows[20:25]))
    (folder / "b.jsonl.gz").write_bytes(members)
    (folder / "c.jsonl.zst").write_bytes(zstandard.ZstdCompressor().compress(b"".join(rows[25:])))
    (folder / "tree" / "x.md").write_text("# one\n\ntext\n")
    (folder / "tree" / "y.txt").write_bytes(b"bytes \xff")
    (folder / "tree" / "empty.py").write_bytes(b"")


@pytest.mark.parametrize("name", list(OPTIONS))
def test_a_pool_of_lines_and_texts_has_the_bytes_it_had(tmp_path, name):
    write_corpus(tmp_path / "in")
    options = PrepareOptions(read=ReadOptions(**OPTIONS[name]))
    prepare_pool([tmp_path / "in"], tmp_path / name, ByteTokenizer(), options).close()
    settings = json.loads((tmp_path / name / "prepare.json").read_bytes())["settings"]
    found = {"settings": json.dumps(settings, sort_keys=True).encode()}
    found |= {file: (tmp_path / name / file).read_bytes() for file in GOLDEN[name] if file != "settings"}
    assert {file: sha256(data).hexdigest()[:16] for file, data in found.items()} == GOLDEN[name]
