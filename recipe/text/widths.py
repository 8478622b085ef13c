"""What a text takes in memory: every character as much as the widest one, one emoji makes it four bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from recipe.text.sources import ReadOptions

WIDEST = 3 * ReadOptions().max_line_bytes
"""Twice the bytes of a line and once those of its text in memory, at most: a line, its record and its tokens
are there together, and are below 1.5 GiB then. More where more bytes of a line are asked for."""

VALUE_BYTES = 160
"""Of a value of a JSON record in memory, with its key, beside its characters; measured: up to 116."""

_FEW = 1 << 10
_CHUNK = 1 << 20
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_WHOLE = re.compile(rb'(?:[^"]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_HIGH_SURROGATE = re.compile(rb"\\u[dD][89abAB]")


def check_width(data: bytes, max_line_bytes: int) -> str:
    """What is expected of a line or text that would take too much memory; empty where it does not.

    >>> check_width("short, with an emoji: \U0001f600".encode(), 100)
    ''
    """
    limit = max(WIDEST, 3 * max_line_bytes)
    if 6 * len(data) <= limit or (size := 2 * len(data) + memory_of(data)) <= limit:
        return ""
    return (
        f"at most {limit:,} bytes in memory, for twice the line and once its text; "
        f"its widest character makes them {size:,}"
    )


def check_values(data: bytes, max_line_bytes: int) -> str:
    """What is expected of a JSON line whose values, with the line, would take too much; else empty.

    >>> check_values(b'{"text": "a", "x": [[], []]}', 100)
    ''
    """
    limit = max(WIDEST, 3 * max_line_bytes)
    if len(data) * (6 + VALUE_BYTES) <= limit:
        return ""
    size = 2 * len(data) + memory_of(data)
    if _signs(data) <= _FEW or size + VALUE_BYTES * _signs(data) <= limit:
        return ""
    values = sum(map(_signs, _outside(data)))
    if values <= _FEW or (size := size + VALUE_BYTES * values) <= limit:
        return ""
    return (
        f"at most {limit:,} bytes in memory, for twice the line, once its text and {VALUE_BYTES} for each of "
        f"its values; its {values:,} values make them {size:,}"
    )


def long_strings(data: bytes, least: int) -> Iterator[tuple[int, int]]:
    """Half-open spans of a JSON line's strings that are longer than ``least``, with their marks.

    >>> list(long_strings(b'{"a": "bcdefg", "h": 1}', 5))
    [(6, 14)]
    """
    return ((start, stop) for start, stop, is_long in _parts(data, least) if is_long)


def _outside(data: bytes) -> Iterator[bytes]:
    """A JSON line without its strings, in parts: what is found of all of it at once would fill memory."""
    return (
        _STRING.sub(b"", data[start:stop]) for start, stop, is_long in _parts(data, _CHUNK) if not is_long
    )


def _parts(data: bytes, most: int) -> Iterator[tuple[int, int, bool]]:
    """Spans of a JSON line, none of which ends in a string; True for a string longer than ``most``."""
    at = 0
    while at < len(data):
        found = _WHOLE.match(data, at, at + most)
        is_long = found is None or found.end() == at
        if is_long:
            found = _STRING.match(data, at)
        if found is None:  # a string without an end
            return
        yield at, found.end(), is_long
        at = found.end()


def _signs(data: bytes) -> int:
    """Commas and opening brackets: where they are not in texts, at least as many as there are values."""
    return sum(map(data.count, (b",", b"[", b"{")))


def memory_of(data: bytes) -> int:
    """Bytes of a text in memory, from its UTF-8, in which JSON may have written characters as ``\\uXXXX``.

    >>> memory_of(b"abc"), memory_of("ab\u4e2d".encode()), memory_of("ab\U0001f600".encode())
    (3, 6, 12)
    >>> memory_of(rb"abcdef\\u4e2d"), memory_of(rb"abcdef\\ud83d\\ude00")
    (14, 32)
    """
    characters, widest = 0, 0
    for start in range(0, len(data), _CHUNK):
        some = np.frombuffer(data, np.uint8, min(_CHUNK, len(data) - start), start)
        characters += len(some) - int(np.count_nonzero((some & 0xC0) == 0x80))
        widest = max(widest, int(some.max()))
    width = 4 if widest >= 0xF0 else 2 if widest >= 0xC4 else 1
    if not (escapes := data.count(b"\\u")):
        return characters * width
    inside = 4 if width == 4 or _HIGH_SURROGATE.search(data) else 2
    return max(characters * width, (characters - 5 * escapes) * inside)
