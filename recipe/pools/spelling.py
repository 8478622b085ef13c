"""Spelling of texts of the document table: digits as bytes and numbers, the text around them once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recipe.pools.stored_texts import (
    FIELDS,
    KINDS,
    LOWER,
    LOWER_UUID,
    MOST_DIGITS,
    NONE,
    NUMBER,
    PIECES,
    SPELLED,
    UPPER,
    UPPER_UUID,
    UUID,
    buffers,
)

LEAST = 4
"""Rows of a table that must share a form: one that is nearly a text of its own saves nothing."""
_LEAST_HEX = 16


def spelled(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The rows of a document table as ``schema``, that of the file, has them."""
    columns = {name: table[name] for name in table.column_names}
    for name in SPELLED:
        texts = table[name].combine_chunks()
        forms = _common(spell(texts))
        columns |= {f"{name}_{field}": forms[field] for field in FIELDS}
        columns[name] = pc.if_else(forms["form"].is_valid(), pa.scalar(None, texts.type), texts)
    return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def spell(texts: pa.Array) -> dict[str, pa.Array]:
    """Forms of texts, and the bytes and numbers that were taken out; null where a text has neither.

    A text has one form: what is looked for is spelled alike.

    >>> {name: value[0].as_py() for name, value in spell(pa.array(["{a}-007"])).items()}
    {'form': '{{a}}-{number:03}', 'bytes16': None, 'bytes': None, 'number': 7}
    """
    texts = texts.fill_null("")
    if not len(texts):
        return {name: pa.array([], kind) for name, kind in FIELDS.items()}
    offsets, data = buffers(texts)
    holes = _holes(data, offsets)
    pieces = _cut(data, offsets, holes)
    kinds = pa.array(KINDS)
    literals = [_escaped(piece) for piece in pieces[::2]]
    fills = [kinds.take(pa.array(kind)) for kind in (holes.first, holes.second)]
    form = pc.binary_join_element_wise(literals[0], fills[0], literals[1], fills[1], literals[2], "")
    return {"form": _where(form, holes.first > NONE), **_values(pieces, holes)}


@dataclass(frozen=True)
class _Holes:
    """Of each text where digits are taken out, first and second, and what they are."""

    edges: NDArray[np.int32]
    """int32[n, 4]: first digit and end of both; the end of the text where there is none."""
    first: NDArray[np.int64]
    second: NDArray[np.int64]


def _holes(data: NDArray[np.uint8], offsets: NDArray[np.int32]) -> _Holes:
    ends = offsets[1:].astype(np.int64)
    hexes = _hexes(data, offsets)
    numbers = _numbers(data, offsets, hexes)
    nothing = (ends, ends, np.zeros(len(ends), np.int64))
    found = [
        [np.where(span[2] > NONE, some, no) for some, no in zip(span, nothing, strict=True)]
        for span in (hexes, numbers)
    ]
    swap = found[1][0] < found[0][0]
    one, two = ([np.where(swap, a, b) for a, b in zip(x, y, strict=True)] for x, y in (found[::-1], found))
    return _Holes(np.stack([one[0], one[1], two[0], two[1]], axis=1).astype(np.int32), one[2], two[2])


_Span = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
"""First digit, end and kind by text."""


def _hexes(data: NDArray[np.uint8], offsets: NDArray[np.int32]) -> _Span:
    """The first UUID, or else run of many hexadecimal digits of one case, an even number of them."""
    start, stop, kind = (np.zeros(len(offsets) - 1, np.int64) for _ in range(3))
    for letters, uuid, run in ((b"abcdef", LOWER_UUID, LOWER), (b"ABCDEF", UPPER_UUID, UPPER)):
        firsts, ends, rows = _runs(data, offsets, b"0123456789" + letters)
        for at, end, which in ((*_uuids(data, firsts, ends, rows), uuid), (*_long(firsts, ends), run)):
            here = np.flatnonzero(kind[rows[at]] == NONE)[::-1]  # the first of a row is written last
            row = rows[at][here]
            start[row], stop[row], kind[row] = firsts[at][here], end[here], which
    return start, stop, kind


