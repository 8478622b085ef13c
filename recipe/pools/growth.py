"""Pools that grow: the same parts, and more behind them.

A pool has grown from another one if that one is its beginning: its first parts, with the same tokens,
documents and groups, in the same order. Nothing that was read of it is another document then, and a
reading that is under way can be finished over what was there when it began.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from recipe.errors import Problem, RecipeError
from recipe.pools.adopting import EXTENDS, refuse_pairs
from recipe.pools.card import (
    LEADS_NAME,
    NEEDS_NAME,
    OFFSETS_NAME,
    REPEATS_NAME,
    SECTIONS_NAME,
    UNITS_NAME,
    Card,
    FileRecord,
    extent_units,
)
from recipe.pools.leads import LEADS_DTYPE
from recipe.pools.npy_files import npy_record
from recipe.pools.opening import open_pool
from recipe.pools.pool import Pool
from recipe.pools.sections import Section
from recipe.pools.views import View, held_documents, view_fingerprint
from recipe.pools.write import add_documents
from recipe.pools.writer import PoolWriter

_PIECE = 1 << 20
_INT64 = np.dtype("<i8")


class Prefix(NamedTuple):
    """What a pool was before it grew."""

    units: int
    extent_units: int
    documents: int
    parts: int


def extend_pool(  # noqa: PLR0913  the contract names every option
    old: Path | str,
    path: Path | str,
    documents: Iterable[ArrayLike],
    *,
    ids: Iterable[int | str] | None = None,
    groups: Iterable[int | str | None] | None = None,
    tags: Iterable[Mapping[str, Any] | None] | None = None,
    sections: Iterable[Sequence[int | Section] | None] | None = None,
    leads: Iterable[ArrayLike] | None = None,
    repeats: int | None = None,
    part_tokens: int | None = None,
) -> Pool:
    """Write a pool that holds another one and, behind it, more documents; and open it.

    The old pool stays as it is. Its token files are linked, or copied to another disk; they must not be
    written to, as no pool must.

    Args:
        old: folder of the pool that is extended.
        path: folder of the new one; nothing may be there.
        documents: integer arrays without marks, made by the tokenizer of the old ones.
        ids: of the new documents, unique in the whole pool; default: their numbers in it.
        groups: of the new documents; none goes on with a group of the old ones.
        tags: attributes of the new documents.
        sections: of the new documents; those of the old ones are kept.
        leads: of the new documents; likewise.
        repeats: as for ``write_pool``; where the old pool has them, the new one has them anyway.
        part_tokens: stored tokens of a new part at most.

    Raises:
        RecipeError: as for ``write_pool``; or the old pool is not one of our own.
        ValueError: ids, groups, tags or sections are not as many as the documents.
    """
    first = open_pool(old, Path(old).name)
    refuse_pairs(first, Path(path))
    card = first.card
    marks = {"eos": card.eos, "bos": card.bos}
    tokenizer = {"tokenizer": card.tokenizer, "tokenizer_name": card.tokenizer_name}
    size = {"vocab_size": card.vocab_size, "part_tokens": part_tokens}
    more = {"repeats": repeats, "extends": first}
    with PoolWriter(path, **size, **marks, **tokenizer, **more) as writer:  # type: ignore[arg-type]
        add_documents(writer, documents, ids=ids, groups=groups, tags=tags, sections=sections, leads=leads)
        return writer.close(dropped=card.dropped)


def grown_from(old: Pool | str, new: Pool) -> Prefix:
    """What a pool was before it grew, proven by content.

    Args:
        old: the pool as it was, or its fingerprint alone: enough for pools that :func:`extend_pool` made,
            and for Megatron pairs.
        new: the pool that holds more.

    Raises:
        RecipeError: it does not begin with the old one; the first part that differs is named.
        ValueError: it is the old one.
    """
    fingerprint = old if isinstance(old, str) else old.fingerprint
    if fingerprint == new.fingerprint:
        raise ValueError(f"pool {new.name!r} has not grown")
    was, becomes = old.parent if isinstance(old, View) else old, new.parent if isinstance(new, View) else new
    own = becomes.layout.table is not None
    for prefix in _own_prefixes(was, becomes, new) if own else _pair_prefixes(was, becomes):
        found = _own_fingerprints(becomes, prefix) if own else [_pairs(becomes, prefix.parts)]
        if not isinstance(new, View) and fingerprint in found:
            return prefix
        if isinstance(new, View) and fingerprint in (view_fingerprint(one, new.filter) for one in found):
            return _within(new, prefix)
    raise RecipeError(f"pool {new.name} has not grown from what it was", _differences(was, becomes))


def _within(view: View, prefix: Prefix) -> Prefix:
    """What a view was when its folder was its beginning."""
    units, documents, tokens = int(np.searchsorted(view.members, prefix.units)), 0, 0
    for numbers in held_documents(view):
        before = numbers[numbers < prefix.documents]
        documents += len(before)
        tokens += int((np.asarray(view.offsets[before + 1]) - np.asarray(view.offsets[before])).sum())
    return Prefix(units, extent_units(tokens, units), documents, prefix.parts)


def _own_prefixes(old: Pool | str, new: Pool, named: Pool) -> Iterator[Prefix]:
    """Where the old pool may end in the new one: as it says itself, or as the new one's card notes.

    A view that is ``named`` may have been one of any pool that the card notes.
    """
    if isinstance(old, Pool):
        entries = [(len(old.card.written_parts), old.num_units, old.extent_units)]
    else:
        noted = new.card.source.get(EXTENDS, ())
        known = [e for e in noted if isinstance(named, View) or e["fingerprint"] == old]
        entries = [(e["parts"], e["units"], e["extent_units"]) for e in known]
    edges = np.cumsum([0, *(part.documents for part in new.card.written_parts)])
    for parts, units, extent in entries:
        if parts >= len(edges) - 1:
            continue
        documents = int(edges[parts])
        edge = units if new.units is None else int(new.units[min(units, new.num_units)])
        if edge == documents:
            yield Prefix(units, extent, documents, parts)


def _pair_prefixes(old: Pool | str, new: Pool) -> Iterator[Prefix]:
    """Where pairs may have ended before more of them were added."""
    counts = range(new.num_parts - 1, 0, -1) if isinstance(old, str) else [old.num_parts]
    for parts in counts:
        if parts < new.num_parts:
            documents, tokens = int(new.part_documents[parts]), int(new.part_offsets[parts])
            yield Prefix(documents, extent_units(tokens, documents), documents, parts)


def _pairs(new: Pool, parts: int) -> str:
    assert new.layout.prefix is not None
    return new.layout.prefix(0, parts)


def _own_fingerprints(new: Pool, prefix: Prefix) -> list[str]:
    """Fingerprints of the pool that the first parts of a pool are: with or without files of units, sections
    and repeats.

    A pool whose documents have no groups has no units, whatever came behind it; and so with the others.
    """
    found = [{OFFSETS_NAME: npy_record(new.offsets, _INT64, prefix.documents + 1)}]
    last = int(new.offsets[prefix.documents])
    if new.units is not None:
        found += [files | {UNITS_NAME: npy_record(new.units[: prefix.units + 1], _INT64)} for files in found]
    if new.sections is not None:
        sections = npy_record(new.sections[: np.searchsorted(new.sections, last)], _INT64)
        with_sections = [files | {SECTIONS_NAME: sections} for files in found]
        found += with_sections
        if new.needs is not None:
            needs = npy_record(new.needs[: np.searchsorted(new.needs[:, 0], last)].reshape(-1), _INT64)
            found += [files | {NEEDS_NAME: needs} for files in with_sections]
    if new.repeats is not None:
        repeats = npy_record(new.repeats[: np.searchsorted(new.repeats[:, 0], last)].reshape(-1), _INT64)
        found += [files | {REPEATS_NAME: repeats} for files in found]
    if new.leads is not None:
        leads = npy_record(new.leads[: prefix.documents], LEADS_DTYPE)
        found += [files | {LEADS_NAME: leads} for files in found]
    return [_beginning(new.card, prefix, files).fingerprint for files in found]


def _beginning(card: Card, prefix: Prefix, files: Mapping[str, FileRecord]) -> Card:
    return replace(
        card,
        num_documents=prefix.documents,
        num_units=prefix.units,
        extent_units=prefix.extent_units,
        parts=card.written_parts[: prefix.parts],
        origin_parts=(),
        low_offsets=None,
        files=files,
    )


def _differences(old: Pool | str, new: Pool) -> list[Problem]:
    """Why a pool has not grown from another one."""
    where, fix = str(new.path), "make it with extend_pool, or give it to the run as a pool of its own"
    if isinstance(old, str):
        holds = "a pool that begins with the one that was read"
        given = "no beginning" if new.layout.table is None else "a card that notes nothing it extends"
        return [Problem(where, f"{given} with fingerprint {old}", holds, fix)]
    if (old.layout.table is None) != (new.layout.table is None):
        return [Problem(where, "another kind of pool", f"the kind of {old.path}", fix)]
    problems = []
    for name in ("token_dtype", "vocab_size", "bos", "eos", "bos_stored", "eos_stored", "tokenizer"):
        was, becomes = getattr(old.card, name), getattr(new.card, name)
        if was != becomes:
            problems.append(Problem(f"{where}: {name}", str(becomes), f"{was}, as in {old.path}", fix))
    return problems or [_different_part(old, new, where, fix)]


def _different_part(old: Pool, new: Pool, where: str, fix: str) -> Problem:
    """The first part of a pool that is not the other one's."""
    mine, others = _part_names(old), _part_names(new)
    if len(others) <= len(mine):
        expected = f"more than {len(mine)}, the parts of {old.path}"
        return Problem(where, f"{len(others)} parts", expected, fix)
    for k, name in enumerate(mine):
        if _part_of(old, k) != _part_of(new, k):
            given = f"part {others[k]}.bin with other contents"
            return Problem(where, given, f"{old.layout.folder / name}.bin, as it was", fix)
    given = "a group of documents that goes on behind them"
    return Problem(where, given, f"units that end where {old.path} ends", fix)


def _part_names(pool: Pool) -> Sequence[str]:
    """Of the parts as they were written, or of imported files."""
    if pool.layout.table is None:
        return pool.layout.part_names
    return [part.name for part in pool.card.written_parts]


def _part_of(pool: Pool, k: int) -> object:
    if pool.layout.table is None:
        assert pool.layout.prefix is not None
        return pool.layout.prefix(k, k + 1)
    part = pool.card.written_parts[k]
    return part.documents, part.tokens, part.hash, part.index_hash, part.rows_hash
