"""Where tokens of a document stand in the text it was made from: file, line, characters.

A pool's table names the file and line of each document (row, member), relative to the folder that held all
sources.
The text is read there and encoded again; its tokens must be the document's, or it is not believed.
Without the file, characters and lines are those of the text that the tokens themselves give.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from recipe.errors import RecipeError
from recipe.pools import Pool
from recipe.pools.blocks import document_hash
from recipe.pools.table import Row
from recipe.run.canonical import Plain
from recipe.run.tracing.prepared import Name, Prepared
from recipe.run.tracing.tokenizers import TokenizerOf
from recipe.text.documents import Document
from recipe.text.places import locate
from recipe.text.stores import Stored
from recipe.text.tokenizers import Tokenizer

CHANGED = "changed: it does not hold the document any more"
_EXCERPT = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class SourcePlace:
    """Where some tokens come from."""

    source: Any
    """What the pool's table says: ``file:line``, ``file:row``, ``file:member``, or the file alone."""
    file: str | None = None
    """The file, where it was found and still holds the document."""
    line: int | None = None
    """Line or row of the document's record in that file, from 1; None where the file is the document."""
    member: str | None = None
    """Of an archive: stem of the members that are the record; ``line`` is None."""
    characters: tuple[int, int] | None = None
    """Of the document's text, half-open, from 0."""
    lines: tuple[int, int] | None = None
    """Of the document's text, first and last, from 1."""
    text: str | None = None
    """The characters themselves; of many, the first ones."""
    known_from: Literal["file", "tokens"] | None = None
    """Whose text characters and lines are of."""
    missing: str | None = None
    """What is not here, and how to give it."""

    @property
    def wanted(self) -> str | None:
        """What is to be told as missing: not a file whose lines the tokens gave, unless it changed."""
        told = self.missing is not None and (self.characters is None or self.missing.endswith(CHANGED))
        return self.missing if told else None

    def to_plain(self) -> Plain:
        """Plain values for JSON; what is not known is left out."""
        plain = {key: value for key, value in asdict(self).items() if value is not None}
        return {key: list(value) if isinstance(value, tuple) else value for key, value in plain.items()}


@dataclass(frozen=True, slots=True)
class _Text:
    """A document's text, and where it was found."""

    text: str | None
    known_from: Literal["file", "tokens"] | None = None
    file: str | None = None
    line: int | None = None
    member: str | None = None
    missing: str | None = None


_NO_TABLE = _Text(None, missing="the pool's document table, which names the sources: it cannot be read")


class Sources:
    """The texts of documents, as far as they are on this machine."""

    def __init__(self, tokenizer_of: TokenizerOf, roots: Sequence[str | Path] = ()) -> None:
        """``roots``: folders, or URLs of a store, that files are looked for below before the working one."""
        self.tokenizer_of = tokenizer_of
        self._roots = (*roots, Path())
        self._texts: dict[tuple[str, int], tuple[Row | None, _Text]] = {}

    def load(self, pool: Pool, documents: Iterable[int]) -> None:
        """Find the texts of some documents of a pool; each file is read once."""
        numbers = sorted({number for number in documents if (pool.name, number) not in self._texts})
        if not numbers:
            return
        try:
            rows = pool.rows(numbers)
        except (RecipeError, OSError, ValueError):  # of a table that is damaged, or not there
            self._texts |= {(pool.name, number): (None, _NO_TABLE) for number in numbers}
            return
        prepared = Prepared(pool.layout.folder)
        names = {row.document: prepared.name_of(row.source) for row in rows}
        held = prepared.read([name for name in names.values() if name is not None], self._roots)
        for row in rows:
            name = names[row.document]
            found = None if name is None else held.get(name)
            missing = _unfound(row, name, prepared.origin)
            told = missing, name is None or prepared.knows(name)
            self._texts[pool.name, row.document] = row, self._checked(pool, row, found, told)

    def place(self, pool: Pool, document: int, span: tuple[int, int]) -> SourcePlace:
        """Where tokens ``span`` of a document come from."""
        self.load(pool, [document])
        row, text = self._texts[pool.name, document]
        tokenizer = self.tokenizer_of(pool)
        if row is None or text.text is None or tokenizer is None:
            return SourcePlace(source=row and row.source, missing=text.missing)
        at = locate(tokenizer, text.text, *span)
        return SourcePlace(
            source=row.source,
            file=text.file,
            line=text.line,
            member=text.member,
            characters=(at.start, at.stop),
            lines=(at.line, at.last_line),
            text=at.text[:_EXCERPT],
            known_from=text.known_from,
            missing=text.missing,
        )

    def text(self, pool: Pool, document: int) -> str | None:
        """The text that a document was made from, where its file is here and still holds it."""
        self.load(pool, [document])
        _, found = self._texts[pool.name, document]
        return found.text if found.known_from == "file" else None

    def _checked(
        self, pool: Pool, row: Row, found: tuple[Stored, Document | None] | None, told: tuple[str, bool]
    ) -> _Text:
        """The text whose tokens are the document's: of its file, or else of the tokens themselves.

        ``told``: what is missing without the file; whether it is known how the file was read.
        """
        missing, is_known = told
        tokenizer = self.tokenizer_of(pool)
        if tokenizer is None:
            card = pool.card
            made = f"{card.tokenizer_name} ({card.tokenizer})" if card.tokenizer else "not stated"
            return _Text(None, missing=f"the pool's tokenizer, {made}: name it with --tokenizer")
        if found is not None:
            path, document = found
            if document is not None and _hash(tokenizer, document.text) == row.content_hash:
                line = document.line if document.member is None else None
                return _Text(document.text, "file", str(path), line, document.member)
            missing = f"{path} {CHANGED}" if is_known else missing
        text = _decoded(tokenizer, pool, row)
        if text is None:
            return _Text(None, missing=missing)
        return _Text(text, "tokens", missing=missing)


def _hash(tokenizer: Tokenizer, text: str) -> str:
    [tokens] = tokenizer.encode_batch([text])
    return document_hash(tokens)


def _decoded(tokenizer: Tokenizer, pool: Pool, row: Row) -> str | None:
    """The text of a document's tokens, if it gives these tokens again; None also without the tokens."""
    try:
        text = tokenizer.decode(pool.tokens(row.document))
    except (RecipeError, OSError):
        return None
    return text if _hash(tokenizer, text) == row.content_hash else None


def _unfound(row: Row, name: Name | None, origin: str | None) -> str:
    if row.source is None:
        return "a source file: the pool names none"
    made = "" if origin is None else f" (made by a program: {origin})"
    if name is None:
        return f"a source file: {row.source!s:.80} is none{made}"
    return f"{name.file}{made}: name the folder that held the sources with --sources"
