"""The card of a pool: what it holds, counted and hashed, in one small JSON file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from recipe.errors import RecipeError

CARD_NAME = "card.json"
CARD_FORMAT = 1
OFFSETS_NAME, UNITS_NAME = "offsets.npy", "units.npy"
SECTIONS_NAME, NEEDS_NAME = "sections.npy", "needs.npy"
REPEATS_NAME = "repeats.npy"
LEADS_NAME = "leads.npy"
BOUNDARIES = (OFFSETS_NAME, UNITS_NAME, SECTIONS_NAME, NEEDS_NAME, REPEATS_NAME, LEADS_NAME)
"""Files that say where documents, units and sections begin, which sections need others, which tokens repeat
others, and how many special ones stand in front of documents; all but the first where there are any."""
TABLE_NAME = "documents.parquet"
"""What documents are called and tagged with, and the hashes of their contents; not needed for lengths."""
HASHES_NAME = "hashes.npy"
ORIGIN_HASHES_NAME = "origin_hashes.npy"
"""Hashes of the blocks of the token files: as they are, and as they were first written."""
WITHDRAWN_NAME = "withdrawn.npy"
SMALL_POOL_TOKENS = 64 << 20
EXTENT_TOKENS = 1 << 20

Marks = tuple[int | None, int | None]
"""The ids of eos and bos, as a recipe declares them for files that do not say them."""
ALL, NONE, SOME = "all", "none", "some"
"""Whether a mark is stored in every document, in none, or has to be looked up in the tokens."""


def canonical_json(value: object) -> bytes:
    """The one way a plain value is written where its hash matters.

    >>> canonical_json({"b": [1, "é"], "a": None})
    b'{"a":null,"b":[1,"\\xc3\\xa9"]}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def json_object(path: Path) -> dict[str, Any]:
    """What a file of JSON says; nothing where it is not there, or is no whole JSON object."""
    try:
        plain = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return plain if isinstance(plain, dict) else {}


def content_hash(value: object) -> str:
    """blake2b-256 of a plain value, as hexadecimal text."""
    return hashlib.blake2b(canonical_json(value), digest_size=32).hexdigest()


def extent_units(num_tokens: int, num_units: int) -> int:
    """Units in an extent: 1 in small pools, else the power of two nearest (in ratio) to 1 Mi tokens.

    Args:
        num_tokens: stored tokens of the pool.
        num_units: units of the pool.

    >>> extent_units(64 * 2**20 - 1, 100), extent_units(2**30, 2**20), extent_units(2**33, 2)
    (1, 1024, 1)
    """
    if num_tokens < SMALL_POOL_TOKENS or num_units == 0:
        return 1
    units, wanted = 1, EXTENT_TOKENS * num_units
    # units * mean >= wanted / sqrt(2), squared to stay in whole numbers
    while 2 * (units * num_tokens) ** 2 < wanted**2:
        units *= 2
    return units


