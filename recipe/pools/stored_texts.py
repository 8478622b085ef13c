"""Texts of the document table as its file has them, and how they are made again.

Ids and sources are mostly one of a few texts around digits that are all different: UUIDs, hashes, the line
of a file. As text a hexadecimal digit takes a byte where four bits are what it says, and what is around it
stands there again and again. `recipe.pools.spelling` takes the digits out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import Formatter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

SPELLED = ("id_str", "group_str", "source")
"""Columns of texts. Each has, beside itself, a column for every one of ``FIELDS``."""
FIELDS = {"form": pa.string(), "bytes16": pa.binary(16), "bytes": pa.binary(), "number": pa.int64()}
MANUAL = (
    "Where a text T is null and T_form is not, it is T_form.format(uuid=UUID(bytes=b), "
    "UUID=str(UUID(bytes=b)).upper(), hex=b.hex(), HEX=b.hex().upper(), number=T_number), "
    "b being T_bytes16, or T_bytes where that is null."
)
"""How Python makes a text again; stands in the schema of the file."""
MOST_DIGITS = 18
UUID = (8, 4, 4, 4, 12)
NONE, LOWER_UUID, UPPER_UUID, LOWER, UPPER, NUMBER = range(6)
KINDS = ("", "{uuid}", "{UUID}", "{hex}", "{HEX}", "{number}", "",
          *(f"{{number:0{width}}}" for width in range(2, MOST_DIGITS + 1)))  # fmt: skip
"""What stands in a form where digits were taken out; of numbers with zeros in front, ``NUMBER`` + width."""
PIECES = 5


def stored_fields() -> list[tuple[str, pa.DataType]]:
    """Columns that a stored table has beside those of the document table."""
    return [(f"{name}_{field}", kind) for name in SPELLED for field, kind in FIELDS.items()]


def stored_names(names: Iterable[str]) -> list[str]:
    """Columns to read for columns of the document table.

    >>> stored_names(["id_str", "tags"])
    ['id_str', 'id_str_form', 'id_str_bytes16', 'id_str_bytes', 'id_str_number', 'tags']
    """
    return [
        stored
        for name in names
        for stored in (name, *(f"{name}_{field}" for field in FIELDS if name in SPELLED))
    ]


def restored(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Columns of the document table of rows as they are stored; of a file without forms, the same columns."""
    columns = {name: table[name] for name in names}
    for name in SPELLED:
        if name in columns and (form := f"{name}_form") in table.column_names and (
            table[form].null_count < table.num_rows
        ):  # fmt: skip
            stored = {field: table[f"{name}_{field}"].combine_chunks() for field in FIELDS}
            columns[name] = pc.coalesce(columns[name], _texts(stored))
    return pa.table(columns)


def _texts(stored: dict[str, pa.Array]) -> pa.Array:
    """The texts of forms; null where there is none."""
    encoded = stored["form"].dictionary_encode()
    parsed = [_parsed(form) for form in encoded.dictionary.to_pylist()]
    codes = pa.array(encoded.indices)
    literals = [pa.array([form[k] for form in parsed], pa.string()).take(codes) for k in (0, 2, 4)]
    holes = [np.array([form[k] for form in parsed], np.int64) for k in (1, 3)]
    at = np.asarray(codes.fill_null(0).to_numpy(zero_copy_only=False))
    digits = [_digits(stored, kinds[at], np.asarray(codes.is_valid())) for kinds in holes]
    return pc.binary_join_element_wise(literals[0], digits[0], literals[1], digits[1], literals[2], "")


def _parsed(form: str) -> tuple[str, int, str, int, str]:
    """Pieces of a form: literals, and between them the kinds of digits.

    >>> _parsed("{{a}}-{number:03}")
    ('{a}-', 8, '', 0, '')
    """
    found: list[Any] = [""]
    try:
        for literal, name, width, _ in Formatter().parse(form):
            found[-1] += literal
            if name is not None:
                hole = "{" + name + (f":{width}" if width else "") + "}"
                found += [KINDS.index(hole), ""]
    except ValueError as error:
        raise pa.ArrowInvalid(f"a form {form!r} that is none") from error
    if len(found) > PIECES:
        raise pa.ArrowInvalid(f"a form {form!r} with more than two holes")
    before, first, between, second, behind = [*found, 0, "", 0, ""][:PIECES]
    return before, first, between, second, behind


def _digits(stored: dict[str, pa.Array], kinds: NDArray[np.int64], valid: NDArray[np.bool_]) -> pa.Array:
    """Digits that fill a hole: of each row by its kind; nothing in rows without."""
    texts = pa.array([""]).take(pa.array(np.zeros(len(kinds), np.int64)))
    for kind in np.unique(kinds[valid]).tolist():
        if kind != NONE:
            here = valid & (kinds == kind)
            own = {name: values.filter(pa.array(here)) for name, values in stored.items()}
            texts = pc.replace_with_mask(texts, pa.array(here), _of_kind(own, kind))
    return texts


def _of_kind(stored: dict[str, pa.Array], kind: int) -> pa.Array:
    if kind >= NUMBER:
        return pc.utf8_lpad(pc.cast(_all_there(stored["number"]), pa.string()), kind - NUMBER, "0")
    values = _all_there(pc.coalesce(pc.cast(stored["bytes16"], pa.binary()), stored["bytes"]))
    offsets, data = buffers(values)
    digits = np.frombuffer(data.tobytes().hex().encode("ascii"), np.uint8)
    edges = 2 * offsets.astype(np.int32)
    if kind in (LOWER_UUID, UPPER_UUID):
        if np.any(np.diff(edges) != sum(UUID)):
            raise pa.ArrowInvalid("a UUID of other than 16 bytes")
        cut = np.cumsum(UUID)[:-1]
        digits = np.insert(digits.reshape(-1, sum(UUID)), cut, ord("-"), axis=1).reshape(-1)
        edges = np.arange(len(values) + 1, dtype=np.int32) * (sum(UUID) + len(cut))
    texts = pa.StringArray.from_buffers(
        len(values), pa.py_buffer(edges.astype(np.int32)), pa.py_buffer(digits)
    )
    return pc.ascii_upper(texts) if kind in (UPPER_UUID, UPPER) else texts


def _all_there(values: pa.Array) -> pa.Array:
    if values.null_count:
        raise pa.ArrowInvalid("a form without what fills it")
    return values


def buffers(values: pa.Array) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Offsets of texts or bytes, from 0 on, and their bytes; no value is null."""
    _, edges, data = values.buffers()
    offsets = np.frombuffer(edges, np.int32)[values.offset : values.offset + len(values) + 1]
    whole = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return offsets - offsets[0], whole[offsets[0] : offsets[-1]]
