"""Making a whole pool of finished parts: offsets, units, hashes, the document table, the card."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from recipe.pools.adopting import EXTENDS, link_file
from recipe.pools.beside import COPIES_NAME
from recipe.pools.blocks import BLOCK_BYTES, DIGEST_BYTES, num_blocks
from recipe.pools.card import (
    ALL,
    CARD_NAME,
    HASHES_NAME,
    LEADS_NAME,
    NEEDS_NAME,
    NONE,
    OFFSETS_NAME,
    ORIGIN_HASHES_NAME,
    REPEATS_NAME,
    SECTIONS_NAME,
    TABLE_NAME,
    UNITS_NAME,
    WITHDRAWN_NAME,
    Card,
    FileRecord,
    MaxId,
    PartRecord,
    card_text,
    extent_units,
)
from recipe.pools.joining import joined
from recipe.pools.leads import LEADS_DTYPE, leads_of
from recipe.pools.lengths import added
from recipe.pools.megatron import read_index
from recipe.pools.npy_files import file_record, write_npy
from recipe.pools.offsets import write_offsets
from recipe.pools.part import FinishedPart, rows_path
from recipe.pools.pool import Pool
from recipe.pools.repeats import repeats_of
from recipe.pools.sections import Boundaries
from recipe.pools.settings import SETTINGS_NAME, PoolSettings
from recipe.pools.table import TableWriter, regrouped, row_groups
from recipe.pools.unique import Keys
from recipe.pools.workplace import write_durably

_INT64 = np.dtype("<i8")
_PIECE = 1 << 20


def close_pool(
    folder: Path,
    settings: PoolSettings,
    parts: Sequence[FinishedPart],
    dropped: Mapping[str, Any],
    extends: Pool | None = None,
) -> None:
    """Write everything a pool has beside its parts, the card last.

    Raises:
        RecipeError: a document id is repeated, a group's documents are scattered, or a section needs one
            that is not there.
    """
    records = tuple(part.record for part in parts)
    if extends is not None and extends.card.origin_parts:
        records = (*extends.card.origin_parts, *records[len(extends.card.parts) :])
    units, ids_are_numbers = _write_table(folder, parts, seams(settings.source, records))
    num_documents = sum(part.record.documents for part in parts)
    offsets, low = write_offsets(folder, num_documents + 1, lambda: _offsets(folder, parts))
    files = {
        OFFSETS_NAME: offsets,
        HASHES_NAME: _write_hashes(folder, parts),
        TABLE_NAME: file_record(folder / TABLE_NAME),
    }
    if units is not None:
        files[UNITS_NAME] = write_npy(folder / UNITS_NAME, units.shape, _INT64, [units])
    if (leads := leads_of(folder, parts, settings.has_bos)) is not None:
        files[LEADS_NAME] = write_npy(folder / LEADS_NAME, (num_documents,), LEADS_DTYPE, leads)
    marks = (settings.has_bos, settings.has_eos)
    files |= _write_sections(folder, joined(folder, parts, units, marks, boundaries_of(extends)))
    if (repeats := repeats_of(folder, settings, parts, units, extends)) is not None:
        files[REPEATS_NAME] = write_npy(folder / REPEATS_NAME, (repeats.size,), _INT64, [repeats.reshape(-1)])
    num_units = num_documents if units is None else len(units) - 1
    card = _card(settings, parts, num_units, dropped, files, "number" if ids_are_numbers else "table")
    card = replace(card, low_offsets=low)
    if extends is not None:
        card = _as_extended(card, folder, extends, records)
    write_durably(folder / CARD_NAME, card_text(card))


def remove_notes(folder: Path) -> None:
    """Remove what only the writing needed: from a folder that has its card, and may have lost some of it."""
    for path in folder.glob("part-*"):
        if path.suffix not in (".bin", ".idx"):
            path.unlink()
    (folder / SETTINGS_NAME).unlink()


def _card(  # noqa: PLR0913  everything a card says
    settings: PoolSettings, parts: Sequence[FinishedPart], num_units: int, dropped: Mapping[str, Any],
    files: Mapping[str, FileRecord], ids: str,
) -> Card:  # fmt: skip
    num_documents = sum(part.record.documents for part in parts)
    num_tokens = sum(part.record.tokens for part in parts)
    body_tokens = sum(part.body_tokens for part in parts)
    histograms = [np.array(part.length_histogram, dtype=np.int64) for part in parts]
    return Card(
        vocab_size=settings.vocab_size,
        token_dtype=settings.token_dtype.name,
        bos=settings.bos,
        eos=settings.eos,
        bos_stored=ALL if settings.has_bos else NONE,
        eos_stored=ALL if settings.has_eos else NONE,
        tokenizer=settings.tokenizer,
        tokenizer_name=settings.tokenizer_name,
        num_documents=num_documents,
        num_units=num_units,
        body_tokens=body_tokens,
        special_tokens=num_tokens - body_tokens,
        counted="exact",
        max_document_tokens=max((part.max_document_tokens for part in parts), default=0),
        length_histogram=tuple(reduce(added, histograms, np.zeros(0, dtype=np.int64)).tolist()),
        max_id=_max_id(parts),
        extent_units=extent_units(num_tokens, num_units),
        block_bytes=BLOCK_BYTES,
        shuffled=settings.shuffled,
        seed=settings.seed,
        ids=ids,
        dropped=dict(dropped),
        source=settings.source,
        parts=tuple(part.record for part in parts),
        files=files,
    )


def _as_extended(card: Card, folder: Path, old: Pool, written: tuple[PartRecord, ...]) -> Card:
    """The card with what a pool keeps of the one that it extends: how its parts were, what was erased."""
    if (copies := old.layout.folder / COPIES_NAME).is_file() and not (folder / COPIES_NAME).exists():
        link_file(copies, folder / COPIES_NAME)
    if old.erased.size:
        link_file(old.layout.folder / WITHDRAWN_NAME, folder / WITHDRAWN_NAME)
        files = {**card.files, WITHDRAWN_NAME: old.card.files[WITHDRAWN_NAME]}
        card = replace(card, withdrawn=old.card.withdrawn, files=files)
    if not old.card.origin_parts:
        return card
    before = np.load(old.layout.folder / ORIGIN_HASHES_NAME)
    own = np.load(folder / HASHES_NAME)
    num_old = sum(num_blocks(part.bytes, card.block_bytes) for part in old.card.parts)
    blocks = np.concatenate([before, own[num_old:]])
    record = write_npy(folder / ORIGIN_HASHES_NAME, blocks.shape, blocks.dtype, [blocks])
    return replace(card, origin_parts=written, files={**card.files, ORIGIN_HASHES_NAME: record})


def _max_id(parts: Sequence[FinishedPart]) -> MaxId | None:
    most = max(parts, key=lambda part: part.max_id, default=None)
    if most is None or most.max_id < 0:
        return None
    return MaxId(id=most.max_id, part=f"{most.record.name}.bin", position=most.max_id_position)


def _offsets(folder: Path, parts: Sequence[FinishedPart]) -> Iterator[NDArray[np.int64]]:
    base = 0
    yield np.zeros(1, dtype=np.int64)
    for part in parts:
        lengths = read_index(folder / f"{part.record.name}.idx").lengths()
        for start in range(0, len(lengths), _PIECE):
            edges = base + np.cumsum(lengths[start : start + _PIECE], dtype=np.int64)
            base = int(edges[-1])
            yield edges


def boundaries_of(pool: Pool | None) -> Boundaries | None:
    """Sections of a pool, if it has any."""
    return None if pool is None or pool.sections is None else Boundaries(pool.sections, pool.needs)


def _write_sections(folder: Path, found: Boundaries | None) -> dict[str, FileRecord]:
    files = {}
    for name, array in zip((SECTIONS_NAME, NEEDS_NAME), found or (), strict=False):
        if array is not None:
            files[name] = write_npy(folder / name, (array.size,), _INT64, [array.reshape(-1)])
    return files


def _write_hashes(folder: Path, parts: Sequence[FinishedPart]) -> FileRecord:
    digests = bytes.fromhex("".join(block for part in parts for block in part.blocks))
    blocks = np.frombuffer(digests, dtype=np.uint8).reshape(-1, DIGEST_BYTES)
    return write_npy(folder / HASHES_NAME, blocks.shape, blocks.dtype, [blocks])


def _write_table(
    folder: Path, parts: Sequence[FinishedPart], seams: NDArray[np.int64]
) -> tuple[NDArray[np.int64] | None, bool]:
    """The table of all parts; first documents of the units, and whether ids are the numbers 0..n-1.

    No unit lies across a seam: a group that does is refused as scattered.
    """
    ids, groups, extended = Keys("id"), Keys("group"), int(seams.max(initial=0))
    begun: list[tuple[int, NDArray[np.uint8]]] = []  # a bit a document
    grouped, are_numbers, number = False, True, 0
    before: pa.Table | None = None
    with TableWriter(folder / TABLE_NAME) as writer:
        for rows in _rows(folder, parts):
            writer.write(rows)
            begins = _unit_begins(rows, before)
            begins[seams[(seams >= number) & (seams < number + rows.num_rows)] - number] = True
            begun.append((number, np.packbits(begins)))
            grouped |= rows["group_int"].null_count + rows["group_str"].null_count < 2 * rows.num_rows
            are_numbers = are_numbers and _counts_up(rows["id_int"], number)
            ids.take(rows, np.ones(rows.num_rows, dtype=np.bool_))
            groups.take(rows, begins)
            before = rows.slice(rows.num_rows - 1)
            number += rows.num_rows
    if not are_numbers:
        ids.check(folder, lambda: _rows(folder, parts), extended)
    if not grouped:
        return None, are_numbers
    groups.check(folder, lambda: _rows(folder, parts), extended)
    return _edges(begun, number), are_numbers


def _edges(begun: Sequence[tuple[int, NDArray[np.uint8]]], total: int) -> NDArray[np.int64]:
    """int64[units + 1]: where bits are set, counted from the first document of each table, then ``total``."""
    firsts = (number + np.flatnonzero(np.unpackbits(bits)) for number, bits in begun)
    return np.concatenate([*firsts, np.array([total])])


def seams(source: Mapping[str, Any], parts: Sequence[PartRecord]) -> NDArray[np.int64]:
    """First documents behind the pools that this one extends; ``parts`` as they were written."""
    ends = np.cumsum([0, *(part.documents for part in parts)])
    return ends[[entry["parts"] for entry in source.get(EXTENDS, ())]]


def _rows(folder: Path, parts: Sequence[FinishedPart]) -> Iterator[pa.Table]:
    paths = [rows_path(folder, part.record.name) for part in parts]
    return regrouped(rows for path in paths for rows in row_groups(path))


def _unit_begins(rows: pa.Table, before: pa.Table | None) -> NDArray[np.bool_]:
    """bool[rows]: whether the document begins a unit: no group, or another than the document before."""
    joined = pa.concat_tables([rows.slice(0, 0) if before is None else before, rows])
    same = np.zeros(joined.num_rows, dtype=np.bool_)
    for name in ("group_int", "group_str"):
        column = joined[name].combine_chunks()
        equal = pc.fill_null(pc.equal(column.slice(1), column.slice(0, len(column) - 1)), False)
        same[1:] |= np.asarray(equal.to_numpy(zero_copy_only=False), dtype=np.bool_)
    return ~same[joined.num_rows - rows.num_rows :]


def _counts_up(ids: pa.ChunkedArray, number: int) -> bool:
    return ids.null_count == 0 and bool(np.array_equal(ids.to_numpy(), np.arange(number, number + len(ids))))
