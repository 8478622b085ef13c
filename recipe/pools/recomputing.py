"""What the card of a pool would say of its contents as they are: every count and hash made anew.

What contents do not tell (the tokenizer, marks, how many ids there are, where texts come from) is taken from
a card that is given. Nothing is written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.pools.blocks import DIGEST_BYTES, BlockHasher, file_hash, raw_bytes, root_hash
from recipe.pools.card import (
    BOUNDARIES,
    HASHES_NAME,
    TABLE_NAME,
    UNITS_NAME,
    Card,
    FileRecord,
    MaxId,
    PartRecord,
    extent_units,
)
from recipe.pools.lengths import added, histogram
from recipe.pools.mapped import map_array, map_npy
from recipe.pools.megatron import Index, read_index, write_index
from recipe.pools.npy_files import file_record
from recipe.pools.offsets import found_low
from recipe.pools.origins import HashingFile, rows_hashes
from recipe.pools.table import row_groups

_PIECE = 1 << 22
"""Tokens that are looked at together."""


def part_names(folder: Path) -> list[str]:
    """The token files of a pool folder in the order of their numbers, without endings."""
    return sorted(path.stem for path in folder.glob("part-*.bin"))


def recomputed(folder: Path, base: Card, names: Sequence[str]) -> tuple[Card, NDArray[np.uint8]]:
    """The card of the contents, and the hashes of all blocks of the token files.

    Args:
        folder: of an own pool; its card is not looked at.
        base: what contents do not tell; its counts and hashes are replaced.
        names: of the parts, in order.

    Raises:
        RecipeError: an index, a token file or a table that cannot be read.
    """
    tokens = _Tokens(folder, names, np.dtype(base.token_dtype).newbyteorder("<"))
    digests = [tokens.digests(*ends, base.block_bytes) for ends in pairwise(tokens.starts)]
    rows = rows_hashes(folder, [index.num_documents for index in tokens.indices])
    parts = tuple(map(_part, names, tokens.indices, digests, rows))
    body, longest, lengths = _lengths(folder)
    documents = sum(index.num_documents for index in tokens.indices)
    units = _num_units(folder, documents)
    card = replace(
        base,
        num_documents=documents,
        num_units=units,
        body_tokens=body,
        special_tokens=tokens.starts[-1] - body,
        max_document_tokens=longest,
        length_histogram=tuple(lengths.tolist()),
        max_id=tokens.largest(),
        extent_units=extent_units(tokens.starts[-1], units),
        ids="number" if _ids_are_numbers(folder) else "table",
        parts=parts,
        files=_files(folder, base),
        low_offsets=found_low(folder),
        origin_parts=_origins(folder, base, tokens),
    )
    joined = b"".join(digest for of_part in digests for digest in of_part)
    return card, np.frombuffer(joined, np.uint8).reshape(-1, DIGEST_BYTES)


@dataclass(frozen=True)
class _Tokens:
    """The token files of a folder, taken as one."""

    folder: Path
    names: Sequence[str]
    dtype: np.dtype[Any]

    @property
    def indices(self) -> list[Index]:
        return [read_index(self.folder / f"{name}.idx") for name in self.names]

    @property
    def starts(self) -> list[int]:
        """First token of each file, then their number."""
        return list(accumulate((index.num_tokens for index in self.indices), initial=0))

    def pieces(self, start: int, stop: int) -> Iterator[NDArray[Any]]:
        """Tokens ``start..stop`` of all files, some at a time."""
        for name, (first, last) in zip(self.names, pairwise(self.starts), strict=True):
            if first < stop and start < last:
                part = map_array(self.folder / f"{name}.bin", self.dtype, last - first)
                low, high = max(start, first) - first, min(stop, last) - first
                yield from (part[at : min(at + _PIECE, high)] for at in range(low, high, _PIECE))

    def digests(self, start: int, stop: int, block_bytes: int) -> list[bytes]:
        """Hashes of the blocks of a file that holds these tokens."""
        hasher = BlockHasher(block_bytes)
        for piece in self.pieces(start, stop):
            hasher.update(raw_bytes(piece))
        return hasher.digests()

    def largest(self) -> MaxId | None:
        """The largest id and its first place."""
        found: MaxId | None = None
        for name, (first, last) in zip(self.names, pairwise(self.starts), strict=True):
            at = 0
            for piece in self.pieces(first, last):
                place = int(piece.argmax())
                if found is None or int(piece[place]) > found.id:
                    found = MaxId(id=int(piece[place]), part=f"{name}.bin", position=at + place)
                at += len(piece)
        return found


def _part(name: str, index: Index, digests: list[bytes], rows_hash: str) -> PartRecord:
    return PartRecord(
        name=name,
        documents=index.num_documents,
        tokens=index.num_tokens,
        bytes=index.num_tokens * index.dtype.itemsize,
        hash=root_hash(digests),
        index_bytes=index.path.stat().st_size,
        index_hash=file_hash(index.path),
        rows_hash=rows_hash,
    )


def _origins(folder: Path, base: Card, tokens: _Tokens) -> tuple[PartRecord, ...]:
    """The parts that the pool was written with, of the tokens as they are."""
    found, first, start = list[PartRecord](), 0, 0
    lengths = np.concatenate([*(index.lengths() for index in tokens.indices), np.zeros(0, np.int64)])
    rows = rows_hashes(folder, [part.documents for part in base.origin_parts])
    for part, rows_hash in zip(base.origin_parts, rows, strict=True):
        own = lengths[first : first + part.documents]
        count, index = int(own.sum()), HashingFile()
        write_index(index, own, tokens.dtype)  # type: ignore[arg-type]
        root = root_hash(tokens.digests(start, start + count, base.block_bytes))
        size = count * tokens.dtype.itemsize
        found.append(
            replace(
                part, tokens=count, bytes=size, hash=root, index_hash=index.hexdigest(), rows_hash=rows_hash
            )
        )
        first, start = first + part.documents, start + count
    return tuple(found)


def _lengths(folder: Path) -> tuple[int, int, NDArray[np.int64]]:
    """Body tokens, those of the longest document, documents by bits of length; as the table has them."""
    body = longest = 0
    lengths = np.zeros(0, np.int64)
    for rows in row_groups(folder / TABLE_NAME, ["tokens"]):
        tokens = rows["tokens"].to_numpy().astype(np.int64)
        body, longest = body + int(tokens.sum()), max(longest, int(tokens.max()))
        lengths = added(lengths, histogram(tokens))
    return body, longest, lengths


def _ids_are_numbers(folder: Path) -> bool:
    number = 0
    for rows in row_groups(folder / TABLE_NAME, ["id_int"]):
        ids = rows["id_int"]
        if ids.null_count or not np.array_equal(ids.to_numpy(), np.arange(number, number + len(ids))):
            return False
        number += rows.num_rows
    return True


def _num_units(folder: Path, documents: int) -> int:
    if not (folder / UNITS_NAME).exists():
        return documents
    return len(map_npy(folder / UNITS_NAME, None, np.dtype("<i8"))) - 1


def _files(folder: Path, base: Card) -> dict[str, FileRecord]:
    """Files beside the parts: those that the card names, and what else such a folder may have."""
    names = dict.fromkeys([*base.files, HASHES_NAME, TABLE_NAME, *BOUNDARIES])
    there = [folder / name for name in names if (folder / name).exists()]
    return {path.name: file_record(path) for path in there}
