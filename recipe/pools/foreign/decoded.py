"""Tokens that lie so that they cannot be mapped: written out once, one after another, kept by content.

Such a copy is made a file at a time, in bounded memory, with the ends of documents beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.pools.card import Marks
from recipe.pools.foreign.ends import ENDS, EndsWriter, damaged, map_ends, read_ends, tokens_digest
from recipe.pools.foreign.form import Form
from recipe.pools.foreign.identity import key_of
from recipe.pools.foreign.lists_of_ids import Rows
from recipe.pools.foreign.scanning import MarkEnds
from recipe.pools.foreign.sidecar import LOG, derived
from recipe.pools.foreign.token_file import Stretch, TokenFile, refuse, refuse_negative

_FORMAT = 1
_LARGE_BYTES = 1 << 28


class Encoded(NamedTuple):
    """A file that has to be decoded."""

    path: Path
    files: tuple[Path, ...]
    dtype: np.dtype[Any]
    rule: tuple[object, ...]
    """What decides how it is decoded, as plain values."""
    rows: Callable[[], Iterator[Rows]]
    beside: tuple[Path, ...] = ()


def decode(encoded: Encoded, form: Form, marks: Marks) -> TokenFile:
    """The tokens of a file, decoded unless they already are.

    Raises:
        RecipeError: ids that do not fit their type, no room, or a file that cannot be decoded.
    """
    path, (kind, mark) = encoded.path, _delimiter(encoded.path, form, marks)
    rule = [_FORMAT, *encoded.rule, encoded.dtype.name, kind, mark]
    kept, ends = derived(
        path, key_of(encoded.files, rule), ["tokens", ENDS], partial(_write, encoded, (kind, mark))
    )
    size = kept.stat().st_size
    stretch = Stretch(kept, 0, size // encoded.dtype.itemsize, encoded.dtype)
    count = len(map_ends(ends, stretch.count))
    unended = _unended(stretch, kind, mark)
    if unended and count == 1:
        raise refuse(
            path, given=f"no token {mark} in its {stretch.count} tokens",
            expected=f"documents that have {kind}",
            fix=f"correct {kind}, or leave documents out: each row is one",
        )  # fmt: skip
    return TokenFile(
        files=encoded.files,
        tokens=stretch,
        num_documents=count,
        ends=lambda: read_ends(ends, stretch.count),
        verify=lambda: _verify(stretch, ends),
        beside=encoded.beside,
        unended=unended,
        copied_bytes=size + ends.stat().st_size,
        rule=encoded.rule,
    )


def _delimiter(path: Path, form: Form, marks: Marks) -> tuple[str, int | None]:
    """What ends documents, and its id if it is a mark."""
    kind = form.documents or "row"
    mark = {"eos": marks[0], "bos": marks[1]}.get(kind)
    if kind in ("eos", "bos") and mark is None:
        raise refuse(path, given=f"documents: {kind}", expected="the id of that mark",
                     fix=f"write {kind}: ID")  # fmt: skip
    if form.boundaries is not None:
        raise refuse(path, given=f"boundaries: {form.boundaries}", expected="files of nothing but tokens",
                     fix="leave it out: rows are documents, or write documents: eos")  # fmt: skip
    return kind, mark


def _write(encoded: Encoded, delimiter: tuple[str, int | None], paths: tuple[Path, ...]) -> None:
    """Decode a file, some rows at a time, into tokens and ends of documents."""
    size = encoded.path.stat().st_size
    if size >= _LARGE_BYTES:
        LOG.warning("decoding %s (%d bytes) into %s", encoded.path, size, paths[0].parent)
    with paths[0].open("wb") as tokens, paths[1].open("wb") as out:
        writer, digest, at = EndsWriter(out), hashlib.blake2b(digest_size=32), 0
        sink = _sink(writer, *delimiter)
        for rows in encoded.rows():
            ids = _narrowed(rows.ids, encoded, at)
            data = np.ascontiguousarray(ids).data
            tokens.write(data)
            digest.update(data)
            sink(Rows(ids, rows.lengths))
            at += len(ids)
        sink(None)
        writer.close(digest.digest())


def _verify(tokens: Stretch, ends: Path) -> None:
    """Compare the decoded tokens with their hash."""
    found, expected = (
        hashlib.blake2b(tokens.map().data, digest_size=32).hexdigest(),
        tokens_digest(ends, tokens.count),
    )
    if found != expected:
        raise damaged(tokens.path, f"contents with hash {found[:16]}…", f"{expected[:16]}…, as was written")


def _sink(writer: EndsWriter, kind: str, mark: int | None) -> Callable[[Rows | None], None]:
    """What writes the ends of documents of rows that follow each other; None is the end."""
    if kind in ("eos", "bos"):
        assert mark is not None
        found = MarkEnds(writer, mark, begins=kind == "bos")
        return lambda rows: found.finish() if rows is None else found.take(rows.ids)
    seen = 0

    def by_rows(rows: Rows | None) -> None:
        nonlocal seen
        if rows is not None and kind == "row":
            writer.write(np.cumsum(rows.lengths, dtype=np.int64) + seen)
        if rows is None and kind == "file" and seen:
            writer.write(np.array([seen], np.int64))
        seen += 0 if rows is None else len(rows.ids)

    return by_rows


def _unended(tokens: Stretch, kind: str, mark: int | None) -> int:
    """Documents that are cut: the last one where marks end them, the first where they begin them."""
    if kind not in ("eos", "bos") or not tokens.count:
        return 0
    return int(int(tokens.map()[-1 if kind == "eos" else 0]) != mark)


def _narrowed(ids: NDArray[Any], encoded: Encoded, at: int) -> NDArray[Any]:
    """The ids in the type they are kept in, all of them as they were."""
    dtype = encoded.dtype
    refuse_negative(encoded.path, ids, at)
    if ids.dtype == dtype or not len(ids):
        return ids.astype(dtype, copy=False)
    limits = np.iinfo(dtype)
    wrong = np.flatnonzero((ids < limits.min) | (ids > limits.max))
    if len(wrong):
        place = int(wrong[0])
        raise refuse(
            encoded.path, given=f"id {ids[place]} at token {at + place}",
            expected=f"ids of {dtype.name} ({limits.min}..{limits.max})",
            fix="correct dtype, or the file: no model has such an id",
        )  # fmt: skip
    return ids.astype(dtype)


def kept_type(found: str, form: Form, *, halve: bool = True) -> str:
    """The type in which ids are kept: what the recipe says, else theirs, of 64 bits the half if wanted.

    >>> kept_type("int64", Form()), kept_type("uint16", Form()), kept_type("int64", Form(dtype="uint16"))
    ('int32', 'uint16', 'uint16')
    """
    halves = {"int64": "int32", "uint64": "uint32"} if halve else {"uint64": "uint32"}
    return form.dtype or halves.get(found, found)
