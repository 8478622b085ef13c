"""The formats of a pool: each writes documents into a folder and says what its reader must know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib.format import write_array_header_1_0
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.integrations.exporting.pools_documents import Documents, Kind, table_of
from recipe.pools.blocks import raw_bytes
from recipe.pools.card import Card
from recipe.pools.megatron import write_index

PoolFormat = Literal["parquet", "megatron", "mds", "npy", "datatrove"]
POOL_FORMATS: tuple[PoolFormat, ...] = ("parquet", "megatron", "mds", "npy", "datatrove")
ROWS_NAME = "_rows.parquet"
"""Readers of a folder pass over names that begin so."""
_TABLE_DICTIONARIES = ["group", "tags", "source"]


@dataclass(frozen=True, kw_only=True)
class Ground:
    """What a format must know of a pool before its documents come."""

    card: Card
    dtype: np.dtype[Any]
    """Of stored tokens."""
    most_id: Callable[[], int | None]
    """The largest stored id; looked up, or searched for, when asked."""
    kinds: tuple[Kind, Kind]
    """Of ids and groups."""
    tokens_per_file: int


Facts = dict[str, Any]
Writer = Callable[[Path, Iterator[Documents], Ground], Facts]


def in_files(
    documents: Iterator[Documents], most: int, start: int = 0
) -> Iterator[tuple[int, Iterator[Documents]]]:
    """Stretches of documents by the file that they go to; a file has so many tokens, or one stretch."""
    number, filled = start, 0

    def place(stretch: Documents) -> int:
        nonlocal number, filled
        size = len(stretch.tokens)
        if filled and filled + size > most:
            number, filled = number + 1, 0
        filled += size
        return number

    yield from groupby(documents, key=place)


def write_parquet(folder: Path, documents: Iterator[Documents], ground: Ground) -> Facts:
    """A row a document: ``id``, ``group``, ``tags`` and ``source`` (JSON), ``input_ids``."""
    wide = ground.dtype.itemsize > 4 or ground.dtype == np.dtype("u4")
    ids = pa.int64() if wide else pa.int32()
    for number, stretches in in_files(documents, ground.tokens_per_file):
        writer: pq.ParquetWriter | None = None
        path = folder / f"documents-{number:05d}.parquet"
        try:
            for stretch in stretches:
                edges = np.concatenate([[0], np.cumsum(stretch.lengths)]).astype(np.int32)
                values = pa.array(np.asarray(stretch.tokens), type=ids)
                lists = pa.ListArray.from_arrays(pa.array(edges), values)
                table = table_of(stretch.rows, ground.kinds).append_column("input_ids", lists)
                writer = writer or _parquet(path, table.schema)
                writer.write_table(table, row_group_size=max(1, table.num_rows))
        finally:
            if writer is not None:
                writer.close()
    return {"dtype": "int64" if wide else "int32"}


def write_megatron(folder: Path, documents: Iterator[Documents], ground: Ground) -> Facts:
    """``tokens-00000.bin`` and ``.idx`` …: every document is one sequence, and one document of the index."""
    dtype = _for_megatron(ground)
    for number, stretches in in_files(documents, ground.tokens_per_file):
        lengths = list[NDArray[np.int32]]()
        with (folder / f"tokens-{number:05d}.bin").open("wb") as file:
            for stretch in stretches:
                file.write(raw_bytes(np.ascontiguousarray(stretch.tokens, dtype)))
                lengths.append(stretch.lengths.astype(np.int32))
        with (folder / f"tokens-{number:05d}.idx").open("wb") as file:
            write_index(file, np.concatenate(lengths), dtype)
    return {"dtype": dtype.name}


def write_npy(folder: Path, documents: Iterator[Documents], ground: Ground) -> Facts:
    """``tokens-00000.npy`` …, each with ``.offsets.npy``: int64[documents + 1], in its tokens."""
    places = np.dtype("<i8")
    for number, stretches in in_files(documents, ground.tokens_per_file):
        with (
            NpyFile(folder / f"tokens-{number:05d}.npy", ground.dtype) as tokens,
            NpyFile(folder / f"tokens-{number:05d}.offsets.npy", places) as offsets,
        ):
            offsets.write(np.zeros(1, places))
            for stretch in stretches:
                offsets.write(tokens.count + np.cumsum(stretch.lengths))
                tokens.write(stretch.tokens)
    return {"dtype": ground.dtype.name}


def write_datatrove(folder: Path, documents: Iterator[Documents], ground: Ground) -> Facts:
    """``00000_tokens.ds`` …, each with an ``.index`` (uint64 ends of documents) and ``.metadata``.

    Source:
        datatrove 0.10, ``TokenizedFile``: ids of two or four bytes, little-endian.
    """
    narrow = ground.dtype.itemsize <= 2
    dtype = np.dtype("<u2" if narrow else "<u4")
    for number, stretches in in_files(documents, ground.tokens_per_file):
        end, name = 0, f"{number:05d}_tokens.ds"
        with (folder / name).open("wb") as file, (folder / f"{name}.index").open("wb") as index:
            for stretch in stretches:
                file.write(raw_bytes(_unsigned(stretch.tokens, dtype)))
                index.write((end + np.cumsum(stretch.lengths)).astype("<u8").tobytes())
                end += len(stretch.tokens)
        tokenizer = f"{ground.card.tokenizer_name or 'Unknown Tokenizer'}|{dtype.itemsize}"
        (folder / f"{name}.metadata").write_text(f"{tokenizer}\n{end}\n{end} T", encoding="utf-8")
    return {"dtype": dtype.name, "token_size": dtype.itemsize}


def beside(folder: Path, documents: Iterator[Documents], kinds: Sequence[Kind]) -> Iterator[Documents]:
    """The documents, while ``_rows.parquet`` is written of what the token files cannot say of them."""
    writer: pq.ParquetWriter | None = None
    try:
        for stretch in documents:
            table = table_of(stretch.rows, kinds)
            writer = writer or _parquet(folder / ROWS_NAME, table.schema)
            writer.write_table(table, row_group_size=max(1, table.num_rows))
            yield stretch
    except BaseException:
        if writer is not None:
            with suppress(OSError):  # what went wrong first is told
                writer.close()
        raise
    if writer is not None:
        writer.close()


class NpyFile:
    """A one-dimensional ``.npy`` that grows; its header says how long it is when it is closed."""

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        """Nothing is written yet but room for the header."""
        self._dtype, self.count = dtype.newbyteorder("<"), 0
        """Values written so far."""
        self._file: BinaryIO = path.open("wb")
        self._header()
        self._start = self._file.tell()

    def write(self, values: NDArray[Any]) -> None:
        """More of it."""
        self._file.write(raw_bytes(np.ascontiguousarray(values, self._dtype)))
        self.count += len(values)

    def _header(self) -> None:
        descr = np.lib.format.dtype_to_descr(self._dtype)
        about = {"descr": descr, "fortran_order": False, "shape": (self.count,)}
        write_array_header_1_0(self._file, about)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """State the length; a header has room for any."""
        try:
            if error is None:
                self._file.seek(0)
                self._header()
                assert self._file.tell() == self._start, "NumPy leaves room for a growing axis"
        finally:
            self._file.close()


def _parquet(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=_TABLE_DICTIONARIES)


def _for_megatron(ground: Ground) -> np.dtype[Any]:
    """The type kept; Megatron has no unsigned one of four or eight bytes."""
    if ground.dtype.kind != "u" or ground.dtype.itemsize < 4:
        return ground.dtype
    most = ground.most_id()
    return np.dtype("<i4" if ground.dtype.itemsize == 4 and most is not None and most < 1 << 31 else "<i8")


def _unsigned(tokens: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Ids as datatrove has them.

    Raises:
        RecipeError: one that does not fit.
    """
    kind = tokens.dtype
    fits = kind.kind == "u" and kind.itemsize <= dtype.itemsize
    if not fits and len(tokens) and not 0 <= tokens.min() <= tokens.max() <= np.iinfo(dtype).max:
        raise RecipeError.single(
            "recipe export", "--format", given=f"datatrove; ids {tokens.min()} to {tokens.max()}",
            expected=f"ids in 0..{np.iinfo(dtype).max}", fix="choose --format megatron, npy or parquet",
        )  # fmt: skip
    return np.ascontiguousarray(tokens, dtype)
