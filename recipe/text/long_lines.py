"""A long JSON line → its record, with the line in memory once and its text once.

Read as a whole, a line with an emoji is four bytes a character, and its text as much again. Here its long
strings are read apart, a part after another; what is left is a short line.
"""

from __future__ import annotations

import json
import re
from typing import Any

from recipe.text.widths import long_strings

PART_BYTES = 1 << 20
_CUT = re.compile(rb"(?<=[^\\]{6})[^\\\x80-\xbf]|(?<!\\)\\(?!u[dD][c-fC-F])", re.DOTALL)
"""In a JSON string, a place between two characters: six bytes behind a backslash, or before one escape; not
before the second half of a character."""
_NAME = "recipe-long-string-"


def load_long(data: bytes) -> dict[str, Any] | None:
    """The record that `json.loads` gives for a line in UTF-8; None where reading all of it at once must tell.

    >>> load_long(b'{"text": "a", "x": [1]}')
    {'text': 'a', 'x': [1]}
    """
    spans = list(long_strings(data, PART_BYTES))
    short: list[bytes] = []
    at = 0
    for number, (start, stop) in enumerate(spans):
        short += [data[at:start], f'"{_NAME}{number}"'.encode()]
        at = stop
    short.append(data[at:])
    line = b"".join(short)
    if line.count(_NAME.encode()) != len(spans):
        return None
    try:
        record = json.loads(line.decode())
        names = {f"{_NAME}{number}": _text(data, *span) for number, span in enumerate(spans)}
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    found = _put(record, names)
    return found if not names and isinstance(found, dict) else None


def _text(data: bytes, start: int, stop: int) -> str:
    """The text of a JSON string.

    Raises:
        ValueError: it is none, no UTF-8, or has half a character: `UnicodeError` is one.
    """
    start, stop = start + 1, stop - 1
    if b"\\" not in data[start:stop] and not _CONTROL.search(data, start, stop):
        return str(memoryview(data)[start:stop], "utf-8")
    found = bytearray()
    while start < stop:
        cut = _CUT.search(data, start + PART_BYTES, stop)
        end = cut.start() if cut is not None else stop
        found += str(json.loads(b'"' + data[start:end] + b'"')).encode()
        start = end
    return found.decode()


_CONTROL = re.compile(rb"[\x00-\x1f]")


def _put(value: Any, names: dict[str, str]) -> Any:
    """The value with the long strings in their places; each is taken out of ``names``."""
    if isinstance(value, str):
        return names.pop(value, value)
    if isinstance(value, list):
        return [_put(item, names) for item in value]
    if isinstance(value, dict):
        return {key: _put(item, names) for key, item in value.items()}
    return value
