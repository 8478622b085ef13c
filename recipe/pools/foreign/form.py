"""What a recipe says of files that do not say it themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from recipe.config.files import Delimiter, Empty, FilesConfig, TokenType

TOKEN_TYPES: tuple[TokenType, ...] = get_args(TokenType)


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """How token files are to be read where they leave it open; nothing said: as they say themselves."""

    dtype: TokenType | None = None
    """Type of the tokens of files without a header, and of columns that are stored in another one."""
    column: str | None = None
    """Column of a table, or of MDS samples, that holds the ids."""
    documents: Delimiter | None = None
    """What ends a document: the end mark (``eos``), the begin mark of the next one (``bos``), its row, or the
    file; default: rows of tables and samples, the end mark in files of nothing but tokens."""
    boundaries: str | None = None
    """Ending of the files beside token files that say where documents end, such as ``.csv.gz``."""
    empty: Empty = "error"
    """Whether a file without a token is refused or left out."""


NOTHING_SAID = Form()


def form_of(pool: FilesConfig) -> Form:
    """What a recipe says of the files of a pool, trained on or held out."""
    return Form(
        dtype=pool.dtype,
        column=pool.column,
        documents=pool.documents,
        boundaries=pool.boundaries,
        empty=pool.empty or "error",
    )


def token_type(name: str) -> np.dtype[Any]:
    """The little-endian type of this name.

    >>> token_type("uint16").str
    '<u2'
    """
    return np.dtype(name).newbyteorder("<")
