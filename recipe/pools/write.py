"""``write_pool``: a pool from arrays that are at hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from itertools import repeat
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from recipe.pools.pool import Pool
from recipe.pools.sections import Section
from recipe.pools.writer import PoolWriter


def write_pool(  # noqa: PLR0913  the contract names every option
    path: Path | str,
    documents: Iterable[ArrayLike],
    *,
    vocab_size: int,
    eos: int | None = None,
    bos: int | None = None,
    ids: Iterable[int | str] | None = None,
    groups: Iterable[int | str | None] | None = None,
    tags: Iterable[Mapping[str, Any] | None] | None = None,
    sections: Iterable[Sequence[int | Section] | None] | None = None,
    leads: Iterable[ArrayLike] | None = None,
    repeats: int | None = None,
    part_tokens: int | None = None,
) -> Pool:
    """Write documents as a pool, in their order, and open it.

    Args:
        path: folder of the pool; nothing may be there.
        documents: integer arrays without marks; empty ones are documents too.
        vocab_size: ids are in 0..vocab_size - 1; up to 65,536 they take 16 bits, else 32.
        eos: id written after each document; special, not body.
        bos: id written before each document; likewise.
        ids: of the documents, unique; default 0..n-1.
        groups: of the documents; a group's documents stand one after another.
        tags: attributes of the documents.
        sections: tokens of each document at which its sections begin, with what they need.
        leads: special tokens in front of each document, behind ``bos``, such as the name of its file.
        repeats: find what repeats inside a document or group, in stretches of so many tokens.
        part_tokens: stored tokens of a part at most (default 2**30).

    Raises:
        RecipeError: something is at ``path``, an id is out of range, ids repeat, groups are scattered, or
            the disk is full; nothing is left behind.
        ValueError: ids, groups, tags or sections are not as many as the documents; sections that do not rise
            or lie outside their document.
    """
    size: dict[str, Any] = {"vocab_size": vocab_size, "part_tokens": part_tokens, "repeats": repeats}
    with PoolWriter(path, eos=eos, bos=bos, **size) as writer:
        add_documents(writer, documents, ids=ids, groups=groups, tags=tags, sections=sections, leads=leads)
        return writer.close()


def add_documents(  # noqa: PLR0913  everything a pool keeps of documents
    writer: PoolWriter,
    documents: Iterable[ArrayLike],
    *,
    ids: Iterable[int | str] | None,
    groups: Iterable[int | str | None] | None,
    tags: Iterable[Mapping[str, Any] | None] | None,
    sections: Iterable[Sequence[int | Section] | None] | None = None,
    leads: Iterable[ArrayLike] | None = None,
) -> None:
    """Give documents with what is said of them to a writer.

    Raises:
        ValueError: ids, groups, tags or sections are not as many as the documents.
    """
    documents = documents if isinstance(documents, Sized) else list(documents)
    columns: list[Iterable[Any]] = []
    given = {"ids": ids, "groups": groups, "tags": tags, "sections": sections, "leads": leads}
    for name, column in given.items():
        values = None if column is None else list(column)
        if values is not None and len(values) != len(documents):
            raise ValueError(f"{len(values)} {name} for {len(documents)} documents")
        columns.append(repeat(None, len(documents)) if values is None else values)
    for tokens, key, group, attributes, begins, lead in zip(documents, *columns, strict=True):
        more = {} if lead is None else {"lead": lead}
        writer.add(tokens, id=key, group=group, tags=attributes, sections=begins, **more)