@dataclass(frozen=True, kw_only=True, slots=True)
class PartRecord:
    """One token file of a pool, as its card states it."""

    name: str
    """File name without its ending."""
    documents: int
    tokens: int
    """Stored tokens, marks included."""
    bytes: int
    hash: str
    """Hash over the hashes of the file's blocks."""
    index_bytes: int
    index_hash: str
    rows_hash: str
    """Hash of ids, groups, tags and sources of the part's documents."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRecord:
    """Size and content hash of a file beside the parts."""

    bytes: int
    hash: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LowOffsets:
    """Of a pool of many documents, whose offsets are kept in part: see `recipe.pools.offsets`."""

    hash: str
    """Of the file that would hold them whole; the fingerprint is made of it."""
    wraps: tuple[int, ...]
    """Documents at which the 32 bits that are kept begin anew."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MaxId:
    """The largest token id of a pool and the first place where it stands."""

    id: int
    part: str
    position: int
    """Token of the part, from 0."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """What a pool says of itself; frozen, written last, with its own hash."""

    format: int = CARD_FORMAT
    vocab_size: int | None
    """Ids are below it; None for imported pairs, which do not say."""
    token_dtype: str
    bos: int | None
    eos: int | None
    bos_stored: str
    eos_stored: str
    tokenizer: str | None
    """Content fingerprint of the tokenizer."""
    tokenizer_name: str | None
    num_documents: int
    num_units: int
    body_tokens: int
    special_tokens: int
    counted: str
    """``exact``, or ``sampled`` where the marks of a large imported pool are known from a sample."""
    max_document_tokens: int
    """Body tokens of the longest document."""
    length_histogram: tuple[int, ...]
    """Documents by body tokens: [0] has 0 tokens, [k] has 2**(k-1) .. 2**k - 1."""
    max_id: MaxId | None
    extent_units: int
    block_bytes: int
    shuffled: bool
    """Written in a seeded global order; False if unknown."""
    seed: int | None
    ids: str
    """``number`` when a document's id is its number, ``table`` when the table has to be read."""
    dropped: Mapping[str, Any]
    """What was left out, by reason."""
    source: Mapping[str, Any]
    """Summary of what the pool was made from."""
    parts: tuple[PartRecord, ...]
    files: Mapping[str, FileRecord] = field(default_factory=dict)
    low_offsets: LowOffsets | None = None
    """Where ``offsets.npy`` holds 32 bits of each offset alone."""
    about: Mapping[str, Any] | None = None
    """What a public summary of training data asks (`recipe.pools.about`); not of the content: it may be said
    later, and the fingerprint stays."""
    origin_parts: tuple[PartRecord, ...] = ()
    """The parts that the pool was written with, where its token files were cut or merged since; the
    fingerprint is made of them, and ``origin_hashes.npy`` has the hashes of their blocks."""
    withdrawn: Mapping[str, Any] | None = None
    """Of a pool whose withdrawn documents were erased: how many, their body tokens, and how many by reason;
    ``withdrawn.npy`` has their numbers."""

    @property
    def num_tokens(self) -> int:
        """Stored tokens, marks included."""
        return self.body_tokens + self.special_tokens

    @property
    def written_parts(self) -> tuple[PartRecord, ...]:
        """The parts that the pool was written with, however its token files are cut now."""
        return self.origin_parts or self.parts

    @property
    def fingerprint(self) -> str:
        """Content hash of the tokens, boundaries, documents and marks; names and places do not enter."""
        identity = [
            self.format, self.vocab_size, self.token_dtype, self.tokenizer, self.num_units, self.extent_units,
            self.bos, self.eos, self.bos_stored, self.eos_stored,
            [[p.documents, p.tokens, p.hash, p.index_hash, p.rows_hash] for p in self.written_parts],
            [self.boundary_hash(name) for name in BOUNDARIES if name in self.files],
        ]  # fmt: skip
        return content_hash(identity)

    def boundary_hash(self, name: str) -> str:
        """Hash of one of ``BOUNDARIES``, however it is kept."""
        if name == OFFSETS_NAME and self.low_offsets is not None:
            return self.low_offsets.hash
        return self.files[name].hash

    def to_plain(self) -> dict[str, Any]:
        """Plain values for JSON, in the order of the fields."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        plain["length_histogram"] = list(self.length_histogram)
        plain["max_id"] = _plain(self.max_id) if self.max_id else None
        plain["parts"] = [_plain(part) for part in self.parts]
        plain["files"] = {name: _plain(record) for name, record in self.files.items()}
        plain["origin_parts"] = [_plain(part) for part in self.origin_parts]
        if (low := self.low_offsets) is not None:
            plain["low_offsets"] = {"hash": low.hash, "wraps": list(low.wraps)}
        for name in ("low_offsets", "about", "origin_parts", "withdrawn"):  # younger than many a pool
            if plain[name] in (None, []):
                del plain[name]
        return plain

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Card:
        """The card that ``to_plain`` wrote."""
        values = dict(plain)
        values["length_histogram"] = tuple(plain["length_histogram"])
        values["max_id"] = MaxId(**plain["max_id"]) if plain["max_id"] else None
        if (low := plain.get("low_offsets")) is not None:
            values["low_offsets"] = LowOffsets(hash=low["hash"], wraps=tuple(low["wraps"]))
        values["parts"] = tuple(PartRecord(**part) for part in plain["parts"])
        values["origin_parts"] = tuple(PartRecord(**part) for part in plain.get("origin_parts", ()))
        values["files"] = {name: FileRecord(**record) for name, record in plain["files"].items()}
        return cls(**values)


def _plain(record: Any) -> dict[str, Any]:
    return {f.name: getattr(record, f.name) for f in fields(record)}


def card_text(card: Card) -> bytes:
    """The bytes of ``card.json``: the card, its fingerprint and the hash of all of it."""
    plain = {**card.to_plain(), "fingerprint": card.fingerprint}
    plain["hash"] = content_hash(plain)
    return (json.dumps(plain, indent=1, ensure_ascii=False) + "\n").encode()


def read_card(path: Path) -> Card:
    """The card of the pool in folder ``path``.

    Raises:
        RecipeError: the card cannot be read, is of another format, or was changed.
    """
    file = path / CARD_NAME
    try:
        plain = json.loads(file.read_bytes())
        stated, written = plain.pop("format"), plain.pop("hash")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise _damaged(file, f"unreadable ({error})", "a JSON card with its format and hash") from error
    if stated != CARD_FORMAT:
        raise RecipeError.single(
            str(path), str(file), given=f"format {stated!r}", expected=f"format {CARD_FORMAT}",
            fix="open it with the version of recipe that wrote it, or prepare the pool again",
        )  # fmt: skip
    plain["format"] = stated
    if (found := content_hash(plain)) != written:
        raise _damaged(file, f"contents with hash {found}", f"the hash it states, {written}")
    plain.pop("fingerprint", None)
    try:
        return Card.from_plain(plain)
    except (TypeError, KeyError) as error:
        raise _damaged(
            file, f"fields that do not fit ({error})", f"the fields of format {CARD_FORMAT}"
        ) from error


def _damaged(file: Path, given: str, expected: str) -> RecipeError:
    return RecipeError.single(
        str(file.parent), str(file), given=given, expected=expected,
        fix="copy the pool again, or prepare it again: its card was changed or damaged",
    )  # fmt: skip
