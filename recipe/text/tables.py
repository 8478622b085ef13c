"""Rows of Parquet and Arrow files, one by one, in memory that does not grow with a row group."""

from __future__ import annotations

import datetime
import mmap
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet as pq

from recipe.text.records import Raw, listed_keys
from recipe.text.sources import ReadOptions, SourceFile
from recipe.text.streams import TruncatedError, local_file
from recipe.text.table_sizes import large_batch, large_page, most_together

#: Rows decoded at once: a few of the longest texts there are must fit into memory together.
MOST_ROWS = 32
#: Stored bytes of text that are decoded at once, where rows are long.
SLICE_BYTES = 4 << 20
#: Of an Arrow file, so much that was read is kept in memory.
MAPPED_BYTES = 32 << 20
#: Of a column chunk that is read, so much is in memory besides its page.
BUFFER_BYTES = 1 << 20

ARROW_MAGIC = b"ARROW1"
END_OF_STREAM = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def raw_rows(
    index: int,
    file: SourceFile,
    options: ReadOptions,
    digest: Any = None,
    wanted: Collection[int] | None = None,
) -> Iterator[Raw]:
    """The rows of a table; ``line`` counts them from 1.

    Args:
        index: of the file, for the records.
        file: a Parquet or Arrow file (in either of Arrow's two formats).
        options: keys of text, id, group, tags, sections; other columns are not read.
        digest: fed the stored bytes.
        wanted: rows that are given, from 1; None: all. Row groups without any are not decoded.
    """
    row = 0
    with local_file(file.path, digest) as path:
        if path.stat().st_size == 0:
            yield Raw(index, None, b"", "empty_file", "a table; the file has no byte")
            return
        opened = _parquet_slices if file.kind == "parquet" else _arrow_slices
        try:
            with _faults():
                for some in opened(path, options, wanted):
                    for row, raw in enumerate(_rows(index, some, options), start=some.start + 1):
                        if wanted is None or row in wanted:
                            yield raw
        except TruncatedError as error:
            yield Raw(index, row + 1, b"", "truncated", f"a table that is whole: {error}")
        except _TooLargeError as error:
            yield Raw(index, None, b"", "too_long", str(error))


@contextmanager
def _faults() -> Iterator[None]:
    """What pyarrow says of a damaged file, as one exception; a fault of disk or memory stays what it is."""
    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno is not None):
            raise
        raise TruncatedError(" ".join(str(error).split())[:300]) from error


