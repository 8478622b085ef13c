"""Other token files for the same pool: parts merged, or cut between documents.

Documents, their order and the pool's fingerprint stay: a run goes on with the new folder as with a copy of
the old one. The card keeps the parts that the pool was written with, of which the fingerprint is made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.adopting import link_beside, link_file, whole_folder
from recipe.pools.blocks import DIGEST_BYTES, BlockHasher, file_hash, root_hash
from recipe.pools.card import (
    CARD_NAME,
    HASHES_NAME,
    ORIGIN_HASHES_NAME,
    TABLE_NAME,
    MaxId,
    PartRecord,
    canonical_json,
    card_text,
)
from recipe.pools.checked_blocks import CheckedBlocks
from recipe.pools.megatron import write_index
from recipe.pools.npy_files import file_record, write_npy
from recipe.pools.offsets import Offsets
from recipe.pools.opening import open_pool
from recipe.pools.origins import RowsHash
from recipe.pools.pool import Pool
from recipe.pools.settings import SETTINGS_NAME
from recipe.pools.table import TableWriter, regrouped, row_groups
from recipe.pools.workplace import Workplace, sync, write_durably


class _Part(NamedTuple):
    """A token file that was written; its rows are hashed when the table is."""

    record: PartRecord
    blocks: tuple[str, ...]
    """Hashes of its blocks, hexadecimal."""


def part_edges(offsets: NDArray[np.int64] | Offsets, part_tokens: int) -> NDArray[np.int64]:
    """First documents of parts of at most so many stored tokens, each as full as it can be, and the end.

    A longer document is a part of its own.

    >>> part_edges(np.array([0, 3, 5, 9, 20]), 5).tolist()
    [0, 2, 3, 4]
    """
    last, edges = len(offsets) - 1, [0]
    while edges[-1] < last:
        fits = int(np.searchsorted(offsets, offsets[edges[-1]] + part_tokens, side="right")) - 1
        edges.append(max(fits, edges[-1] + 1))
    return np.array(edges, np.int64)


def repart_pool(pool: Pool | Path | str, out: Path | str, *, part_tokens: int) -> Pool:
    """Write a pool with other parts to a new folder, and open it.

    The old pool stays as it is. Files that stay the same are linked, or copied to another disk. Every block
    that is copied is compared with its hash first. An interrupted call goes on when it is made again.

    Args:
        pool: of our own; of a view, the whole folder.
        out: folder of the new one; nothing may be there.
        part_tokens: stored tokens of a part at most; a longer document is a part of its own.

    Raises:
        RecipeError: imported token files, parts of less than a token, something at ``out``, a damaged pool,
            a full disk.
    """
    old = whole_folder(pool, Path(out))
    if part_tokens < 1:
        raise RecipeError.single(
            str(out), "part_tokens", given=part_tokens, expected="1 or more", fix="for one part: its tokens"
        )
    place = Workplace(Path(out))
    finished: list[_Part] = []
    try:
        with place.disk_errors(old.num_tokens * old.token_dtype.itemsize):
            edges = part_edges(old.offsets, part_tokens)
            finished += _begun(place, {"reparted": old.fingerprint, "edges": edges.tolist()})
            blocks = CheckedBlocks(old)
            for number in range(len(finished), len(edges) - 1):
                finished.append(_write_part(blocks, place.folder, number, edges))
            _finish(old, place.folder, finished)
            place.publish()
    finally:
        if place.held:
            place.keep_only(_kept_files(finished))
            place.release()
    return open_pool(out, old.name)


def _kept_files(parts: list[_Part]) -> set[str]:
    """Files of parts that are whole, with what their call was for."""
    names = [part.record.name for part in parts]
    return {SETTINGS_NAME, *(f"{name}.{ending}" for name in names for ending in ("bin", "idx", "json"))}


def _begun(place: Workplace, settings: dict[str, object]) -> list[_Part]:
    """Parts that an interrupted call for the same left."""
    path, found = place.folder / SETTINGS_NAME, list[_Part]()
    if path.is_file() and path.read_bytes() == canonical_json(settings):
        while (file := place.folder / f"part-{len(found):05d}.json").is_file():
            plain = json.loads(file.read_bytes())
            found.append(_Part(PartRecord(**plain["record"]), tuple(plain["blocks"])))
    place.keep_only(_kept_files(found))
    write_durably(path, canonical_json(settings))
    return found


def _write_part(blocks: CheckedBlocks, folder: Path, number: int, edges: NDArray[np.int64]) -> _Part:
    """One new part: linked where the pool has the same one, else copied."""
    old, name = blocks.pool, f"part-{number:05d}"
    first, last = edges[number : number + 2].tolist()
    paths = {ending: folder / f"{name}.{ending}" for ending in ("bin", "idx")}
    same = int(np.searchsorted(old.part_documents, first))
    if same < old.num_parts and old.part_documents[same : same + 2].tolist() == [first, last]:
        record = replace(old.card.parts[same], name=name)
        for ending, path in paths.items():
            link_file(old.layout.folder / f"{old.card.parts[same].name}.{ending}", path)
        part = _Part(record, tuple(blocks.digests_of(same)))
    else:
        part = _copy_part(blocks, paths, (first, last))
    for path in paths.values():
        sync(path)
    write_durably(
        folder / f"{name}.json", canonical_json({"record": asdict(part.record), "blocks": part.blocks})
    )
    return part


def _copy_part(blocks: CheckedBlocks, paths: dict[str, Path], documents: tuple[int, int]) -> _Part:
    old, (first, last) = blocks.pool, documents
    size = old.token_dtype.itemsize
    start, stop = (old.offsets[[first, last]] * size).tolist()
    hasher = BlockHasher(old.card.block_bytes)
    with paths["bin"].open("wb") as file:
        for data in blocks.between(start, stop):
            hasher.update(data)
            if any(data):
                file.write(data)
            else:
                file.seek(len(data), 1)  # erased documents take no room
        file.truncate(stop - start)
    with paths["idx"].open("wb") as file:
        write_index(file, np.diff(old.offsets[first : last + 1]), old.token_dtype)
    digests = hasher.digests()
    record = PartRecord(
        name=paths["bin"].stem,
        documents=last - first,
        tokens=(stop - start) // size,
        bytes=stop - start,
        hash=root_hash(digests),
        index_bytes=paths["idx"].stat().st_size,
        index_hash=file_hash(paths["idx"]),
        rows_hash="",
    )
    return _Part(record, tuple(digest.hex() for digest in digests))


def _finish(old: Pool, folder: Path, written: list[_Part]) -> None:
    """Everything beside the parts, the card last."""
    card = old.card
    files = {name: record for name, record in card.files.items() if name != ORIGIN_HASHES_NAME}
    link_beside(old, folder, but=(TABLE_NAME, HASHES_NAME, ORIGIN_HASHES_NAME))
    hashes = _write_table(old, folder, [part.record.documents for part in written])
    parts = tuple(replace(part.record, rows_hash=rows) for part, rows in zip(written, hashes, strict=True))
    files[TABLE_NAME] = file_record(folder / TABLE_NAME)
    digests = bytes.fromhex("".join(block for part in written for block in part.blocks))
    rows = np.frombuffer(digests, np.uint8).reshape(-1, DIGEST_BYTES)
    files[HASHES_NAME] = write_npy(folder / HASHES_NAME, rows.shape, rows.dtype, [rows])
    is_as_written = [_content(part) for part in parts] == [_content(part) for part in card.written_parts]
    if not is_as_written:
        name = ORIGIN_HASHES_NAME if card.origin_parts else HASHES_NAME
        link_file(old.layout.folder / name, folder / ORIGIN_HASHES_NAME)
        files[ORIGIN_HASHES_NAME] = card.files[name]
    new = replace(
        card,
        parts=parts,
        files=files,
        max_id=_max_id(old, parts),
        origin_parts=() if is_as_written else card.written_parts,
    )
    write_durably(folder / CARD_NAME, card_text(new))
    for part in parts:
        (folder / f"{part.name}.json").unlink()
    (folder / SETTINGS_NAME).unlink()


def _content(part: PartRecord) -> tuple[object, ...]:
    return part.documents, part.tokens, part.hash, part.index_hash, part.rows_hash


def _max_id(old: Pool, parts: tuple[PartRecord, ...]) -> MaxId | None:
    """The same place of the largest id, in the new parts."""
    most = old.card.max_id
    if most is None:
        return None
    names = [f"{part.name}.bin" for part in old.card.parts]
    position = int(old.part_offsets[names.index(most.part)]) + most.position
    starts = np.cumsum([0, *(part.tokens for part in parts)])
    part = int(np.searchsorted(starts, position, side="right")) - 1
    return MaxId(id=most.id, part=f"{parts[part].name}.bin", position=position - int(starts[part]))


def _write_table(old: Pool, folder: Path, counts: list[int]) -> list[str]:
    """The document table with the numbers of the new parts; the hashes of their rows."""
    edges = np.cumsum([0, *counts])
    hashes, number = [RowsHash() for _ in counts], 0
    with TableWriter(folder / TABLE_NAME) as writer:
        for rows in regrouped(row_groups(old.layout.table_file())):
            parts = np.searchsorted(edges, np.arange(number, number + rows.num_rows), side="right") - 1
            at = rows.schema.get_field_index("part")
            rows = rows.set_column(at, rows.schema.field(at), pa.array(parts, pa.int32()))
            writer.write(rows)
            for part, table in _by_part(rows, parts):
                hashes[part].update(table)
            number += rows.num_rows
    return [found.hexdigest() for found in hashes]


def _by_part(rows: pa.Table, parts: NDArray[np.int64]) -> Iterator[tuple[int, pa.Table]]:
    """Rows of each part among rows of several; ``parts`` int64[rows] rises."""
    found, starts = np.unique(parts, return_index=True)
    for part, start, stop in zip(found.tolist(), starts, [*starts[1:], len(parts)], strict=True):
        yield part, rows.slice(int(start), int(stop - start))
