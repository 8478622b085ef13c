"""Columns of ids in Arrow files that are not compressed: mapped where they lie, a part for each batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recipe.pools.foreign.lists_of_ids import Rows, rows_of
from recipe.pools.foreign.token_file import TokenFile

_MOST_BATCHES = 1 << 12
"""Of a file: with more of them parts are so many, and so small, that they are rather decoded into one."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The ids of one batch of rows, as they lie in the file."""

    path: Path
    column: str
    number: int
    count: int
    dtype: np.dtype[Any]

    def map(self) -> NDArray[Any]:
        """The ids, mapped."""
        ids: NDArray[Any] = _lists_of(self.path, self.column)[self.number].flatten().to_numpy()
        return ids

    def ends(self) -> NDArray[np.int64]:
        """int64[rows]: where each row ends."""
        return np.cumsum(self.rows().lengths, dtype=np.int64)

    def rows(self) -> Rows:
        """All rows, as they are."""
        return rows_of(self.path, _lists_of(self.path, self.column)[self.number], (self.column, 0))


def mapped_batches(path: Path, column: str, dtype: np.dtype[Any]) -> list[TokenFile] | None:
    """The batches of an Arrow file as parts; None where they cannot be mapped as ids of this type.

    Raises:
        RecipeError: rows without a list, or lists without an id.
    """
    data, batches = _read(path, column)
    if not 0 < len(batches) <= _MOST_BATCHES:
        return None
    parts, first = [], 0
    for number, lists in enumerate(batches):
        values = rows_of(path, lists, (column, first)).ids
        first += len(lists)
        address = values.__array_interface__["data"][0]
        inside = data.address <= address < data.address + data.size
        if not len(values) or values.dtype != dtype or not inside or address % dtype.itemsize:
            return None
        batch = Batch(path, column, number, len(values), dtype)
        parts.append(
            TokenFile(
                files=(path,),
                tokens=batch,
                num_documents=len(lists),
                ends=batch.ends,
                label=f" batch {number}" if len(batches) > 1 else "",
                rule=("batch", column, number),
            )
        )
    return parts


def _lists_of(path: Path, column: str) -> tuple[Any, ...]:
    state = path.stat()
    return _kept(path, column, (state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=256)
def _kept(path: Path, column: str, state: tuple[int, int]) -> tuple[Any, ...]:
    return _read(path, column)[1]


def _read(path: Path, column: str) -> tuple[Any, tuple[Any, ...]]:
    """The mapped file, and the column of each of its batches: heads are read, no ids."""
    with pa.memory_map(str(path)) as source:
        data = source.read_buffer()
    batches = batches_of(open_arrow(pa.BufferReader(data)))
    return data, tuple(batch.column(column) for batch in batches)


def open_arrow(source: Any) -> Any:
    """What reads an Arrow file, or a stream, by its head."""
    magic = source.read(6)
    source.seek(0)
    return pa.ipc.open_file(source) if magic == b"ARROW1" else pa.ipc.open_stream(source)


def batches_of(reader: Any) -> Iterator[pa.RecordBatch]:
    """Its batches, one after another."""
    if isinstance(reader, pa.RecordBatchStreamReader):
        yield from reader
    else:
        yield from map(reader.get_batch, range(reader.num_record_batches))
