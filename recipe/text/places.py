"""Token span → characters and lines of its text, by encoding the text again."""

from __future__ import annotations

from dataclasses import dataclass

from recipe.text.tokenizers import Tokenizer


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where some tokens of a document stand in its text."""

    start: int
    """First character, from 0."""
    stop: int
    """Character after the last one."""
    line: int
    """Line of the first character, from 1."""
    column: int
    """Character in that line, from 1."""
    last_line: int
    """Line of the last character."""
    text: str
    """The characters themselves."""


def locate(tokenizer: Tokenizer, text: str, start: int, stop: int) -> Place:
    """Characters and lines that the tokens ``start..stop`` of a text come from.

    Args:
        tokenizer: the one the document was prepared with.
        text: the document's whole text.
        start: first token, from 0, marks not counted.
        stop: token after the last one; above ``start``.

    Returns:
        The smallest span of whole characters that holds the tokens.

    Raises:
        ValueError: the text has no such tokens.

    >>> from recipe.text.tokenizers import ByteTokenizer
    >>> locate(ByteTokenizer(), "one\\nzwé", 5, 8).text
    'wé'
    """
    spans = tokenizer.offsets(text)
    if not 0 <= start < stop <= len(spans):
        raise ValueError(f"tokens {start}..{stop} of a text of {len(spans)}")
    first, last = int(spans[start:stop, 0].min()), int(spans[start:stop, 1].max())
    return Place(
        start=first,
        stop=last,
        line=text.count("\n", 0, first) + 1,
        column=first - text.rfind("\n", 0, first),
        last_line=text.count("\n", 0, max(first, last - 1)) + 1,
        text=text[first:last],
    )
