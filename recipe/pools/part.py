"""One part while it is written: tokens, index, rows and hashes go out together."""

from __future__ import annotations

import contextlib
import hashlib
import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recipe.pools.blocks import BlockHasher, block_digest, block_hash, file_hash, raw_bytes, root_hash
from recipe.pools.card import PartRecord, canonical_json
from recipe.pools.lengths import added, histogram
from recipe.pools.megatron import write_index
from recipe.pools.sections import SectionsFile, sections_path
from recipe.pools.settings import PoolSettings
from recipe.pools.table import ROW_GROUP, SCHEMA, open_rows
from recipe.pools.workplace import sync

SLICE_TOKENS = 1 << 20
"""Tokens of a long document that are widened at once."""


@dataclass
class Batch:
    """Documents whose tokens lie one after another in a stage, with what the table says of them."""

    ids: list[int | str] = field(default_factory=list)
    groups: list[int | str | None] = field(default_factory=list)
    tags: list[str | None] = field(default_factory=list)
    sources: list[str | None] = field(default_factory=list)
    sections: list[list[object] | None] = field(default_factory=list)
    """As `recipe.pools.sections.plain` gives them; None: nothing is said of them."""
    leads: list[int] = field(default_factory=list)
    """Special tokens between BOS and the body."""
    lengths: list[int] = field(default_factory=list)
    """Stored tokens, marks included."""


