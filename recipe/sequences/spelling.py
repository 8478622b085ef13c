"""The characters of a row of tokens, one after another, read from the bytes of the tokens.

A *place* is a token and a byte of it, the one behind it: ``(i, 0)`` is between tokens i - 1 and i.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.maths.kernels import inlined, kernel
from recipe.sequences.characters import (
    BLANK,
    DIGIT,
    EXTEND,
    JOINER,
    LETTER,
    LINE,
    MARK,
    NEWLINE,
    PART,
    REGIONAL,
    RETURN,
)

ALIGN = ("none", "number", "word", "sentence", "line", "paragraph", "section")
"""Kinds of places at which text may be cut, from the finest to the coarsest."""
AFTER_LINE, AFTER_BLANK, OPEN = 1 << 8, 1 << 9, 1 << 10
"""Flags of a token's left: a line may begin behind it; a paragraph may; it may if the token before ends in
white space, for this one is nothing else."""
NOBODY = -1
"""The class where a document has no more characters."""


class Edges(NamedTuple):
    """What is known of the places between tokens; arrays are read-only.

    ``kind``: index in ``ALIGN``; ``left`` uint16[vocab + 1]: class of the character that a token ends with,
    and whether a line or paragraph may begin behind it; ``right`` uint16[vocab + 1]: class of the one it
    begins with; ``data`` uint8[], ``starts`` int64[vocab + 2]: the bytes of the tokens. The last entry is
    that of ids outside the vocabulary. ``classes`` uint8[0x110000]: of code points; ``sections`` int64[]:
    stored tokens, counted over the pool, at which sections begin, rising, without the starts of documents.
    """

    kind: int
    left: NDArray[np.uint16]
    right: NDArray[np.uint16]
    data: NDArray[np.uint8]
    starts: NDArray[np.int64]
    classes: NDArray[np.uint8]
    sections: NDArray[np.int64]

    def of(self, align: str, sections: NDArray[np.int64] | None = None) -> Edges:
        """The same table for one kind of places and the sections of one pool."""
        given = np.empty(0, np.int64) if sections is None else sections.view()
        given.setflags(write=False)
        return self._replace(kind=ALIGN.index(align), sections=given)


@inlined
def id_at(tokens: NDArray[Any], i: int, edges: Edges) -> int:
    """Token i, or the entry of ids that are outside the vocabulary."""
    token: Any = np.int64(tokens[i])
    last = len(edges.starts) - 2
    return token if 0 <= token < last else last


@inlined
def length_at(tokens: NDArray[Any], i: int, edges: Edges) -> Any:
    """Bytes of token i; at least 1."""
    token = id_at(tokens, i, edges)
    return edges.starts[token + 1] - edges.starts[token]


@inlined
def _byte(tokens: NDArray[Any], i: int, j: int, edges: Edges) -> Any:
    """Byte j of token i."""
    return np.int64(edges.data[edges.starts[id_at(tokens, i, edges)] + j])


@inlined
def _class_of(code: int, edges: Edges) -> Any:
    return np.int64(edges.classes[code])


@kernel
def is_inside(tokens: NDArray[Any], cut: int, edges: Edges) -> bool:
    """Whether a cut is inside a whole UTF-8 character."""
    i, j = cut, 0
    for _ in range(3):
        if j == 0:
            if i == 0:
                return False
            i -= 1
            j = length_at(tokens, i, edges)
        j -= 1
        byte = _byte(tokens, i, j, edges)
        if byte >= 0xC0:
            kind, i, j = character_after(tokens, i, j, edges)
            return kind != PART and (i > cut or (i == cut and j > 0))
        if byte < 0x80:
            return False
    return False


@kernel
def character_before(tokens: NDArray[Any], i: int, j: int, edges: Edges) -> tuple[int, int, int]:
    """Class of the character that ends before byte j of token i (-1: there is none), and where it begins."""
    if i == 0 and j == 0:
        return NOBODY, 0, 0
    code, first_i, first_j = 0, i, j
    for k in range(4):
        if j == 0:
            if i == 0:
                break
            i -= 1
            j = length_at(tokens, i, edges)
        j -= 1
        byte = _byte(tokens, i, j, edges)
        if k == 0:
            first_i, first_j = i, j
        if byte < 0x80 or byte >= 0xC0:
            code = _code(byte, code, k)
            if code >= 0:
                return _class_of(code, edges), i, j
            break
        code |= (byte & 0x3F) << (6 * k)
    return PART, first_i, first_j


@kernel
def character_after(tokens: NDArray[Any], i: int, j: int, edges: Edges) -> tuple[int, int, int]:
    """Class of the character that begins at byte j of token i (-1: there is none), and where it ends."""
    code, lead, more = 0, 0, 0
    first_i, first_j = -1, 0
    for k in range(4):
        if i < len(tokens) and j == length_at(tokens, i, edges):
            i += 1
            j = 0
        if i >= len(tokens):
            break
        byte = _byte(tokens, i, j, edges)
        j += 1
        if k == 0:
            first_i, first_j, lead = i, j, byte
            more = 0 if byte < 0xC0 else 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
        elif byte < 0x80 or byte >= 0xC0:
            break
        else:
            code = code << 6 | (byte & 0x3F)
        if k == more:
            code = _code(lead, code, more)
            if code >= 0:
                return _class_of(code, edges), i, j
            break
    return (PART, first_i, first_j) if first_i >= 0 else (NOBODY, i, j)


@inlined
def _code(lead: int, rest: int, more: int) -> int:
    """The code point of a leading byte with the bits of ``more`` bytes behind it; -1: there is none."""
    if more == 0:
        return lead if lead < 0x80 else -1
    if more == 1:
        return (lead & 0x1F) << 6 | rest if 0xC2 <= lead < 0xE0 else -1
    if more == 2:
        code = (lead & 0x0F) << 12 | rest
        return code if 0xE0 <= lead < 0xF0 and code >= 0x800 and not 0xD800 <= code < 0xE000 else -1
    code = (lead & 0x07) << 18 | rest
    return code if 0xF0 <= lead < 0xF5 and 0x10000 <= code < 0x110000 else -1


@inlined
def are_glued(before: int, after: int) -> bool:
    """Whether two characters make one: marks, joined emoji, flags."""
    if after in (MARK, EXTEND, JOINER):
        return True
    return after != NOBODY and (before == JOINER or (before == REGIONAL and after == REGIONAL))


@inlined
def is_of_word(kind: int) -> bool:
    """Letters, digits and their marks."""
    return kind in (LETTER, DIGIT, MARK)


@inlined
def ends_line(kind: int) -> bool:
    """What a line ends with."""
    return kind in (NEWLINE, RETURN, LINE)


@inlined
def is_white(kind: int) -> bool:
    """Blanks and ends of lines."""
    return kind == BLANK or ends_line(kind)
