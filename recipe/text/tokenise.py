"""A task of the first pass: records → tokens → one sorted run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.errors import RecipeError
from recipe.pools.sections import Section
from recipe.pools.settings import token_dtype
from recipe.text.documents import Document, Refusal, Tally, refuse_all
from recipe.text.inputs import Batch
from recipe.text.kinds import TABLES
from recipe.text.leads import lead_of
from recipe.text.long_texts import TooLongError, encode_long, spans_of
from recipe.text.readers import parse_batch
from recipe.text.records import EXCERPT_CHARACTERS, Raw
from recipe.text.sections import section_starts, token_sections
from recipe.text.shuffle import unit_key
from recipe.text.sources import ReadOptions, SourceFile
from recipe.text.spill import Entry, Run, encode_run
from recipe.text.spooled import Tokens
from recipe.text.tokenizers import LONG, Tokenizer

#: Characters that are encoded in one call.
ENCODE_CHARACTERS = 1 << 20

_NOBODY_ELSE = nullcontext()


@dataclass(frozen=True, kw_only=True)
class Work:
    """What every task needs; it is sent to where tasks run."""

    tokenizer: Tokenizer
    fingerprint: str
    seed: int
    read: ReadOptions
    files: tuple[SourceFile, ...]
    salt: int | None = None
    """Of a split; where equal documents are looked for, there is one."""

    def run(
        self,
        number: int,
        batch: Batch,
        folder: Path | None = None,
        alone: AbstractContextManager[Any] = _NOBODY_ELSE,
    ) -> Run:
        """Tokenise one batch: a function of the batch and its number alone, the same wherever it runs.

        Args:
            number: of the task.
            batch: its records.
            folder: for ids that are too many for memory, in a file without a name; None: they are in memory.
            alone: held while much is encoded together.

        Raises:
            RecipeError: ``on_bad: error`` and a record gives no document.
        """
        tally = Tally()
        documents, refusals, places = self._documents(number, batch, tally)
        entries = []
        for (document, place), tokens in zip(
            zip(documents, places, strict=True), self._encode(documents, folder, alone), strict=True
        ):
            try:
                if isinstance(tokens, TooLongError):
                    raise tokens
                entry = self._entry(document, place, tokens) if len(tokens) else None
            except TooLongError as error:
                tally.take_back(document)
                tally.refuse("too_long")
                refusals.append(self._refusal(document, str(error)))
                continue
            if entry is None:
                tally.take_back(document)
                tally.skip_empty()
            else:
                entries.append(entry)
        if refusals and self.read.on_bad == "error":
            raise refuse_all(refusals, is_all=not entries)
        tally.check()
        report = {"tally": tally.to_plain(), "refused": [refusal.to_plain() for refusal in refusals]}
        return encode_run(entries, token_dtype(self.tokenizer.vocab_size), report, self.salt)

    def _entry(self, document: Document, place: tuple[int, int], tokens: Tokens) -> Entry:
        row = (document.id, document.group, dict(document.tags), document.place)
        row += self._sections(document)
        row += self._lead(document, len(row) - 4)
        key = unit_key(self.seed, document)
        return Entry(key=key, file=place[0], line=place[1], tokens=tokens, row=row)

    def _refusal(self, document: Document, detail: str) -> Refusal:
        is_row = any(file.name == document.source and file.kind in TABLES for file in self.files)
        return Refusal(
            source=document.source,
            line=document.line,
            reason="too_long",
            detail=detail,
            excerpt=document.text[:EXCERPT_CHARACTERS].rstrip("\n"),
            member=document.member,
            unit="row" if is_row else "line",
        )

    def _documents(
        self, number: int, batch: Batch, tally: Tally
    ) -> tuple[list[Document], list[Refusal], list[tuple[int, int]]]:
        """Documents with text, refusals, and the (file, line) by which a group is ordered."""
        records = [item for item in batch if isinstance(item, Raw)]
        if records:
            documents, refusals = parse_batch(records, self.files, self.read, tally)
            index = {self.files[raw.file].name: raw.file for raw in records}
            return documents, refusals, [(index[d.source], d.line or 0) for d in documents]
        made = [item for item in batch if isinstance(item, Document)]
        for document in made:
            if document.text:
                tally.keep(document)
            else:
                tally.skip_empty()
        places = [(number, place) for place, document in enumerate(made) if document.text]
        return [document for document in made if document.text], [], places

    def _lead(self, document: Document, said: int) -> tuple[Any, ...]:
        """What stands in front of a document, behind as much as is said of it anyway (its sections)."""
        if self.read.marker is None:
            return ()
        lead = lead_of(document, self.read.marker, self.tokenizer)
        return (None, lead)[said:] if lead else ()

    def _sections(self, document: Document) -> tuple[Any, ...]:
        """The document's sections in tokens, if anything is said of them."""
        found = document.sections
        if found is None and self.read.sections is not None:
            found = tuple(Section(start) for start in section_starts(document.text, self.read.sections))
        if found is None:
            return ()
        if all(section == Section(0) for section in found):
            return ([],)
        try:
            return (token_sections(found, self._spans(document.text)),)
        except ValueError as error:
            raise RecipeError.single(
                "sections", document.place, given=str(error), expected="a token of its own for each section",
                fix="join the sections, or leave out their ids",
            ) from error  # fmt: skip

    def _spans(self, text: str) -> Any:
        return spans_of(text, self.tokenizer, self.read.max_line_bytes)

    def _encode(
        self, documents: list[Document], folder: Path | None, alone: AbstractContextManager[Any]
    ) -> Iterator[Tokens | TooLongError]:
        """Ids of each document, in calls of bounded size; or why there are none."""
        texts: list[str] = []
        size = 0
        for document in documents:
            if len(document.text) > LONG:
                if texts:
                    yield from self.tokenizer.encode_batch(texts)
                texts, size = [], 0
                try:
                    yield encode_long(document.text, self.tokenizer, self.read.max_line_bytes, folder, alone)
                except TooLongError as error:
                    yield error
                continue
            texts.append(document.text)
            size += len(document.text)
            if size >= ENCODE_CHARACTERS:
                yield from self.tokenizer.encode_batch(texts)
                texts, size = [], 0
        if texts:
            yield from self.tokenizer.encode_batch(texts)
