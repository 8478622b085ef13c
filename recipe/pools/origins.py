"""The parts a pool was written with, proven from token files that were cut anew.

The tokens of a pool are one stream, whatever files it is cut into. Its fingerprint stands for the parts it
was written with: the blocks of each, the index that its lengths make, the rows of its documents. All three
follow from the stream, the offsets and the document table, so they can be computed again and compared.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator
from io import RawIOBase
from itertools import accumulate
from os import pread
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from recipe.pools.card import TABLE_NAME, Card, canonical_json
from recipe.pools.finding import Finding
from recipe.pools.megatron import write_index
from recipe.pools.offsets import map_offsets
from recipe.pools.remote.copied import CopiedPath
from recipe.pools.table import either, row_groups

AS_WRITTEN = " as first written"
"""Behind the name of a part that is no file any more."""


def read_tokens(folder: Path, card: Card, start: int, stop: int) -> bytes:
    """Bytes of a pool's tokens, all its token files taken as one; fewer where a file is too short."""
    ends = list(accumulate(part.bytes for part in card.parts))
    found = []
    index = bisect_right(ends, start)
    while start < stop and index < len(ends):
        base = ends[index] - card.parts[index].bytes
        found.append(
            _between(folder / f"{card.parts[index].name}.bin", start - base, min(stop, ends[index]) - base)
        )
        start, index = ends[index], index + 1
    return b"".join(found)


def _between(path: Path, start: int, stop: int) -> bytes:
    if isinstance(path, CopiedPath):
        return path.read_span(start, stop)
    with path.open("rb") as file:
        return pread(file.fileno(), stop - start, start)


class RowsHash:
    """Hash of the rows of a part's documents, fed by its rows in any portions."""

    def __init__(self) -> None:
        """Of no row."""
        self._hash = hashlib.blake2b(digest_size=32)

    def update(self, table: pa.Table) -> None:
        """Take the next rows of a document table."""
        if table.num_rows:
            columns = (table["tags"].to_pylist(), table["source"].to_pylist())
            rows = list(zip(either(table, "id"), either(table, "group"), *columns, strict=True))
            # as `recipe.pools.part` hashes them: joined by commas, wherever portions end
            self._hash.update(canonical_json(rows)[1:-1] + b",")

    def hexdigest(self) -> str:
        """As part records have it."""
        return self._hash.hexdigest()


class HashingFile(RawIOBase):
    """Takes what is written and keeps its hash alone."""

    def __init__(self) -> None:
        """Of nothing."""
        self._hash = hashlib.blake2b(digest_size=32)

    def write(self, data: Any) -> int:
        """Take bytes."""
        self._hash.update(data)
        return len(data)

    def hexdigest(self) -> str:
        """Of all that was written."""
        return self._hash.hexdigest()


def check_origin_indices(folder: Path, card: Card) -> list[Finding]:
    """The offsets make the indices of the parts that the pool was written with."""
    offsets = map_offsets(folder, card)
    dtype, document, findings = np.dtype(card.token_dtype).newbyteorder("<"), 0, []
    for part in card.origin_parts:
        file = HashingFile()
        lengths = np.diff(offsets[document : document + part.documents + 1])
        write_index(file, lengths, dtype)  # type: ignore[arg-type]
        if (found := file.hexdigest()) != part.index_hash:
            where = f"{folder / part.name}.idx{AS_WRITTEN}"
            findings.append(Finding("contents", where, part.index_hash, found))
        document += part.documents
    return findings


def check_origin_rows(folder: Path, card: Card) -> list[Finding]:
    """The document table holds the rows of the parts that the pool was written with, and of those it has."""
    findings = []
    for parts, said in ((card.origin_parts, AS_WRITTEN), (card.parts, "")):
        counts = [part.documents for part in parts]
        for part, found in zip(parts, rows_hashes(folder, counts), strict=True):
            if found != part.rows_hash:
                where = f"{folder / TABLE_NAME}: rows of {part.name}{said}"
                findings.append(Finding("documents", where, part.rows_hash, found))
    return findings


def rows_hashes(folder: Path, counts: list[int]) -> Iterator[str]:
    """Hashes of the rows of a pool's table, cut into parts of so many documents."""
    tables = row_groups(folder / TABLE_NAME)
    rest = next(tables, None)
    for count in counts:
        rows = RowsHash()
        while count and rest is not None:
            rows.update(rest.slice(0, count))
            taken = min(count, rest.num_rows)
            count -= taken
            rest = rest.slice(taken) if taken < rest.num_rows else next(tables, None)
        yield rows.hexdigest()
