"""The composed form of a text (Unicode NFC), and which of its characters became which of that form's."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import cache
from unicodedata import combining, decomposition, normalize

import numpy as np
from numpy.typing import NDArray
from tokenizers import normalizers

_CHARACTERS = 1 << 16
_ASCII = re.compile(r"[\x00-\x7f]")
_NFC = normalizers.NFC()


def composed(text: str) -> str:
    """The text in NFC, as the `tokenizers` library has it.

    A long one is taken apart before ASCII characters, which join nothing before them: the library holds
    about forty times what it is given.

    >>> composed("cafe\u0301") == "caf\u00e9"
    True
    """
    if text.isascii():
        return text
    parts: list[str] = []
    start = 0
    while start < len(text):
        found = _ASCII.search(text, start + _CHARACTERS)
        stop = found.start() if found else len(text)
        parts.append(_NFC.normalize_str(text[start:stop]))
        start = stop
    return "".join(parts)


def composed_spans(text: str, form: str) -> NDArray[np.int64]:
    """int64[len(form), 2]: for each character of the form, the half-open span of the text that it is of.

    A text is taken apart where no character can reach across; inside such a stretch every character of the
    form is of all of it. Where the form is not what these stretches give, one stretch is the whole text.

    >>> composed_spans("ae\u0301i", "a\u00e9i").tolist()
    [[0, 1], [1, 3], [3, 4]]
    """
    rows: list[tuple[int, int]] = []
    made: list[str] = []
    for start, stop in _stretches(text):
        part = normalize("NFC", text[start:stop])
        made.append(part)
        rows += [(start, stop)] * len(part)
    if "".join(made) != form:
        rows = [(0, len(text))] * len(form)
    return np.array(rows, np.int64).reshape(-1, 2)


def _stretches(text: str) -> Iterator[tuple[int, int]]:
    """Spans that begin with a character which joins nothing before it."""
    start = 0
    for place, character in enumerate(text):
        if place > start and not (character > "\u02ff" and (combining(character) or character in _seconds())):
            yield start, place
            start = place
    if text:
        yield start, len(text)


@cache
def _seconds() -> frozenset[str]:
    """Characters that may be the second half of a composed one, and vowels and finals of Hangul."""
    found = {chr(code) for code in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for code in range(sys.maxunicode + 1):
        parts = decomposition(chr(code)).split(" ")
        if len(parts) == 2 and not parts[0].startswith("<"):
            found.add(chr(int(parts[1], 16)))
    return frozenset(found)
