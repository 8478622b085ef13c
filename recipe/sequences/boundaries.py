"""Places between tokens at which a text may be cut: found in the bytes of the tokens around them.

A *cut* c lies between tokens c - 1 and c of a document. Each kind permits the places of those after it, too:

- ``number``: not inside a number, nor inside a character. A number is digits, with ``. , : - /`` between two
  of them (2024, 61.6, 1.2.3, 2024-05-01), and the currency sign before it (¥3,499.00). A character is UTF-8
  with its combining marks; joined emoji, flags and ``\\r\\n`` are one, too.
- ``word``: nor between two letters, marks, digits or underscores; ideographs and kana stand alone.
- ``sentence``: after ``. ! ? …`` with closing quotes and brackets where white space or the end follows, and
  after ``。！？；`` with closing marks whatever follows; also behind that white space. A dot after one letter
  or digit that stands by itself ends none ("J. Smith", "3. The third").
- ``line``: after the end of a line. Where that is inside a token, the place behind the token if nothing but
  blanks follows in it.
- ``paragraph``: the same after a line that is empty or blank.
- ``section``: where a section begins, as the pool says.

White space, closing marks and blanks are looked at up to ``LOOK`` characters far.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.maths.kernels import inlined, kernel
from recipe.sequences.characters import (
    ALONE,
    BLANK,
    CLOSER,
    CURRENCY,
    DIGIT,
    DOT,
    ELLIPSIS,
    FULL_STOP,
    INNER,
    LETTER,
    MARK,
    NEWLINE,
    PART,
    RETURN,
    STOP,
    character_classes,
)
from recipe.sequences.spelling import (
    AFTER_BLANK,
    AFTER_LINE,
    NOBODY,
    OPEN,
    Edges,
    are_glued,
    character_after,
    character_before,
    ends_line,
    id_at,
    is_inside,
    is_of_word,
    is_white,
    length_at,
)

LOOK = 64
"""Characters of one sort that are looked at before a place is given up."""

_NUMBER, _WORD, _SENTENCE, _LINES, _PARAGRAPH, _SECTION = range(1, 7)
_UNKNOWN = b"\xef\xbf\xbd"


def edge_table(vocabulary: Sequence[bytes]) -> Edges:
    """The table of a vocabulary, for no kind and without sections.

    Args:
        vocabulary: bytes of every token, by id; an empty one counts as U+FFFD. Without any token only
            sections can be found.

    >>> edges = edge_table([b"In", b" 20", b"24", b" it"]).of("number")
    >>> tokens = np.array([0, 1, 2, 3])
    >>> last_edge(tokens, 1, 2, edges, 0), first_edge(tokens, 2, 3, edges, 0)
    (1, 3)
    """
    texts = [text or _UNKNOWN for text in vocabulary] + [_UNKNOWN]
    data = np.frombuffer(b"".join(texts), np.uint8)
    starts = np.zeros(len(texts) + 1, np.int64)
    starts[1:] = np.cumsum([len(text) for text in texts])
    empty = np.empty(0, np.uint16)
    for array in (starts, empty):
        array.setflags(write=False)
    bare = Edges(0, empty, empty, data, starts, character_classes(), np.empty(0, np.int64)).of("none")
    left, right = _outsides(bare)
    for array in (left, right):
        array.setflags(write=False)
    return bare._replace(left=left, right=right)


def section_table(sections: NDArray[np.int64]) -> Edges:
    """The table of places where sections begin: no text is looked at, so it holds none.

    Args:
        sections: int64[], as in `Edges`.
    """
    texts, letters, starts = np.empty(0, np.uint16), np.empty(0, np.uint8), np.zeros(1, np.int64)
    for array in (texts, letters, starts):
        array.setflags(write=False)
    return Edges(0, texts, texts, letters, starts, letters, starts).of("section", sections)


@kernel
def last_edge(tokens: NDArray[Any], low: int, high: int, edges: Edges, place: int) -> int:
    """The greatest permitted cut in ``low..high``, both included; -1 if there is none.

    Args:
        tokens: body tokens of one document, from its first to its last; few are read.
        low: least cut; a document's start is none.
        high: greatest cut; at most the number of tokens.
        edges: the table, with the kind that is asked for.
        place: where token 0 is stored, counted over the pool.
    """
    low = max(low, 1)
    section = np.searchsorted(edges.sections, place + high, side="right") - 1
    found = edges.sections[section] - place if section >= 0 else -1
    if found < low:
        found = -1
    if edges.kind != _SECTION:
        kind, left = edges.kind, edges.left
        for cut in range(high, max(low, found + 1) - 1, -1):
            if _may_be(left, (tokens, cut), kind) and _is_permitted(tokens, cut, edges):
                return cut
    return found


@kernel
def first_edge(tokens: NDArray[Any], low: int, high: int, edges: Edges, place: int) -> int:
    """The least permitted cut in ``low..high``; -1 if there is none; arguments as of `last_edge`."""
    low = max(low, 1)
    section = np.searchsorted(edges.sections, place + low, side="left")
    found = edges.sections[section] - place if section < len(edges.sections) else high + 1
    if edges.kind != _SECTION:
        kind, left = edges.kind, edges.left
        for cut in range(low, min(high, found - 1) + 1):
            if _may_be(left, (tokens, cut), kind) and _is_permitted(tokens, cut, edges):
                return cut
    return found if found <= high else -1


@kernel
def _outsides(edges: Edges) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
    """``left`` and ``right`` of every token, seen by itself."""
    count = len(edges.starts) - 1
    left, right = np.empty(count, np.uint16), np.empty(count, np.uint16)
    one = np.empty(1, np.int64)
    for token in range(count):
        one[0] = token
        right[token] = character_after(one, 0, 0, edges)[0]
        last, i, j = character_before(one, 1, 0, edges)
        left[token] = last
        looked = 0
        while last == BLANK and looked < LOOK:
            last, i, j = character_before(one, i, j, edges)
            looked += 1
        # the part of a character may be the end of one that ends a line (U+2028)
        if last == PART:
            left[token] |= AFTER_LINE | AFTER_BLANK
        elif ends_line(last):
            reached = _before_line(one, (i, j), last, edges)
            left[token] |= AFTER_LINE
            if ends_line(reached) or reached == PART:
                left[token] |= AFTER_BLANK
            elif reached == NOBODY:
                left[token] |= OPEN
    return left, right


@inlined
def _seen(left: NDArray[np.uint16], token: Any) -> int:
    unknown = len(left) - 1
    number: Any = np.int64(token)
    return int(left[number if 0 <= number < unknown else unknown])


@inlined
def _may_be(left: NDArray[np.uint16], at: tuple[NDArray[Any], int], kind: int) -> bool:
    """Whether a cut may be one of a kind: a glance that spares most places the look around them."""
    tokens, cut = at
    seen = _seen(left, tokens[cut - 1])
    if kind == _LINES:
        return (seen & AFTER_LINE) != 0
    if kind == _PARAGRAPH:
        if seen & OPEN == 0 or cut == 1:
            return seen & (AFTER_BLANK | OPEN) != 0
        before = _seen(left, tokens[cut - 2]) & 0xFF
        return is_white(before) or before == PART
    return kind < _SENTENCE or (seen & 0xFF) >= BLANK


@kernel
def _is_permitted(tokens: NDArray[Any], cut: int, edges: Edges) -> bool:
    """Whether the kind permits a cut; a section's start apart."""
    left = edges.left[id_at(tokens, cut - 1, edges)]
    before = left & 0xFF
    after = edges.right[id_at(tokens, cut, edges)] if cut < len(tokens) else NOBODY
    if before == PART or after == PART:
        if after == PART and is_inside(tokens, cut, edges):
            return False
        before = character_before(tokens, cut, 0, edges)[0]
        after = character_after(tokens, cut, 0, edges)[0]
    if before == RETURN and after == NEWLINE:
        return False
    if left & AFTER_LINE:
        begins, j = _line_start(tokens, cut, edges)
        if begins:
            return edges.kind <= _LINES or _is_blank_before(tokens, (cut - 1, j), edges)
    if edges.kind >= _LINES or are_glued(before, after):
        return False
    if edges.kind == _SENTENCE:
        return _ends_sentence(tokens, cut, after, edges)
    if edges.kind == _WORD and is_of_word(before) and is_of_word(after):
        return False
    return not _is_in_number(tokens, cut, (before, after), edges)


