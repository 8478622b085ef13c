"""A long text → ids, a piece after another; what could only be encoded in too much memory is said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.pools.settings import token_dtype
from recipe.text.sources import ReadOptions
from recipe.text.spooled import Tokens, gathered
from recipe.text.tokenizers import LONG, Tokenizer

ALONE = 2 * LONG
"""Characters of a piece above which no other process encodes such a one at the same time."""
MOST_SECTIONED = 16 << 20
"""Bytes of a text whose sections are looked for: the span of every token is in memory."""


class TooLongError(Exception):
    """A text that would take too much memory: what is expected."""


def encode_long(
    text: str,
    tokenizer: Tokenizer,
    max_line_bytes: int,
    folder: Path | None,
    alone: AbstractContextManager[Any],
) -> Tokens:
    """Ids of a text that is longer than a piece, as of the whole.

    Args:
        text: any.
        tokenizer: says where the text can be taken apart.
        max_line_bytes: as asked for; above the default more memory is taken.
        folder: for a file of many ids; None: they are in memory.
        alone: held while a long piece is encoded.

    Raises:
        TooLongError: a piece is longer than what is encoded together.
    """

    def encoded() -> Iterator[NDArray[Any]]:
        start = 0
        for piece in tokenizer.pieces(text):
            _check(piece, start, tokenizer, max_line_bytes)
            encoder = tokenizer.later if start else tokenizer
            if len(piece) > ALONE:
                with alone:
                    yield encoder.encode_batch([piece])[0]
            else:
                yield encoder.encode_batch([piece])[0]
            start += len(piece)

    return gathered(encoded(), token_dtype(tokenizer.vocab_size), folder)


def spans_of(text: str, tokenizer: Tokenizer, max_line_bytes: int) -> NDArray[np.int64]:
    """int64[num_tokens, 2]: half-open characters of each token, of a text of any length.

    Raises:
        TooLongError: they would take too much memory.
    """
    if len(text) <= LONG:
        return tokenizer.offsets(text)
    if (size := _size(text, most := scaled(MOST_SECTIONED, max_line_bytes))) > most:
        raise TooLongError(f"at most {most:,} bytes where sections are asked for, not {size:,}")
    found, start = [], 0
    for piece in tokenizer.pieces(text):
        _check(piece, start, tokenizer, max_line_bytes)
        found.append((tokenizer.later if start else tokenizer).offsets(piece) + start)
        start += len(piece)
    return np.concatenate(found)


def scaled(limit: int, max_line_bytes: int) -> int:
    """A limit that holds for the default of ``max_line_bytes``, and grows with what is above it."""
    default = ReadOptions().max_line_bytes
    return limit * max(default, max_line_bytes) // default


def _check(piece: str, start: int, tokenizer: Tokenizer, max_line_bytes: int) -> None:
    most = scaled(tokenizer.most_whole, max_line_bytes)
    if (size := _size(piece, most)) > most:
        needed = -(-size * ReadOptions().max_line_bytes // tokenizer.most_whole)
        raise TooLongError(
            f"at most {most:,} bytes that the tokenizer {tokenizer.name} has to encode together; there are "
            f"{size:,} from character {start:,} on, for which --max-line-bytes {needed} would be needed"
        )


def _size(text: str, most: int) -> int:
    """Bytes of a text in UTF-8, counted where they may be more than ``most``."""
    return len(text.encode()) if 4 * len(text) > most and not text.isascii() else len(text)
