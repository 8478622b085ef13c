"""Columns of token ids in Parquet files and in Arrow files, as Hugging Face ``datasets`` writes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from recipe.pools.card import Marks
from recipe.pools.foreign.batches import batches_of, mapped_batches, open_arrow
from recipe.pools.foreign.decoded import Encoded, decode, kept_type
from recipe.pools.foreign.form import Form, token_type
from recipe.pools.foreign.lists_of_ids import Rows, rows_of
from recipe.pools.foreign.token_file import TokenFile, refuse

ENDINGS = (".parquet", ".arrow")
STATES = ("state.json", "dataset_info.json")
"""What ``datasets`` writes beside its Arrow files: which there are, in which order, and of what."""
_ROWS = 1024
_IDS = 1 << 22
"""Ids that are in memory at a time, about."""


def read_column(path: Path, form: Form, marks: Marks) -> list[TokenFile]:
    """A table's column of lists of ids; each row is a document, unless the recipe says otherwise.

    Raises:
        RecipeError: no such column, several that may be meant, no integers, or rows without a list.
    """
    with _told(path):
        schema = _schema(path)
    name = _column(path, schema, form)
    value = schema.field(name).type.value_type
    if not pa.types.is_integer(value):
        raise refuse(path, given=f"column {name} of lists of {value}", expected="lists of whole numbers",
                     fix="name the column with the ids: column: NAME")  # fmt: skip
    is_mapped = form.documents in (None, "row") and form.boundaries is None and not _is_parquet(path)
    # where batches are mapped, those that cannot be have the type of those that can
    dtype = token_type(kept_type(str(value), form, halve=not is_mapped))

    def rows() -> Iterator[Rows]:
        first = 0
        with _told(path):
            for lists in _batches(path, name):
                yield rows_of(path, lists, (name, first))
                first += len(lists)

    described = tuple(file for file in (path.with_name(known) for known in STATES) if file.is_file())
    if is_mapped:
        with _told(path):
            batches = mapped_batches(path, name, dtype)
        if batches is not None:
            return [replace(batch, beside=described) for batch in batches]
    return [decode(Encoded(path, (path,), dtype, ("column", name), rows, described), form, marks)]


def _schema(path: Path) -> pa.Schema:
    if _is_parquet(path):
        return pq.read_schema(path)
    with pa.memory_map(str(path)) as source:
        return open_arrow(source).schema


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def _column(path: Path, schema: pa.Schema, form: Form) -> str:
    lists = [field.name for field in schema if _is_list(field.type)]
    if form.column is not None:
        if form.column in lists:
            return form.column
        given = (
            f"a column {form.column} of {schema.field(form.column).type}"
            if form.column in schema.names
            else f"no column {form.column}"
        )
        raise refuse(path, given=given, expected=f"a column of lists: {', '.join(lists) or 'there is none'}",
                     fix=f"write column: {lists[0]}" if lists else "name files with token ids")  # fmt: skip
    whole = [name for name in lists if pa.types.is_integer(schema.field(name).type.value_type)]
    if len(whole) == 1:
        return str(whole[0])
    if not whole:
        raise refuse(path, given=f"columns {', '.join(schema.names)}", expected="a column of lists of ids",
                     fix="prepare the texts (recipe prepare), or name files with token ids")  # fmt: skip
    likely = "input_ids" if "input_ids" in whole else whole[0]
    raise refuse(path, given=f"columns {', '.join(whole)}, each of lists of numbers",
                 expected="one column of token ids", fix=f"say which: column: {likely}")  # fmt: skip


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _batches(path: Path, name: str) -> Iterator[pa.Array]:
    if _is_parquet(path):
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_rows_at_once(file.metadata, name), columns=[name]):
                yield batch.column(0)
        return
    with pa.memory_map(str(path)) as source:
        reader = open_arrow(source)
        at = reader.schema.get_field_index(name)
        for batch in batches_of(reader):
            for start in range(0, batch.num_rows, _ROWS):
                yield batch.column(at).slice(start, _ROWS)


def _rows_at_once(metadata: pq.FileMetaData, name: str) -> int:
    """As many rows as hold a few million ids."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    most = 1
    for group in groups:
        columns = [group.column(number) for number in range(group.num_columns)]
        ids = sum(one.num_values for one in columns if one.path_in_schema.partition(".")[0] == name)
        most = max(most, ids // max(1, group.num_rows))
    return max(1, min(_ROWS, _IDS // most))


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise refuse(path, given=f"a file that cannot be read ({error})",
                     expected="a whole Parquet or Arrow file", fix="fetch it again") from error  # fmt: skip