@kernel
def _line_start(tokens: NDArray[Any], cut: int, edges: Edges) -> tuple[bool, int]:
    """Whether a line begins at a cut, or in the token before it and blanks follow; at which byte of it."""
    i, j = cut - 1, length_at(tokens, cut - 1, edges)
    for _ in range(LOOK + 1):
        last, at, byte = character_before(tokens, i, j, edges)
        if ends_line(last):
            return True, j
        if last != BLANK or at < cut - 1 or byte == 0:
            break
        i, j = at, byte
    return False, 0


@kernel
def _is_blank_before(tokens: NDArray[Any], at: tuple[int, int], edges: Edges) -> bool:
    """Whether the line that ends before a place holds nothing but blanks."""
    end, i, j = character_before(tokens, at[0], at[1], edges)
    reached = _before_line(tokens, (i, j), end, edges)
    return reached == NOBODY or ends_line(reached)


@kernel
def _before_line(tokens: NDArray[Any], at: tuple[int, int], end: int, edges: Edges) -> int:
    """Class of the last character that is no blank before the end of a line, whose last mark is ``end``."""
    last, i, j = character_before(tokens, at[0], at[1], edges)
    if end == NEWLINE and last == RETURN:
        last, i, j = character_before(tokens, i, j, edges)
    for _ in range(LOOK):
        if last != BLANK:
            break
        last, i, j = character_before(tokens, i, j, edges)
    return last


@kernel
def _ends_sentence(tokens: NDArray[Any], cut: int, after: int, edges: Edges) -> bool:
    last, i, j = character_before(tokens, cut, 0, edges)
    white = 0
    while is_white(last) and white < LOOK:
        last, i, j = character_before(tokens, i, j, edges)
        white += 1
    closers = 0
    while last == CLOSER and closers < LOOK:
        last, i, j = character_before(tokens, i, j, edges)
        closers += 1
    if white == 0 and after in (DOT, STOP, FULL_STOP, ELLIPSIS, CLOSER):
        return False
    if last == FULL_STOP:
        return True
    if white == 0 and after != NOBODY and not is_white(after):
        return last == ELLIPSIS and after == ALONE
    if last == DOT:
        last, i, j = character_before(tokens, i, j, edges)
        if last in (LETTER, DIGIT):
            last = character_before(tokens, i, j, edges)[0]
            return last in (LETTER, DIGIT, MARK)
        return True
    return last in (STOP, ELLIPSIS)


@kernel
def _is_in_number(tokens: NDArray[Any], cut: int, around: tuple[int, int], edges: Edges) -> bool:
    before, after = around
    if after == DIGIT:
        if before in (DOT, INNER):
            _, i, j = character_before(tokens, cut, 0, edges)
            return character_before(tokens, i, j, edges)[0] == DIGIT
        return before in (DIGIT, CURRENCY)
    if before == DIGIT and (after in (DOT, INNER)):
        _, i, j = character_after(tokens, cut, 0, edges)
        return character_after(tokens, i, j, edges)[0] == DIGIT
    return False