@dataclass(frozen=True, kw_only=True)
class FinishedPart:
    """What the card and the closing need of a part; kept as JSON beside it until the pool is whole."""

    record: PartRecord
    body_tokens: int
    max_document_tokens: int
    length_histogram: tuple[int, ...]
    max_id: int
    """-1 in a part without tokens."""
    max_id_position: int
    blocks: tuple[str, ...]
    """Hashes of its blocks, hexadecimal."""
    has_sections: bool = False
    """Whether it has a file of sections, beside it until the pool is whole."""
    has_leads: bool = False
    """Whether any of its documents has special tokens in front besides BOS: a file says how many."""

    @property
    def file_names(self) -> tuple[str, ...]:
        """Files of the part while the pool is written; not all of them are always there."""
        endings = ("bin", "idx", "rows", "json", "repeats", *(("sections",) if self.has_sections else ()))
        endings += ("leads",) if self.has_leads else ()
        return tuple(f"{self.record.name}.{ending}" for ending in endings)

    def to_json(self) -> bytes:
        """The bytes of its file."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["record"] = {f.name: getattr(self.record, f.name) for f in fields(self.record)}
        return canonical_json(plain)

    @classmethod
    def from_json(cls, data: bytes) -> FinishedPart:
        """The part that ``to_json`` wrote."""
        plain: dict[str, Any] = json.loads(data)
        plain["record"] = PartRecord(**plain["record"])
        for name in ("length_histogram", "blocks"):
            plain[name] = tuple(plain[name])
        return cls(**plain)


def rows_path(folder: Path, name: str) -> Path:
    """Rows of a part's documents, until the pool's table is made of them."""
    return folder / f"{name}.rows"


def leads_path(folder: Path, name: str) -> Path:
    """Special tokens in front of a part's documents, until the pool's file is made of them."""
    return folder / f"{name}.leads"


class PartWriter:
    """Appends batches to a part's files."""

    def __init__(self, folder: Path, number: int, settings: PoolSettings) -> None:
        """Begin part ``number``."""
        self.name = f"part-{number:05d}"
        self._folder, self._number, self._dtype = folder, number, settings.token_dtype
        self._marks = (settings.has_bos, settings.has_eos)
        self._file = (folder / f"{self.name}.bin").open("wb")
        self._rows = open_rows(rows_path(folder, self.name))
        self._sections = SectionsFile(sections_path(folder, self.name))
        self._documents = 0
        self._blocks = BlockHasher()
        self._rows_hash = hashlib.blake2b(digest_size=32)
        # four bytes a document, which grow where they are; no leads while no document has one
        self._lengths, self._leads = array("i"), array("I")
        self._histogram = np.zeros(0, dtype=np.int64)
        self._tokens = self._body_tokens = self._longest = 0
        self._max_id, self._max_id_position = -1, 0

    def append(self, stored: NDArray[np.int64], batch: Batch) -> None:
        """Write documents; ``stored`` holds their tokens with marks, already known to be in range."""
        wide = self._write_tokens(stored)
        lengths = np.array(batch.lengths, dtype=np.int64)
        fronts = np.array(batch.leads, dtype=np.int64) + self._marks[0]
        self._account(batch, lengths, _document_hashes(wide, lengths, (fronts, self._marks[1])))

    def append_long(self, pieces: Sequence[NDArray[Any]], batch: Batch) -> None:
        """Write one document, ``pieces`` being what is in front of it, body and end mark, a slice of it at
        a time."""
        front, body, eos = pieces
        digest = block_hash()
        self._write_tokens(front)
        for start in range(0, len(body), SLICE_TOKENS):
            digest.update(raw_bytes(self._write_tokens(body[start : start + SLICE_TOKENS])))
        self._write_tokens(eos)
        self._account(batch, np.array(batch.lengths, dtype=np.int64), [digest.digest()])

    def finish(self) -> FinishedPart:
        """Write the index and bring everything to the disk."""
        lengths = np.frombuffer(self._lengths, np.int32)
        index = self._folder / f"{self.name}.idx"
        with index.open("wb") as file:
            write_index(file, lengths, self._dtype)
        self.close()
        for path in (index, self._folder / f"{self.name}.bin", rows_path(self._folder, self.name)):
            sync(path)
        has_sections = self._sections.finish()
        has_leads = self._write_leads()
        digests = self._blocks.digests()
        return FinishedPart(
            record=PartRecord(
                name=self.name,
                documents=len(lengths),
                tokens=self._tokens,
                bytes=self._tokens * self._dtype.itemsize,
                hash=root_hash(digests),
                index_bytes=index.stat().st_size,
                index_hash=file_hash(index),
                rows_hash=self._rows_hash.hexdigest(),
            ),
            body_tokens=self._body_tokens,
            max_document_tokens=self._longest,
            length_histogram=tuple(self._histogram.tolist()),
            max_id=self._max_id,
            max_id_position=self._max_id_position,
            blocks=tuple(digest.hex() for digest in digests),
            has_sections=has_sections,
            has_leads=has_leads,
        )

    def _write_leads(self) -> bool:
        """Say how many special tokens are in front of documents, if any has more than BOS."""
        if not self._leads:
            return False
        path = leads_path(self._folder, self.name)
        leads = np.frombuffer(self._leads, np.uint32)
        path.write_bytes((leads + np.uint32(self._marks[0])).astype("<u4").tobytes())
        sync(path)
        return True

    def close(self) -> None:
        """Close the files, finished or not."""
        self._file.close()
        self._rows.close()

    def give_up(self) -> None:
        """Close the files of a part that nobody will finish, on a full disk too."""
        for closable in (self._file, self._rows, self._sections):
            with contextlib.suppress(OSError):
                closable.close()

    def _write_tokens(self, stored: NDArray[Any]) -> NDArray[np.int32]:
        """Write tokens; gives them as the 32-bit integers that documents are hashed as."""
        if len(stored) and (most := int(stored.max())) > self._max_id:
            self._max_id, self._max_id_position = most, self._tokens + int(stored.argmax())
        wide = stored.astype("<i4")
        data = raw_bytes(np.ascontiguousarray(wide, dtype=self._dtype))
        self._file.write(data)
        self._blocks.update(data)
        self._tokens += len(stored)
        return wide

    def _account(self, batch: Batch, lengths: NDArray[np.int64], hashes: list[bytes]) -> None:
        """Count documents whose tokens were written, and write their rows."""
        leads = np.array(batch.leads, dtype=np.int64)
        bodies = lengths - sum(self._marks) - leads
        if self._leads or leads.any():
            missing = self._documents - len(self._leads)
            self._leads.frombytes(bytes(missing * self._leads.itemsize))
            self._leads.frombytes(leads.astype(np.uint32).tobytes())
        self._write_rows(batch, bodies, hashes)
        for document, sections in enumerate(batch.sections, self._documents):
            if sections is not None:
                self._sections.add(document, sections)
        self._documents += len(lengths)
        self._lengths.frombytes(lengths.astype(np.int32).tobytes())
        self._histogram = added(self._histogram, histogram(bodies))
        self._body_tokens += int(bodies.sum())
        self._longest = max(self._longest, int(bodies.max(initial=0)))

    def _write_rows(self, batch: Batch, bodies: NDArray[np.int64], hashes: list[bytes]) -> None:
        rows = list(zip(batch.ids, batch.groups, batch.tags, batch.sources, strict=True))
        # rows joined by commas: the hash does not depend on where batches end
        self._rows_hash.update(canonical_json(rows)[1:-1] + b",")
        columns: Mapping[str, Any] = {
            "id_int": [None if isinstance(key, str) else key for key in batch.ids],
            "id_str": [key if isinstance(key, str) else None for key in batch.ids],
            "part": np.full(len(rows), self._number, dtype=np.int32),
            "tokens": bodies.astype(np.int32),
            "group_int": [None if isinstance(key, str) else key for key in batch.groups],
            "group_str": [key if isinstance(key, str) else None for key in batch.groups],
            "tags": batch.tags,
            "source": batch.sources,
            "content_hash": hashes,
        }
        arrays = [pa.array(columns[column.name], type=column.type) for column in SCHEMA]
        self._rows.write_table(pa.Table.from_arrays(arrays, schema=SCHEMA), row_group_size=ROW_GROUP)


def _document_hashes(
    wide: NDArray[np.int32], lengths: NDArray[np.int64], marks: tuple[NDArray[np.int64], bool]
) -> list[bytes]:
    stops = np.cumsum(lengths)
    starts = (4 * (stops - lengths + marks[0])).tolist()
    data = raw_bytes(wide)
    return [
        block_digest(data[start:stop])
        for start, stop in zip(starts, (4 * (stops - marks[1])).tolist(), strict=True)
    ]
