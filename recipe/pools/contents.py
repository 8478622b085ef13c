"""Documents with equal body tokens: found by their 128-bit hashes, of any number of pools, in bounded memory.

Hashes come in sorted runs, on disk where there are many. They are looked at a range at a time, from all runs
at once: what is in memory is one range.
"""

from __future__ import annotations

import tempfile
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recipe.pools.blocks import DIGEST_BYTES, document_hash
from recipe.pools.lengths import body_lengths
from recipe.pools.pool import Pool
from recipe.pools.table import row_groups

CONTENT = np.dtype([("high", "<u8"), ("low", "<u8"), ("number", "<u8")])
"""A document's content: both halves of the hash of its body tokens, and its number."""

_HALVES = np.dtype([("high", "<u8"), ("low", "<u8")])

RANGE_DOCUMENTS = 1 << 18
"""Documents whose hashes are looked at together."""


class Equal(NamedTuple):
    """Documents that others equal: ``numbers[edges[k]:edges[k + 1]]`` are one text, rising."""

    numbers: NDArray[np.int64]
    edges: NDArray[np.int64]

    def sets(self) -> Iterator[list[int]]:
        """The documents of each text, of which there are two or more."""
        numbers, edges = self.numbers.tolist(), self.edges.tolist()
        for start, stop in pairwise(edges):
            yield numbers[start:stop]


def sorted_run(digests: Iterable[bytes] | NDArray[np.uint8], first: int = 0) -> NDArray[Any]:
    """CONTENT[n]: the digests (16 bytes each) of documents ``first``, ``first + 1``, …, in their order.

    >>> sorted_run([b"b" * 16, b"a" * 16])["number"].tolist()
    [1, 0]
    """
    data = digests if isinstance(digests, np.ndarray) else np.frombuffer(b"".join(digests), np.uint8)
    halves = data.reshape(-1, DIGEST_BYTES).view(">u8")
    order = np.lexsort((halves[:, 1], halves[:, 0]))
    run = np.empty(len(halves), CONTENT)
    run["high"], run["low"], run["number"] = halves[order, 0], halves[order, 1], first + order
    return run


def repeats_last(high: NDArray[Any], low: NDArray[Any]) -> NDArray[np.bool_]:
    """bool[n]: whether each hash is that of the one before it.

    >>> repeats_last(np.array([1, 1, 1]), np.array([5, 5, 6])).tolist()
    [False, True, False]
    """
    same = np.zeros(len(high), np.bool_)
    same[1:] = (high[1:] == high[:-1]) & (low[1:] == low[:-1])
    return same


