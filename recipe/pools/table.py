"""The document table of a pool: one row a document, in Parquet, read a row group at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.blocks import document_hash
from recipe.pools.spelling import spell, spelled
from recipe.pools.stored_texts import MANUAL, SPELLED, restored, stored_fields, stored_names

ROW_GROUP = 1 << 15
_CACHED_GROUPS = 64
DICTIONARY_BYTES = 1 << 17
"""A dictionary with more holds texts of which most documents have their own: they are written as they are."""

SCHEMA = pa.schema(
    [
        ("id_int", pa.int64()),
        ("id_str", pa.string()),
        ("part", pa.int32()),
        ("tokens", pa.int32()),
        ("group_int", pa.int64()),
        ("group_str", pa.string()),
        ("tags", pa.string()),
        ("source", pa.string()),
        ("content_hash", pa.binary(16)),
    ]
)
"""An id or group is a whole number or a text and stays what it was; tags and source are JSON."""
STORED = pa.schema([*SCHEMA, *stored_fields()], metadata={"texts": MANUAL})
"""Columns of the file; see `recipe.pools.stored_texts`. Files of older pools have those of ``SCHEMA``."""
_FORMS = [f"{name}_form" for name in SPELLED]
_WHOLE_NUMBERS = ["id_int", "tokens", "group_int", *(f"{name}_number" for name in SPELLED)]


@dataclass(frozen=True, slots=True)
class Row:
    """What the table says of one document."""

    document: int
    id: int | str
    part: str
    tokens: int
    """Body tokens."""
    group: int | str | None
    tags: Mapping[str, Any]
    source: Any
    content_hash: str
    """Hash of the body tokens; equal in pools of any token width."""


class TableWriter:
    """Writes a document table, a row group at a time; closed when it is left."""

    def __init__(self, path: Path) -> None:
        """Begin the file: zstd, dictionaries where values repeat.

        Texts that are all different, in no order, would take two bytes a document beside themselves in a
        dictionary. The bytes of numbers stand apart, those of one place together: the high ones are alike,
        and so is what UUIDs say of their version. From such levels on zstd looks for where one place ends.
        """
        self._file = pq.ParquetWriter(
            path, STORED, compression="zstd", use_dictionary=["tags", *_FORMS],
            dictionary_pagesize_limit=DICTIONARY_BYTES,
            write_statistics=["id_int", "id_str", "id_str_form", "id_str_number"],
            column_encoding=dict.fromkeys(_WHOLE_NUMBERS, "BYTE_STREAM_SPLIT")
            | {f"{name}_bytes": "DELTA_LENGTH_BYTE_ARRAY" for name in SPELLED}
            | {f"{name}_bytes16": "BYTE_STREAM_SPLIT" for name in SPELLED}
            | {"id_str": "DELTA_BYTE_ARRAY"},
            compression_level={"tokens": 13} | {f"{name}_bytes16": 17 for name in SPELLED},
        )  # fmt: skip

    def write(self, rows: pa.Table) -> None:
        """Write a row group."""
        self._file.write_table(spelled(rows, STORED), row_group_size=rows.num_rows)

    def __enter__(self) -> TableWriter:
        """Itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close the file."""
        self._file.close()


def open_rows(path: Path) -> pq.ParquetWriter:
    """A writer of the rows of one part, which are there until the table of the pool is made of them."""
    return pq.ParquetWriter(
        path, SCHEMA, compression="zstd", use_dictionary=["group_int", "group_str", "tags"]
    )


def row_groups(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The row groups of a table, one after another; empty ones are left out.

    Raises:
        RecipeError: what is there is no table, or a damaged one.
    """
    with _told(path), pq.ParquetFile(path) as file:
        for index in range(file.num_row_groups):
            table = _read(file, index, SCHEMA.names if columns is None else columns)
            if table.num_rows:
                yield restored(table, SCHEMA.names if columns is None else columns)


