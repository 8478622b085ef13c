"""What a character is for the places at which text may be cut: one class for each code point.

Letters, marks, digits, spaces and currency signs are those of Unicode 3.2: the one version that every
Python carries (``unicodedata.ucd_3_2_0``), so that a cut does not depend on the Python that makes it.
Scripts that came later count as letters, and later symbols and emoji as others.
"""

from __future__ import annotations

from functools import lru_cache
from unicodedata import ucd_3_2_0

import numpy as np
from numpy.typing import NDArray

OTHER, LETTER, DIGIT, MARK, EXTEND, JOINER, REGIONAL, ALONE = range(8)
"""MARK: combining, of a word; EXTEND: of no word; JOINER: U+200D; REGIONAL: half of a flag; ALONE: a word
by itself (ideographs, kana)."""
BLANK, NEWLINE, RETURN, LINE = range(8, 12)
"""NEWLINE is ``\\n``, RETURN ``\\r``, LINE any other end of a line."""
DOT, INNER, STOP, FULL_STOP, ELLIPSIS, CLOSER, CURRENCY, PART = range(12, 20)
"""DOT and INNER may stand inside a number; STOP and FULL_STOP end a sentence, FULL_STOP also without white
space; PART: bytes that are no whole character."""

INNER_CHARS = ",:-/：／－٫٬"
DOT_CHARS = ".．"
STOP_CHARS = "!?؟۔।॥։።፧‼⁇⁈⁉‽"
FULL_STOP_CHARS = "。！？；｡"
ELLIPSIS_CHARS = "…"
CLOSER_CHARS = "\"')]}”’»›」』】〉》〕）］｝〗〙〛＂＇｣"
LINE_CHARS = "\x0b\x0c\x85\u2028\u2029"

_NUM_CODES, _NUM_CATEGORISED = 0x110000, 0x20000
_UNASSIGNED = "Cn"
_LISTED = (
    (INNER, INNER_CHARS),
    (DOT, DOT_CHARS),
    (STOP, STOP_CHARS),
    (FULL_STOP, FULL_STOP_CHARS),
    (ELLIPSIS, ELLIPSIS_CHARS),
    (CLOSER, CLOSER_CHARS),
    (LINE, LINE_CHARS),
    (BLANK, "\t"),
    (NEWLINE, "\n"),
    (RETURN, "\r"),
    (LETTER, "_"),
    (MARK, "\u200c"),
    (JOINER, "\u200d"),
)
_LATER_SCRIPTS = ((0x370, 0x2000), (0x2C00, 0x2E00), (0xA000, 0xAC00), (0x10000, 0x1F000))
_IDEOGRAPHS_AND_KANA = (
    (0x3005, 0x3008),
    (0x3021, 0x302A),
    (0x3041, 0x30FB),
    (0x30FC, 0x3100),
    (0x31F0, 0x3200),
    (0x3400, 0x4DC0),
    (0x4E00, 0xA000),
    (0xF900, 0xFB00),
    (0xFF66, 0xFFA0),
    (0x1AFF0, 0x1B170),
    (0x20000, 0x40000),
)
_JAMO = ((0x1160, 0x1200), (0xD7B0, 0xD800))
_MARKS = ((0x1AB0, 0x1B00), (0x1DC0, 0x1E00), (0x20D0, 0x2100), (0xFE20, 0xFE30))
_EXTENDS = ((0xFE00, 0xFE10), (0x1F3FB, 0x1F400), (0xE0020, 0xE0080), (0xE0100, 0xE01F0))
_REGIONALS = ((0x1F1E6, 0x1F200),)
_CURRENCIES = ((0x20A0, 0x20D0),)


@lru_cache(maxsize=1)
def character_classes() -> NDArray[np.uint8]:
    """uint8[0x110000]: the class of every code point; read-only, made once.

    >>> classes = character_classes()
    >>> [int(classes[ord(c)]) for c in "a7。好"] == [LETTER, DIGIT, FULL_STOP, ALONE]
    True
    """
    classes = np.zeros(_NUM_CODES, np.uint8)
    categories = [*map(ucd_3_2_0.category, map(chr, range(_NUM_CATEGORISED)))]
    numbers = {category: number for number, category in enumerate(sorted(set(categories)))}
    numbered = np.frombuffer(bytes(map(numbers.__getitem__, categories)), np.uint8)
    classes[:_NUM_CATEGORISED] = np.array([*map(_of_category, numbers)], np.uint8)[numbered]
    for first, stop in _LATER_SCRIPTS:
        classes[first:stop][numbered[first:stop] == numbers[_UNASSIGNED]] = LETTER
    alone = np.isin(classes, (LETTER, OTHER))
    for first, stop in _IDEOGRAPHS_AND_KANA:
        classes[first:stop][alone[first:stop]] = ALONE
    for kind, ranges in (
        (MARK, (*_JAMO, *_MARKS)),
        (EXTEND, _EXTENDS),
        (REGIONAL, _REGIONALS),
        (CURRENCY, _CURRENCIES),
    ):
        for first, stop in ranges:
            classes[first:stop] = kind
    for kind, characters in _LISTED:
        classes[[ord(character) for character in characters]] = kind
    classes.setflags(write=False)
    return classes


def _of_category(category: str) -> int:
    if category == "Nd":
        return DIGIT
    if category == "Zs":
        return BLANK
    if category == "Sc":
        return CURRENCY
    return {"L": LETTER, "N": LETTER, "M": MARK}.get(category[0], OTHER)
