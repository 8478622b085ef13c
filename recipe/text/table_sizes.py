"""What a table takes in memory at once: its pages, or compressed batches, can only be decoded whole."""

from __future__ import annotations

import mmap
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from recipe.text.sources import ReadOptions

_HEADER_BYTES = 1 << 16
_SIZE, _STORED = 2, 3
"""Fields of a page's header: bytes of the page in memory, and in the file."""
_SCALARS = {1: 0, 2: 0, 3: 1, 7: 8}
"""Bytes of values of Thrift's compact protocol: true and false, a byte, a double."""
_INTEGERS, _BINARY, _LISTS, _STRUCT = (4, 5, 6), 8, (9, 10), 12


def most_together(options: ReadOptions) -> int:
    """Bytes of a page or batch that are decoded together: the longest text there may be, and others."""
    longest = max(ReadOptions().max_line_bytes, options.max_line_bytes)
    return longest + longest // 4


def large_page(file: pq.ParquetFile, path: Path, columns: Collection[str], most: int) -> int:
    """Bytes of a page of some columns that has more than ``most``; 0: there is none."""
    with path.open("rb") as stored:
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            for place in range(group.num_columns):
                chunk = group.column(place)
                is_read = any(f"{chunk.path_in_schema}.".startswith(f"{name}.") for name in columns)
                if is_read and chunk.total_uncompressed_size > most:
                    size = max(_pages(stored, chunk), default=0)
                    if size > most:
                        return size
    return 0


def _pages(stored: IO[bytes], chunk: Any) -> Iterator[int]:
    """Bytes of each page; of the whole chunk, where a header is not to be read."""
    at = chunk.data_page_offset
    if chunk.dictionary_page_offset:
        at = min(at, chunk.dictionary_page_offset)
    stop = at + chunk.total_compressed_size
    while at < stop:
        stored.seek(at)
        try:
            found, length = page_header(stored.read(_HEADER_BYTES))
            yield found[_SIZE]
            at += length + found[_STORED]
        except (IndexError, KeyError):
            yield chunk.total_uncompressed_size
            return


def page_header(data: bytes) -> tuple[dict[int, int], int]:
    """Whole numbers of a Parquet page's header by field, and its length, by Thrift's compact protocol.

    Raises:
        IndexError, KeyError: it is longer than ``data``, or none.

    Source:
        Apache Thrift, *Thrift Compact protocol encoding*; Apache Parquet, ``parquet.thrift``.

    >>> page_header(bytes([0x15, 0x00, 0x15, 0xC8, 0x01, 0x15, 0x50, 0x00]))
    ({1: 0, 2: 100, 3: 40}, 8)
    """
    found: dict[int, int] = {}
    at, number = 0, 0
    while kind := data[at]:
        at += 1
        number += kind >> 4
        if not kind >> 4:
            number, at = _integer(data, at)
        if kind & 15 in _INTEGERS:
            found[number], at = _integer(data, at)
        else:
            at = _behind(data, at, kind & 15)
    return found, at + 1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value, at


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return value >> 1 ^ -(value & 1), at


def _behind(data: bytes, at: int, kind: int) -> int:
    """The place behind a value."""
    if kind in _INTEGERS:
        return _varint(data, at)[1]
    if kind == _BINARY:
        length, at = _varint(data, at)
        return at + length
    if kind in _LISTS:
        count, inner = data[at] >> 4, data[at] & 15
        count, at = _varint(data, at + 1) if count == 15 else (count, at + 1)
        for _ in range(count):
            at = at + 1 if inner in (1, 2) else _behind(data, at, inner)
        return at
    if kind == _STRUCT:
        return at + page_header(data[at:])[1]
    return at + _SCALARS[kind]


def large_batch(mapped: mmap.mmap, start: int, most: int) -> int:
    """Bytes, decompressed, of a compressed batch of an Arrow file that has more than ``most``, or 0."""
    reader = pa.BufferReader(pa.py_buffer(mapped))
    reader.seek(start)
    with suppress(pa.ArrowInvalid, IndexError):  # whoever reads the batches says what is wrong with them
        for message in pa.ipc.MessageReader.open_stream(reader):
            if message.type in ("record batch", "dictionary") and message.body is not None:
                size = _decompressed(memoryview(message.metadata), memoryview(message.body))
                if size > most:
                    return size
    return 0


def _decompressed(head: memoryview, body: memoryview) -> int:
    """Bytes of the buffers of a message after decompression; 0 where they are not compressed.

    Source:
        Apache Arrow, ``Message.fbs`` and the format's *Serialization and Interprocess Communication*.
    """
    table = _at(head, _number(head, 0, 4), 2)
    if head[_at(head, _number(head, 0, 4), 1)] == 2:  # a dictionary: the batch is its second field
        table = _follow(head, _at(head, _follow(head, table), 1))
    else:
        table = _follow(head, table)
    if not _at(head, table, 3):
        return 0
    buffers = _follow(head, _at(head, table, 2))
    total = 0
    for number in range(min(_number(head, buffers, 4), len(head) // 16)):
        offset = _number(head, buffers + 4 + 16 * number, 8)
        if _number(head, buffers + 12 + 16 * number, 8) >= 8:
            total += max(0, int.from_bytes(body[offset : offset + 8], "little", signed=True))
    return total


def _at(data: memoryview, table: int, field: int) -> int:
    """Place of a field of a FlatBuffers table; 0: it has none."""
    rules = table - int.from_bytes(data[table : table + 4], "little", signed=True)
    if _number(data, rules, 2) <= 4 + 2 * field:
        return 0
    offset = _number(data, rules + 4 + 2 * field, 2)
    return table + offset if offset else 0


def _follow(data: memoryview, at: int) -> int:
    return at + _number(data, at, 4)


def _number(data: memoryview, at: int, width: int) -> int:
    return int.from_bytes(data[at : at + width], "little")
