"""Pools of any size that take hardly any disk: real cards and offsets, token files full of holes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from recipe.pools import Pool, extent_units, open_pool
from recipe.pools.blocks import BLOCK_BYTES, DIGEST_BYTES, block_digest, file_hash, num_blocks, root_hash
from recipe.pools.card import CARD_NAME, Card, FileRecord, MaxId, PartRecord, card_text
from recipe.pools.lengths import histogram
from recipe.pools.megatron import index_bytes

_STRETCH = 1 << 22


def sparse_pool(
    path: Path,
    num_documents: int,
    tokens_each: int,
    *,
    num_parts: int = 1,
    name: str | None = None,
    extent: int | None = None,
) -> Pool:
    """A pool of ``num_documents`` documents of ``tokens_each`` zeros (uint16, no marks, ids 0..n-1).

    Offsets (8 bytes a document) are written in full; token files and indices are holes of the right
    size, the table is empty. The hashes of token blocks and of files beside them are true, others are not.
    """
    path.mkdir(parents=True)
    bounds = [index * num_documents // num_parts for index in range(num_parts + 1)]
    digests: list[bytes] = []
    parts = []
    for index in range(num_parts):
        record, blocks = _sparse_part(path, index, bounds[index + 1] - bounds[index], tokens_each)
        parts.append(record)
        digests += blocks
    np.save(path / "hashes.npy", np.frombuffer(b"".join(digests), np.uint8).reshape(-1, DIGEST_BYTES))
    offsets = np.lib.format.open_memmap(path / "offsets.npy", "w+", np.dtype("<i8"), (num_documents + 1,))
    for start in range(0, num_documents + 1, _STRETCH):
        stop = min(start + _STRETCH, num_documents + 1)
        offsets[start:stop] = np.arange(start, stop, dtype=np.int64) * tokens_each
    del offsets
    (path / "documents.parquet").touch()
    num_tokens = num_documents * tokens_each
    card = Card(
        vocab_size=65_536,
        token_dtype="uint16",
        bos=None,
        eos=None,
        bos_stored="none",
        eos_stored="none",
        tokenizer=None,
        tokenizer_name=None,
        num_documents=num_documents,
        num_units=num_documents,
        body_tokens=num_tokens,
        special_tokens=0,
        counted="exact",
        max_document_tokens=tokens_each,
        length_histogram=tuple((histogram(np.array([tokens_each])) * num_documents).tolist()),
        max_id=MaxId(id=0, part="part-00000.bin", position=0),
        extent_units=extent or extent_units(num_tokens, num_documents),
        block_bytes=BLOCK_BYTES,
        shuffled=True,
        seed=0,
        ids="number",
        dropped={},
        source={"sparse": True},
        parts=tuple(parts),
        files={
            file: FileRecord(bytes=(path / file).stat().st_size, hash=file_hash(path / file))
            for file in ("offsets.npy", "hashes.npy", "documents.parquet")
        },
    )
    (path / CARD_NAME).write_bytes(card_text(card))
    return open_pool(path, name or path.name)


def _sparse_part(path: Path, index: int, documents: int, tokens_each: int) -> tuple[PartRecord, list[bytes]]:
    name, size = f"part-{index:05d}", documents * tokens_each * 2
    for ending, length in (("bin", size), ("idx", index_bytes(documents, documents))):
        (path / f"{name}.{ending}").touch()
        os.truncate(path / f"{name}.{ending}", length)
    blocks = [block_digest(bytes(BLOCK_BYTES))] * num_blocks(size, BLOCK_BYTES)
    if size % BLOCK_BYTES:
        blocks[-1] = block_digest(bytes(size % BLOCK_BYTES))
    record = PartRecord(
        name=name,
        documents=documents,
        tokens=documents * tokens_each,
        bytes=size,
        hash=root_hash(blocks),
        index_bytes=index_bytes(documents, documents),
        index_hash="0" * 64,
        rows_hash="0" * 64,
    )
    return record, blocks
