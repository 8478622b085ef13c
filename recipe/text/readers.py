"""JSON lines, tables, tars and text trees → documents, streaming, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from recipe.text.archives import raw_members
from recipe.text.documents import Document, Refusal, Tally, refuse_all
from recipe.text.kinds import COMPRESSED, TABLES
from recipe.text.records import Raw, parse
from recipe.text.sources import ReadOptions, SourceFile, list_sources
from recipe.text.streams import TruncatedError, open_bytes, read_all, read_line
from recipe.text.tables import raw_rows

#: Stored bytes parsed together; bad records of one batch are told together.
BATCH_BYTES = 1 << 20
#: Records of a batch at most: rows without a text have no bytes.
BATCH_RECORDS = 1 << 16
_LONG_FIELD = 1 << 10


def read_documents(
    sources: Sequence[str | Path],
    options: ReadOptions | None = None,
    *,
    tally: Tally | None = None,
    quarantine: Callable[[Refusal], None] | None = None,
) -> Iterator[Document]:
    """The documents of JSON lines, Parquet, Arrow, tars and text trees, in the order of `list_sources`.

    Lines end at ``\\n`` alone. Empty texts are counted, not given. ``tally`` is filled while reading;
    ``quarantine`` is called with every record left out.

    Raises:
        RecipeError: a source cannot be read, or (``on_bad: error``) records that give no document,
            with the place of each.
    """
    options = options or ReadOptions()
    files = list_sources(sources, options)
    tally = tally if tally is not None else Tally()
    for batch in raw_batches(files, options, BATCH_BYTES):
        documents, refusals = parse_batch(batch, files, options, tally)
        for refusal in refusals:
            if quarantine is not None:
                quarantine(refusal)
        yield from documents


def parse_batch(
    batch: Sequence[Raw], files: Sequence[SourceFile], options: ReadOptions, tally: Tally
) -> tuple[list[Document], list[Refusal]]:
    """Documents with text, and refusals, of some records; both are counted.

    Raises:
        RecipeError: ``on_bad: error`` and there is a refusal; all of the batch are named.
    """
    documents: list[Document] = []
    refusals: list[Refusal] = []
    for raw in batch:
        if files[raw.file].kind == "jsonl" and raw.fault is None and not raw.data.strip():
            tally.blank_lines += 1
            continue
        result = parse(raw, files[raw.file], options)
        if isinstance(result, Refusal):
            tally.refuse(result.reason)
            refusals.append(result)
        elif not result.text:
            tally.skip_empty()
        else:
            tally.keep(result)
            documents.append(result)
    if refusals and options.on_bad == "error":
        raise refuse_all(refusals, is_all=not documents)
    tally.check()
    return documents, refusals


def raw_batches(
    files: Sequence[SourceFile],
    options: ReadOptions,
    batch_bytes: int,
    digests: Sequence[Any] | None = None,
) -> Iterator[list[Raw]]:
    """Stored records, about ``batch_bytes`` a batch; the limits depend on the files alone.

    ``digests`` (one `hashlib` object a file) are fed the stored bytes.
    """
    batch: list[Raw] = []
    size = 0
    for index, file in enumerate(files):
        digest = digests[index] if digests is not None else None
        for raw in _raw_records(index, file, options, digest):
            batch.append(raw)
            size += len(raw.data) + _fields_bytes(raw.fields)
            if size >= batch_bytes or len(batch) >= BATCH_RECORDS:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _fields_bytes(fields: Any) -> int:
    """Of what there is beside the text, where it is long: JSON, or texts in columns."""
    if isinstance(fields, bytes):
        return len(fields)
    return sum(
        len(value) if len(value) > _LONG_FIELD else 0
        for value in (fields or {}).values()
        if isinstance(value, str | list)
    )


def _raw_records(index: int, file: SourceFile, options: ReadOptions, digest: Any) -> Iterator[Raw]:
    if file.kind in TABLES:
        return raw_rows(index, file, options, digest)
    if file.kind == "tar":
        return raw_members(index, file, options, digest)
    return _raw_lines(index, file, options, digest)


def _raw_lines(index: int, file: SourceFile, options: ReadOptions, digest: Any) -> Iterator[Raw]:
    """Lines of a file, or the file itself."""
    limit = options.max_line_bytes
    if file.size == 0 and (file.kind == "jsonl" or file.path.suffix.lower() in COMPRESSED):
        yield Raw(index, None, b"", "empty_file", "records; the file has no byte")
        return
    with open_bytes(file.path, digest) as stream:
        if file.kind == "text":
            try:
                data, cut = read_all(stream, limit)
                yield _raw(index, None, data, cut, limit)
            except TruncatedError as error:
                yield _truncated(index, None, error)
            return
        line = 0
        while True:
            line += 1
            try:
                data, cut = read_line(stream, limit)
            except TruncatedError as error:
                yield _truncated(index, line, error)
                return
            if not data:
                return
            yield _raw(index, line, data, cut, limit)


def _raw(index: int, line: int | None, data: bytes, cut: bool, limit: int) -> Raw:
    if not cut:
        return Raw(index, line, data)
    return Raw(index, line, data[:1024], "too_long", f"at most {limit:,} bytes")


def _truncated(index: int, line: int | None, error: TruncatedError) -> Raw:
    return Raw(index, line, b"", "truncated", f"an archive that is whole: {error}")
