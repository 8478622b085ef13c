"""A reader and a writer of MMIDIDX files of the tests' own, after the format's description."""

from __future__ import annotations

import struct
from itertools import chain, pairwise
from pathlib import Path

import numpy as np

CODES = {1: "u1", 2: "i1", 3: "<i2", 4: "<i4", 5: "<i8", 6: "<f8", 7: "<f4", 8: "<u2"}


def read_pair(prefix: Path) -> list[list[int]]:
    """Documents of a pair, as Megatron reads them."""
    data = Path(f"{prefix}.idx").read_bytes()
    assert data[:9] == b"MMIDIDX\x00\x00"
    version, code, sequences, entries = struct.unpack_from("<QBQQ", data, 9)
    assert version == 1
    start = 9 + 8 + 1 + 8 + 8
    lengths = np.frombuffer(data, "<i4", sequences, start)
    pointers = np.frombuffer(data, "<i8", sequences, start + 4 * sequences)
    documents = np.frombuffer(data, "<i8", entries, start + 12 * sequences)
    assert len(data) == start + 12 * sequences + 8 * entries
    tokens = Path(f"{prefix}.bin").read_bytes()
    dtype = np.dtype(CODES[code])
    read = [
        np.frombuffer(tokens, dtype, n, p).tolist() if n else []
        for n, p in zip(lengths.tolist(), pointers.tolist(), strict=True)
    ]
    bounds = documents.tolist()
    return [list(chain(*read[a:b])) for a, b in pairwise(bounds)]


def write_pair(prefix: Path, documents: list[list[list[int]]], code: int, **changed: object) -> None:
    """Write documents made of sequences; ``changed`` replaces parts of the index: last, pointers, version."""
    dtype = np.dtype(CODES[code])
    sequences = [sequence for document in documents for sequence in document]
    lengths = [len(sequence) for sequence in sequences]
    pointers = changed.get("pointers", [sum(lengths[:k]) * dtype.itemsize for k in range(len(lengths))])
    entries = [0]
    for document in documents:
        entries.append(entries[-1] + len(document))
    if "last" in changed:
        entries[-1] = changed["last"]  # type: ignore[call-overload]
    prefix.parent.mkdir(parents=True, exist_ok=True)
    Path(f"{prefix}.bin").write_bytes(np.array(list(chain(*sequences)), dtype=dtype).tobytes())
    version = changed.get("version", 1)
    Path(f"{prefix}.idx").write_bytes(
        b"MMIDIDX\x00\x00"
        + struct.pack("<QBQQ", version, code, len(lengths), len(entries))
        + np.array(lengths, "<i4").tobytes()
        + np.array(pointers, "<i8").tobytes()
        + np.array(entries, "<i8").tobytes()
    )