def _long(firsts: NDArray[np.int64], ends: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs with many digits: their numbers, and ends that leave an even number of digits."""
    at = np.flatnonzero(ends - firsts >= _LEAST_HEX)
    return at, ends[at] - (ends[at] - firsts[at]) % 2


def _uuids(
    data: NDArray[np.uint8], firsts: NDArray[np.int64], ends: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Runs with which a UUID begins, and where it ends."""
    last = len(UUID) - 1
    at = np.flatnonzero(ends - firsts == UUID[0])
    at = at[at < len(firsts) - last]
    for k in range(1, len(UUID)):
        joined = (firsts[at + k] == ends[at + k - 1] + 1) & (data[ends[at + k - 1]] == ord("-"))
        at = at[joined & (ends[at + k] - firsts[at + k] == UUID[k]) & (rows[at + k] == rows[at])]
    return at, ends[at + last]


def _numbers(data: NDArray[np.uint8], offsets: NDArray[np.int32], hexes: _Span) -> _Span:
    """The last run of decimal digits beside the hexadecimal ones, where it fits 63 bits."""
    start, stop, kind = (np.zeros(len(offsets) - 1, np.int64) for _ in range(3))
    firsts, ends, rows = _runs(data, offsets, b"0123456789")
    beside = (hexes[2][rows] == NONE) | (ends <= hexes[0][rows]) | (firsts >= hexes[1][rows])
    firsts, ends, rows = firsts[beside], ends[beside], rows[beside]
    start[rows], stop[rows] = firsts, ends  # of several in a row the last one stays
    widths = stop - start
    padded = np.zeros(len(widths), np.bool_)
    padded[rows] = data[start[rows]] == ord("0")
    fits = (widths > 0) & (widths <= MOST_DIGITS)
    kind[fits] = np.where(padded & (widths > 1), NUMBER + widths, NUMBER)[fits]
    return start, stop, kind


def _runs(
    data: NDArray[np.uint8], offsets: NDArray[np.int32], digits: bytes
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Where stretches of such bytes begin and end, and in which text; none lies in two."""
    is_digit = np.zeros(256, np.bool_)
    is_digit[list(digits)] = True
    inside = np.zeros(len(data) + 2, np.bool_)
    inside[1:-1] = is_digit[data]
    edges = np.zeros(len(data) + 1, np.bool_)
    edges[offsets] = True
    begins = inside[1:] & (edges | ~inside[:-1])
    stops = inside[:-1] & (edges | ~inside[1:])
    firsts = np.flatnonzero(begins)
    return firsts, np.flatnonzero(stops), np.searchsorted(offsets, firsts, side="right") - 1


def _cut(data: NDArray[np.uint8], offsets: NDArray[np.int32], holes: _Holes) -> list[pa.Array]:
    """Texts in five pieces: before, first digits, between, second digits, behind."""
    edges = np.concatenate([offsets[:-1, None], holes.edges], axis=1).reshape(-1)
    edges = np.append(edges, offsets[-1]).astype(np.int32)
    pieces = pa.StringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), pa.py_buffer(data))
    return [pieces.take(pa.array(np.arange(k, len(pieces), PIECES))) for k in range(PIECES)]


def _values(pieces: list[pa.Array], holes: _Holes) -> dict[str, pa.Array]:
    """The bytes and numbers of texts."""
    kinds, digits = (holes.first, holes.second), (pieces[1], pieces[3])
    hexes = [(kind > NONE) & (kind < NUMBER) for kind in kinds]
    numbers = [kind >= NUMBER for kind in kinds]
    found = pc.if_else(pa.array(numbers[0]), digits[0], digits[1])
    number = pc.cast(_where(found, numbers[0] | numbers[1]), pa.int64())
    has_bytes = hexes[0] | hexes[1]
    data = _bytes(pc.if_else(pa.array(hexes[0]), digits[0], digits[1]), has_bytes)
    is_16 = has_bytes & (np.asarray(pc.binary_length(data)) == FIELDS["bytes16"].byte_width)
    return {
        "bytes16": pc.cast(_where(data, is_16), FIELDS["bytes16"]),
        "bytes": _where(data, has_bytes & ~is_16),
        "number": number,
    }


def _bytes(digits: pa.Array, chosen: NDArray[np.bool_]) -> pa.Array:
    """Binary: what chosen texts of hexadecimal digits and dashes say; nothing of the others."""
    chosen_digits = pc.replace_substring(pc.if_else(pa.array(chosen), digits, ""), "-", "")
    offsets, data = buffers(chosen_digits)
    raw = bytes.fromhex(data.tobytes().decode("ascii"))
    edges = pa.py_buffer((offsets // 2).astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(digits), [None, edges, pa.py_buffer(raw)])


def _common(forms: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """The same, where a form is that of several texts."""
    encoded = forms["form"].dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False))
    counts = np.append(np.bincount(codes[codes >= 0], minlength=len(encoded.dictionary)), 0)
    return {name: _where(values, counts[codes] >= LEAST) for name, values in forms.items()}


def _escaped(literal: pa.Array) -> pa.Array:
    """Braces of a text are doubled in its form."""
    if not pc.any(pc.match_substring_regex(literal, "[{}]")).as_py():
        return literal
    return pc.replace_substring(pc.replace_substring(literal, "{", "{{"), "}", "}}")


def _where(values: pa.Array, chosen: NDArray[np.bool_]) -> pa.Array:
    return pc.if_else(pa.array(chosen), values, pa.scalar(None, values.type))