def _read(file: pq.ParquetFile, group: int, columns: Sequence[str]) -> pa.Table:
    """A row group as it is stored."""
    there = set(file.schema_arrow.names)
    wanted = [name for name in stored_names(columns) if name in there]
    return file.read_row_group(group, columns=wanted, use_threads=False)


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """What reads Parquet says of a damaged file, as a fault of that file; one that is not there stays so."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        told = " ".join(str(error).split())
        raise RecipeError.single(
            str(path.parent), str(path), given=f"no table that can be read ({told:.120})",
            expected="the document table as it was written",
            fix="copy the file again from where it is whole, or prepare the pool again",
        ) from error  # fmt: skip


def regrouped(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of ``ROW_GROUP`` rows, the last one shorter."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(part.num_rows for part in waiting) < ROW_GROUP:
            continue
        rows = pa.concat_tables(waiting).combine_chunks()
        whole = rows.num_rows - rows.num_rows % ROW_GROUP
        yield from (rows.slice(start, ROW_GROUP) for start in range(0, whole, ROW_GROUP))
        waiting = [rows.slice(whole)]
    rest = pa.concat_tables(waiting).combine_chunks() if waiting else SCHEMA.empty_table()
    if rest.num_rows:
        yield rest


def either(table: pa.Table, name: str) -> list[Any]:
    """Ids or groups of a table, each of its own type; None where neither is set."""
    ints, texts = table[f"{name}_int"], table[f"{name}_str"]
    if texts.null_count == table.num_rows:
        return list(ints.to_pylist())
    if ints.null_count == table.num_rows:
        return list(texts.to_pylist())
    return [
        text if number is None else number
        for number, text in zip(ints.to_pylist(), texts.to_pylist(), strict=True)
    ]


class DocumentTable:
    """A table on disk; opened when first asked, usable from several threads and after a fork."""

    def __init__(self, path: Path) -> None:
        """The table at ``path``."""
        self._path = path
        self._metadata: pq.FileMetaData | None = None
        self._columns: dict[str, int] = {}
        self._starts: NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        self._cache: dict[tuple[int, tuple[str, ...]], pa.Table] = {}

    def read(self, documents: NDArray[np.int64], columns: Sequence[str]) -> pa.Table:
        """Rows of the documents, in the order given; only their row groups are read."""
        if not len(documents):
            return SCHEMA.empty_table().select(list(columns))
        self._open()
        groups = np.searchsorted(self._starts, documents, side="right") - 1
        order = np.argsort(groups, kind="stable")
        found, cuts = np.unique(groups[order], return_index=True)
        pieces = []
        for group, members in zip(found.tolist(), np.split(order, cuts[1:]), strict=True):
            table = self._group(group, tuple(columns))
            taken = table.take(pa.array(documents[members] - self._starts[group]))
            with _told(self._path):
                pieces.append(restored(taken, columns))
        back = np.empty(len(order), dtype=np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_tables(pieces).take(pa.array(back))

    def find(self, wanted: int | str) -> int | None:
        """Number of the document with this id; None if there is none."""
        self._open()
        ways = _ways(wanted, set(self._columns))
        for group in range(len(self._starts) - 1):
            near = [way for way in ways if self._may_hold(group, way)]
            if not near:
                continue
            rows = self._group(group, ("id_int", "id_str"))
            for way in near:
                if (at := _first(rows, way)) is not None:
                    return int(self._starts[group]) + at
        return None

    @property
    def num_rows(self) -> int:
        """Documents in the table."""
        self._open()
        return int(self._starts[-1])

    def _open(self) -> None:
        if self._metadata is not None:
            return
        with _told(self._path):
            metadata = pq.read_metadata(self._path)
        counts = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
        self._starts = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]).astype(np.int64)
        self._columns = {name: at for at, name in enumerate(metadata.schema.names)}
        self._metadata = metadata

    def _group(self, group: int, columns: tuple[str, ...]) -> pa.Table:
        key = (group, columns)
        table = self._cache.get(key)
        if table is None:
            with _told(self._path), pq.ParquetFile(self._path, metadata=self._metadata) as file:
                table = _read(file, group, columns)
            if len(self._cache) >= _CACHED_GROUPS:
                # a new dictionary: another thread may be looking at this one
                self._cache = {}
            self._cache[key] = table
        return table

    def _may_hold(self, group: int, way: Mapping[str, Any]) -> bool:
        """Whether least and greatest values of the row group leave room for an id."""
        assert self._metadata is not None
        row_group = self._metadata.row_group(group)
        for name, value in way.items():
            statistics = row_group.column(self._columns[name]).statistics
            known = statistics is not None and statistics.has_min_max
            if value is not None and known and not statistics.min <= value <= statistics.max:
                return False
        return True


def _ways(wanted: int | str, there: set[str]) -> list[dict[str, Any]]:
    """How an id may stand in a file with such columns: as it is, or by its form."""
    if not isinstance(wanted, str):
        return [{"id_int": wanted}]
    form = {f"id_str_{name}": value[0].as_py() for name, value in spell(pa.array([wanted])).items()}
    return [{"id_str": wanted}, *([form] if form["id_str_form"] is not None and there >= set(form) else [])]


def _first(rows: pa.Table, way: Mapping[str, Any]) -> int | None:
    """The first row with these values; null is a value, too."""
    found: Any = True
    for name, value in way.items():
        column = rows[name]
        found = pc.and_(found, column.is_null() if value is None else pc.equal(column, value))
    at = pc.index(found, True).as_py()
    return None if at < 0 else int(at)


def rows_from(table: pa.Table, documents: Sequence[int], part_names: Sequence[str]) -> list[Row]:
    """Rows of a full table as values."""
    plain = [table[name].to_pylist() for name in ("part", "tokens", "tags", "source", "content_hash")]
    columns = zip(documents, either(table, "id"), either(table, "group"), *plain, strict=True)
    return [
        Row(
            int(number), key, part_names[part], tokens, group,
            json.loads(tags) if tags else {}, json.loads(source) if source else None, digest.hex(),
        )
        for number, key, group, part, tokens, tags, source, digest in columns
    ]  # fmt: skip


def row_of(document: int, part: str, body: NDArray[Any]) -> Row:
    """The row of a document whose pool has no table: its number is its id, its tokens are all there is."""
    return Row(document, document, part, len(body), None, {}, None, document_hash(body))
