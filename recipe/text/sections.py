"""Where the sections of a text begin: at Markdown's headings, Python's definitions, or where its record says.

Rules of lines and marks, not parsers: the same text has the same sections under every version of Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from recipe.pools.sections import Section

Sectioning = Literal["markdown", "python"]
SECTIONS_VERSION = 1
"""A change of the rules below that changes a place bumps it."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|$)")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)[ \t]*$")
_NO_TITLE = re.compile(r"\s*$| {4}|\t| {0,3}(?:[>*+-] |\d+[.)] |[|`~#=*_-]{3})")
_LITERAL = re.compile(
    r'"""(?:\\.|[^\\])*?"""|'
    r"'''(?:\\.|[^\\])*?'''|"
    r'"(?:\\.|[^"\\\r\n])*"|'
    r"'(?:\\.|[^'\\\r\n])*'|"
    r"#[^\r\n]*",
    re.DOTALL,
)
_DEFINITION = re.compile(r"(?:async[ \t]+def|def|class)\b")
_NO_END = re.compile(r"[^\r\n]")
_GOES_ON = re.compile(r"[ \t)\]}]|$")


def section_starts(text: str, kind: Sectioning) -> list[int]:
    """Characters at which sections begin, rising; 0 is among them if one begins with the text.

    ``markdown``: lines that are headings (``#`` to ``######``, or one line of text after a blank line
    underlined with ``=`` or ``-``), outside fenced code and the front matter. ``python``: lines that
    begin with ``def``, ``async def`` or ``class``, or the first of the decorators above them, outside
    strings.

    >>> section_starts("intro\\n# One\\n```\\n# no\\n```\\nTwo\\n", "markdown")
    [6]
    >>> section_starts("import os\\n\\n@cached\\ndef f():\\n    pass\\n", "python")
    [11]
    """
    return list(_RULES[kind](text))


def token_sections(sections: Sequence[Section], spans: NDArray[np.int64]) -> list[Section]:
    """Sections of a text as sections of its tokens.

    A section begins with the token that holds its first character; where that token begins inside
    another character, with the last one before it that does not.

    Args:
        sections: starts in characters of the text, rising.
        spans: int64[num_tokens, 2]: half-open characters of each token, as ``Tokenizer.offsets``.

    Raises:
        ValueError: a section with an id or needs has no token, or not one of its own.

    >>> token_sections([Section(3)], np.array([[0, 2], [2, 5], [5, 6]]))
    [Section(start=1, id=None, needs=())]
    """
    stops = np.maximum.accumulate(spans[:, 1])
    whole = np.flatnonzero(np.append(True, spans[1:, 0] >= stops[:-1])[: len(spans)])
    holds = np.searchsorted(stops, [section.start for section in sections], side="right")
    found: dict[int, Section] = {}
    for section, token in zip(sections, holds.tolist(), strict=True):
        is_named = section.id is not None or bool(section.needs)
        if token == len(spans):
            if is_named:
                raise ValueError(f"the section at character {section.start} ({section.id!r}) has no token")
            continue
        start = int(whole[np.searchsorted(whole, token, side="right") - 1])
        if start in found and is_named and found[start][1:] != (None, ()):
            given = f"{found[start].id!r} and {section.id!r}"
            raise ValueError(f"the sections {given} begin in one token, at character {section.start}")
        if start not in found or is_named:
            found[start] = section._replace(start=start)
    return list(found.values())


def _lines(text: str, start: int = 0) -> Iterator[tuple[int, str]]:
    """First character and contents of each line, its end left out."""
    for line in _LINE.finditer(text, start):
        yield line.start(), line[0].rstrip("\r\n")


def _markdown(text: str) -> Iterator[int]:
    fence, title, after_blank = "", -1, True
    for start, line in _lines(text, _front_matter(text)):
        marks = _FENCE.match(line)
        if fence:
            is_end = marks is not None and marks[1].startswith(fence) and not line[marks.end() :].strip()
            fence, title, after_blank = "" if is_end else fence, -1, True
        elif marks is not None and not (marks[1][0] == "`" and "`" in line[marks.end() :]):
            fence = marks[1]
        elif _HEADING.match(line):
            yield start
            title, after_blank = -1, True
        elif title >= 0 and _UNDERLINE.match(line):
            yield title
            title, after_blank = -1, True
        else:
            title = start if after_blank and not _NO_TITLE.match(line) else -1
            after_blank = not line.strip()


def _front_matter(text: str) -> int:
    """Where Markdown begins, behind what stands between two lines of dashes at the top."""
    if not text.startswith("---"):
        return 0
    for start, line in _lines(text):
        if start == 0 and line.rstrip() != "---":
            return 0
        if start > 0 and line.rstrip() in ("---", "..."):
            return start + len(line)
    return 0


def _python(text: str) -> Iterator[int]:
    decorated = -1
    for start, line in _lines(_LITERAL.sub(lambda found: _NO_END.sub(" ", found[0]), text)):
        if line.startswith("@"):
            decorated = start if decorated < 0 else decorated
        elif _DEFINITION.match(line):
            yield start if decorated < 0 else decorated
            decorated = -1
        elif not _GOES_ON.match(line):
            decorated = -1


_RULES: dict[str, Callable[[str], Iterator[int]]] = {"markdown": _markdown, "python": _python}