class _TooLargeError(Exception):
    """What is decoded whole takes too much memory: the table is not read."""

    @classmethod
    def of(cls, what: str, size: int, options: ReadOptions) -> _TooLargeError:
        needed = -(-size * 4 // 5)
        return cls(
            f"at most {most_together(options):,} bytes in a {what}, which is decoded whole; one has "
            f"{size:,}: write the table in smaller ones, or read it with --max-line-bytes {needed}"
        )


@dataclass(frozen=True, slots=True)
class _Some:
    """Some rows."""

    start: int
    """First of them, from 0."""
    batch: pa.RecordBatch
    schema: pa.Schema
    """All columns of the file."""


def _parquet_slices(path: Path, options: ReadOptions, wanted: Collection[int] | None) -> Iterator[_Some]:
    # Pages are read as they are needed: pre_buffer would hold all of a row group.
    with pq.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
        keys = _found_keys(file.schema_arrow, options)
        columns = [".".join(steps) for steps in keys.values()]
        if size := large_page(file, path, columns, most_together(options)):
            raise _TooLargeError.of("page", size, options)
        start = 0
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            rows = range(start, start + group.num_rows)
            start += group.num_rows
            if wanted is not None and not any(row - 1 in rows for row in wanted):
                continue
            at = rows.start
            size = min(MOST_ROWS, max(1, SLICE_BYTES * len(rows) // max(1, group.total_byte_size)))
            for batch in file.iter_batches(size, row_groups=[number], columns=columns, use_threads=False):
                yield _Some(at, batch, file.schema_arrow)
                at += batch.num_rows
            if at != rows.stop:
                raise TruncatedError(f"row group {number} states {len(rows)} rows and has {at - rows.start}")


def _arrow_slices(path: Path, options: ReadOptions, wanted: Collection[int] | None) -> Iterator[_Some]:
    """Batches are mapped, not read: a batch as large as the file takes no memory but what is looked at."""
    start = seen = 0
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # unmapped with the last batch
    begin = 8 if mapped[: len(ARROW_MAGIC)] == ARROW_MAGIC else 0
    if size := large_batch(mapped, begin, most_together(options)):
        raise _TooLargeError.of("compressed batch", size, options)
    for batch in _arrow_batches(pa.BufferReader(pa.py_buffer(mapped))):
        rows = range(start, start + batch.num_rows)
        start += batch.num_rows
        if wanted is None or any(row - 1 in rows for row in wanted):
            for at in range(0, batch.num_rows, MOST_ROWS):
                some = batch.slice(at, MOST_ROWS)
                yield _Some(rows.start + at, some, batch.schema)
                seen += some.nbytes
                if seen > MAPPED_BYTES:
                    mapped.madvise(mmap.MADV_DONTNEED)  # pages that were read are no longer this process's
                    seen = 0


def _arrow_batches(source: Any) -> Iterator[pa.RecordBatch]:
    magic = source.read(len(ARROW_MAGIC))
    if magic == ARROW_MAGIC:
        source.seek(0)
        file = pa.ipc.open_file(source)
        yield from (file.get_batch(number) for number in range(file.num_record_batches))
        return
    # A stream may end where its bytes end, so that one cut between two batches would seem whole.
    source.seek(max(0, source.size() - len(END_OF_STREAM)))
    if not source.read().endswith(END_OF_STREAM):
        raise TruncatedError("an Arrow stream without its end mark")
    source.seek(0)
    with pa.ipc.open_stream(source) as stream:
        yield from stream


@dataclass(frozen=True, slots=True)
class _Texts:
    """The text column of some rows."""

    values: Iterable[bytes | None]
    fault: str | None = None
    """Why no row has a text."""
    detail: str = ""


def _rows(index: int, some: _Some, options: ReadOptions) -> Iterator[Raw]:
    batch = some.batch
    keys = _found_keys(batch.schema, options)
    texts = _texts(some, keys.get(options.text_key), options)
    has_id = options.id_key is None or options.place_ids or options.id_key in keys
    no_id = "" if has_id else _missing(some.schema, str(options.id_key))
    fields = {key: _values(_column(batch, steps)) for key, steps in keys.items() if key != options.text_key}
    for at, text in enumerate(texts.values):
        line = some.start + at + 1
        bad = next((key for key, values in fields.items() if values[at] is _BAD), None)
        if texts.fault is not None:
            yield Raw(index, line, b"", texts.fault, texts.detail)
        elif no_id:
            yield Raw(index, line, b"", "bad_id", no_id)
        elif text is None:
            yield Raw(index, line, b"", "text_not_text", f"text in {options.text_key!r}, not null")
        elif len(text) > options.max_line_bytes:
            yield Raw(index, line, text[:1024], "too_long", f"at most {options.max_line_bytes:,} bytes")
        elif bad is not None:
            yield Raw(index, line, text[:1024], "invalid_utf8", f"UTF-8 text in {bad!r}")
        else:
            yield Raw(index, line, text, fields={key: values[at] for key, values in fields.items()})


def _texts(some: _Some, steps: list[str] | None, options: ReadOptions) -> _Texts:
    """Texts as bytes: whether they are UTF-8 is looked at row by row, later."""
    nothing: list[bytes | None] = [None] * some.batch.num_rows
    key = options.text_key
    if steps is None:
        return _Texts(nothing, "text_missing", _missing(some.schema, key))
    column = _column(some.batch, steps)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if pa.types.is_null(kind):
        return _Texts(nothing)
    for is_text, as_bytes in _BYTES_OF:
        if is_text(kind):
            column = column.cast(as_bytes)
            _check(column)
            # One after the other where they are long: all of them would be in memory twice.
            is_long = column.nbytes >= SLICE_BYTES
            return _Texts(_one_by_one(column, options.max_line_bytes) if is_long else column.to_pylist())
    inside = ""
    if pa.types.is_struct(kind):
        inside = f"; {listed_keys((field.name for field in kind.fields), f'{key}.', 'columns')}"
    return _Texts(nothing, "text_not_text", f"text in {key!r}, not {'an object' if inside else kind}{inside}")


def _one_by_one(column: Any, most: int) -> Iterator[bytes | None]:
    """Texts, of a longer one a byte more than ``most``; a scalar of Arrow's would be a copy more."""
    if pa.types.is_binary_view(column.type):
        yield from (one.as_py() for one in column)
        return
    valid, kind = column.is_valid(), np.int64 if pa.types.is_large_binary(column.type) else np.int32
    _, offsets, data = column.buffers()
    places = np.frombuffer(offsets, kind, len(column) + 1, column.offset * np.dtype(kind).itemsize)
    for is_there, start, stop in zip(valid.to_pylist(), places.tolist(), places[1:].tolist(), strict=False):
        yield data.slice(start, min(stop - start, most + 1)).to_pybytes() if is_there else None


def _missing(schema: pa.Schema, key: str) -> str:
    """A column that is not there, and those beside it."""
    before, fields = "", {field.name: field.type for field in schema}
    for head in key.split(".")[:-1]:
        if head not in fields or not pa.types.is_struct(fields[head]):
            break
        before, fields = f"{before}{head}.", {field.name: field.type for field in fields[head].fields}
    return f"a column {key!r}; {listed_keys(fields, before, 'columns')}"


_BYTES_OF = (
    (pa.types.is_string, pa.binary()),
    (pa.types.is_large_string, pa.large_binary()),
    (pa.types.is_string_view, pa.binary_view()),
    (pa.types.is_binary, pa.binary()),
    (pa.types.is_large_binary, pa.large_binary()),
    (pa.types.is_binary_view, pa.binary_view()),
)
"""Types of text; bytes without a type, as older writers leave them, are text if they are UTF-8."""


def _column(batch: pa.RecordBatch, steps: list[str]) -> Any:
    column = batch.column(steps[0])
    for name in steps[1:]:
        column = pc.struct_field(column, name)
    return column


class _Bad:
    """Stands for a value that is no text."""


_BAD = _Bad()


def _check(column: Any) -> None:
    """Refuse a damaged column: its offsets would lead anywhere in memory.

    Raises:
        TruncatedError: it is damaged; text that is no UTF-8 is no damage.
    """
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise TruncatedError(" ".join(str(error).split())[:300]) from error


def _values(column: Any) -> list[Any]:
    _check(column)
    try:
        return [_plain(value) for value in column.to_pylist()]
    except UnicodeDecodeError:
        return [_value(scalar) for scalar in column]


def _value(scalar: Any) -> Any:
    try:
        return _plain(scalar.as_py())
    except UnicodeDecodeError:
        return _BAD


def _plain(value: Any) -> Any:
    """Dates and times become ISO text, as they are in JSON."""
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _found_keys(schema: pa.Schema, options: ReadOptions) -> dict[str, list[str]]:
    """Keys that are asked for and are there, each with its steps from column to field."""
    keys = [options.text_key, options.group_key, options.units_key, *options.tag_keys]
    keys += [] if options.place_ids else [options.id_key or "id"]
    fields = {field.name: field.type for field in schema}
    found = {key: _steps(fields, key) for key in keys if key is not None}
    return {key: steps for key, steps in found.items() if steps is not None}


def _steps(fields: Mapping[str, Any], key: str) -> list[str] | None:
    """``a.b`` is the column of that name, or the field ``b`` of the column ``a``."""
    if key in fields:
        return [key]
    head, dot, rest = key.partition(".")
    inner = fields.get(head)
    if not dot or inner is None or not pa.types.is_struct(inner):
        return None
    below = _steps({field.name: field.type for field in inner.fields}, rest)
    return None if below is None else [head, *below]
