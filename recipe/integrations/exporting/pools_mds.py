"""A pool as shards of MosaicML Streaming's MDS: columns of any size, a sample a document.

Source:
    mosaicml-streaming 0.13, ``MDSWriter.encode_joint_shard``, ``encode_sample`` and ``NDArray.encode``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.integrations.exporting.mds import MOST_BYTES, config_of, entry_of
from recipe.integrations.exporting.pools_documents import Documents
from recipe.integrations.exporting.pools_formats import Facts, Ground, in_files
from recipe.pools.table import either


def write_mds(folder: Path, documents: Iterator[Documents], ground: Ground) -> Facts:
    """A sample a document: ``tokens`` as an array, ``id``, ``group``, ``tags``, ``source``."""
    ids = {"int": "int", "text": "str"}.get(ground.kinds[0], "json")
    columns = {"tokens": f"ndarray:{ground.dtype.name}", "id": ids}
    columns |= dict.fromkeys(("group", "tags", "source"), "json")
    sizes = {name: 8 if encoding == "int" else None for name, encoding in columns.items()}
    config, shards = config_of(columns, sizes), []
    for number, stretches in in_files(documents, ground.tokens_per_file):
        samples = [sample for stretch in stretches for sample in _samples(stretch, ids)]
        name = f"shard.{number:05d}.mds"
        total = _write_shard(folder / name, config, samples)
        shards.append(entry_of(config, name, total, len(samples)))
    index = json.dumps({"version": 2, "shards": shards}, sort_keys=True)
    (folder / "index.json").write_text(index, encoding="utf-8")
    return {"dtype": ground.dtype.name}


def _write_shard(path: Path, config: Mapping[str, Any], samples: Sequence[bytes]) -> int:
    head = json.dumps(config, sort_keys=True).encode()
    start = 4 + 4 * (len(samples) + 1) + len(head)
    ends = start + np.cumsum([0, *map(len, samples)], dtype=np.int64)
    if ends[-1] > MOST_BYTES:
        raise RecipeError.single(
            "recipe export", "--format", given=f"mds; {len(samples)} documents in a shard, {ends[-1]} bytes",
            expected=f"at most {MOST_BYTES} bytes in a shard of MDS",
            fix="choose a smaller --tokens-per-file, or another format for documents as long as these",
        )  # fmt: skip
    with path.open("wb") as file:
        file.write(np.uint32(len(samples)).tobytes())
        file.write(ends.astype("<u4").tobytes())
        file.write(head)
        file.writelines(samples)
    return int(ends[-1])


def _samples(stretch: Documents, ids: str) -> Iterator[bytes]:
    """Columns in the order of their names: group, id, source, tags, tokens."""
    rows = stretch.rows
    found = zip(
        either(rows, "group"), either(rows, "id"), rows["source"].to_pylist(), rows["tags"].to_pylist(),
        stretch.arrays(), strict=True,
    )  # fmt: skip
    for group, key, source, tags, tokens in found:
        named = np.int64(key).tobytes() if ids == "int" else _json(key) if ids == "json" else key.encode()
        data = [_json(group), named, (source or "null").encode(), (tags or "{}").encode(), _array(tokens)]
        sizes = [len(datum) for number, datum in enumerate(data) if ids != "int" or number != 1]
        yield b"".join([np.array(sizes, "<u4").tobytes(), *data])


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _array(tokens: NDArray[Any]) -> bytes:
    """One dimension, its length in as few bytes as it takes, the values."""
    count = len(tokens)
    code = 0 if count < 1 << 8 else 1 if count < 1 << 16 else 2
    return bytes([1 << 2 | code]) + np.array([count], f"<u{1 << code}").tobytes() + tokens.tobytes()