def equal_documents(
    runs: Sequence[NDArray[Any]], bases: Sequence[int] | None = None, at_once: int = RANGE_DOCUMENTS
) -> Iterator[Equal]:
    """Every text that several documents have, a range of hashes at a time.

    Args:
        runs: sorted, of CONTENT or of a type with its fields.
        bases: added to the numbers of each run; default: nothing. They rise with the runs.
        at_once: documents in a range, about.
    """
    total = sum(map(len, runs))
    bits = max(0, (total // at_once).bit_length())
    for bucket in range(1 << bits):
        found = _equal([_part(run, bucket, bits) for run in runs], bases or [0] * len(runs))
        if len(found.numbers):
            yield found


def _part(run: NDArray[Any], bucket: int, bits: int) -> NDArray[Any]:
    """The documents of one range of hashes."""
    if not bits:
        return run
    high = run["high"]
    first, last = bisect_left(high, bucket << (64 - bits)), len(run)
    if bucket + 1 < 1 << bits:
        last = bisect_left(high, (bucket + 1) << (64 - bits))
    return run[first:last]


def _equal(parts: Sequence[NDArray[Any]], bases: Sequence[int]) -> Equal:
    high, low = (
        np.concatenate([*(part[name] for part in parts), np.zeros(0, "<u8")]) for name in ("high", "low")
    )
    order = np.lexsort((low, high))  # stable: of one content, rising numbers stay rising
    high, low = high[order], low[order]
    same = np.append(repeats_last(high, low), False)
    shared = same[:-1] | same[1:]
    pieces = [part["number"].astype(np.int64) + base for part, base in zip(parts, bases, strict=True)]
    numbers = np.concatenate([*pieces, np.zeros(0, np.int64)])[order[shared]]
    opens = np.flatnonzero(~same[:-1][shared])
    return Equal(numbers, np.append(opens, len(numbers)))


class Contents:
    """Hashes of all documents of some pools, numbered one pool after another; on disk, while it is open."""

    def __init__(self, pools: Sequence[Pool], folder: Path | None = None) -> None:
        """Hash or read every document; ``folder``: of the temporary file, 24 bytes a document."""
        self.pools = tuple(pools)
        self.bases: NDArray[np.int64] = np.cumsum([0, *(pool.num_numbers for pool in pools)])
        """int64[pools + 1]: the first document of each."""
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  closed by close
        self.runs = list(self._write())
        """Sorted, on disk."""

    def equal(self, at_once: int = RANGE_DOCUMENTS) -> Iterator[Equal]:
        """Every text that several documents have."""
        return equal_documents(self.runs, at_once=at_once)

    def pool_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[n]: the pools that documents are in."""
        found: NDArray[np.int64] = np.searchsorted(self.bases, numbers, side="right") - 1
        return found

    def lengths(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[n]: body tokens of documents."""
        pools, lengths = self.pool_of(numbers), np.zeros(len(numbers), np.int64)
        for index, pool in enumerate(self.pools):
            own = pools == index
            lengths[own] = body_lengths(pool, numbers[own] - self.bases[index])
        return lengths

    def close(self) -> None:
        """Remove the file."""
        self.runs = []
        self._file.close()

    def __enter__(self) -> Contents:
        """Itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    def _write(self) -> Iterator[NDArray[Any]]:
        counts, first = [], 0
        for pool in self.pools:
            for digests in _gathered(digests_of(pool)):
                run = sorted_run(digests, first)
                self._file.write(run.data)
                counts.append(len(run))
                first += len(run)
        self._file.flush()
        whole = np.asarray(np.memmap(self._file, CONTENT, "r")) if first else np.zeros(0, CONTENT)
        ends = np.cumsum(counts)
        yield from (whole[end - count : end] for count, end in zip(counts, ends, strict=True))


def folder_above(path: Path) -> Path:
    """The nearest folder above a path that is there: the disk on which it will be."""
    return next(folder for folder in path.absolute().parents if folder.is_dir())


def digests_of(pool: Pool) -> Iterator[NDArray[np.uint8]]:
    """uint8[n, 16]: hashes of the documents of a pool's folder, in order, in pieces.

    They are read from the document table, or computed from the tokens where there is none.
    """
    if pool.layout.table is None:
        for start in range(0, pool.num_numbers, 1 << 15):
            numbers = range(start, min(start + (1 << 15), pool.num_numbers))
            hashed = b"".join(bytes.fromhex(document_hash(pool.tokens(number))) for number in numbers)
            yield np.frombuffer(hashed, np.uint8).reshape(-1, DIGEST_BYTES)
        return
    for table in row_groups(pool.layout.table_file(), ["content_hash"]):
        yield _bytes_of(table["content_hash"])


def shared_documents(held: Pool, pool: Pool) -> int:
    """Documents of one pool whose body tokens another one holds too, whole; both with document tables.

    Memory: the hashes of ``held``; those of ``pool`` are read some at a time, 16 bytes a document.
    """
    wanted = np.concatenate([*_kept(held), np.zeros(0, _HALVES)])
    found = np.zeros(len(wanted), np.bool_)
    for hashes in _kept(pool):
        near = hashes[np.isin(hashes["high"], wanted["high"])]
        if len(near):
            both = set(near.tolist())
            for place in np.flatnonzero(np.isin(wanted["high"], near["high"])).tolist():
                found[place] |= wanted[place].item() in both
    return int(found.sum())


def _kept(pool: Pool) -> Iterator[NDArray[Any]]:
    """Hashes of the documents that a pool holds and that were not erased, some at a time."""
    first = 0
    for digests in digests_of(pool):
        numbers = np.arange(first, first + len(digests))
        kept = pool.holds(numbers) & ~np.isin(numbers, pool.erased)
        yield digests[kept].view(_HALVES).reshape(-1)
        first += len(digests)


def _bytes_of(column: pa.ChunkedArray) -> NDArray[np.uint8]:
    joined = column.combine_chunks()
    data = np.frombuffer(joined.buffers()[1], np.uint8)
    return data[joined.offset * DIGEST_BYTES :][: len(joined) * DIGEST_BYTES].reshape(-1, DIGEST_BYTES)


def _gathered(pieces: Iterable[NDArray[np.uint8]]) -> Iterator[NDArray[np.uint8]]:
    """The same hashes in larger pieces: fewer, longer runs."""
    waiting: list[NDArray[np.uint8]] = []
    for piece in pieces:
        waiting.append(piece)
        if sum(map(len, waiting)) >= RANGE_DOCUMENTS:
            yield np.concatenate(waiting)
            waiting = []
    if waiting:
        yield np.concatenate(waiting)
