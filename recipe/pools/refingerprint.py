"""The fingerprint of a pool computed anew from its contents, beside the one that its card states.

A fingerprint is what runs know a pool by. It is computed from hashes in the card; here they are made again
from the files. A card that was lost or damaged can be written again: with the fingerprint it had, if contents
and what is said of them are what they were. What changed is shown, old and new; whoever writes that anew
makes another pool of it, and runs that read the old one will refuse it.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.agreement import document_findings
from recipe.pools.blocks import BLOCK_BYTES
from recipe.pools.card import (
    ALL,
    CARD_FORMAT,
    CARD_NAME,
    HASHES_NAME,
    NONE,
    TABLE_NAME,
    WITHDRAWN_NAME,
    Card,
    card_text,
    read_card,
)
from recipe.pools.finding import Finding
from recipe.pools.npy_files import npy_record
from recipe.pools.opening import own_pool
from recipe.pools.recomputing import part_names, recomputed
from recipe.pools.settings import token_dtype
from recipe.pools.table import DocumentTable
from recipe.pools.workplace import write_durably

WHOLE, DAMAGED, LOST = "whole", "damaged", "lost"
"""The card: as it was written, with other contents than its hash says or of another format, or not there."""


@dataclass(frozen=True, kw_only=True)
class Known:
    """What contents do not tell, for a pool without its card."""

    vocab_size: int
    eos: int | None = None
    bos: int | None = None
    tokenizer: str | None = None
    tokenizer_name: str | None = None
    shuffled: bool = False
    seed: int | None = None
    dropped: Mapping[str, Any] | None = None
    source: Mapping[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class Refingerprint:
    """What a card states, and what contents say."""

    path: Path
    card: str
    """``whole``, ``damaged`` or ``lost``."""
    stated: str | None
    """The fingerprint in the card; None where there is none to be read."""
    found: str
    differences: tuple[tuple[str, Any, Any], ...]
    """What the card states otherwise: name, stated, found."""
    findings: tuple[Finding, ...]
    """Where the files of the pool do not agree with each other: such a pool is never written anew."""
    made: Card
    """The card of the contents."""
    blocks: NDArray[np.uint8]
    """Hashes of the token files' blocks."""
    are_hashes_there: bool
    """Whether ``hashes.npy`` holds them."""

    @property
    def same(self) -> bool:
        """Whether the pool is the one that the card states."""
        return self.stated == self.found

    @property
    def is_current(self) -> bool:
        """Whether there is nothing to be written anew."""
        return self.card == WHOLE and not self.differences and self.are_hashes_there

    def to_plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "path": str(self.path),
            "card": self.card,
            "stated": self.stated,
            "found": self.found,
            "same": self.same,
            "hashes": self.are_hashes_there,
            "differences": [{"what": w, "stated": s, "found": f} for w, s, f in self.differences],
            "findings": [asdict(one) for one in self.findings],
        }


def refingerprint(folder: Path, known: Known | None = None) -> Refingerprint:
    """Compute the fingerprint of a pool anew; nothing is written.

    Args:
        folder: of a pool that recipe wrote.
        known: for one whose card is lost, or cannot be read.

    Raises:
        RecipeError: no pool's folder; files that cannot be read; a lost card and nothing known; documents
            that were erased: the fingerprint stands for tokens that are gone.
    """
    names = part_names(folder)
    table = folder / TABLE_NAME
    if not table.is_file() or not (names or DocumentTable(table).num_rows == 0):
        raise RecipeError.single(
            str(folder), str(folder), given="no token files with a document table",
            expected="the folder of a pool that recipe wrote",
            fix="files of others have no card: their fingerprint is computed whenever they are opened",
        )  # fmt: skip
    state, before, stated = _stated(folder)
    base = _base(folder, known) if before is None or (state == DAMAGED and known is not None) else before
    if WITHDRAWN_NAME in base.files:
        raise RecipeError.single(
            str(folder), str(folder / WITHDRAWN_NAME), given="documents that were withdrawn and erased",
            expected="the tokens that the fingerprint stands for",
            fix="they are gone on purpose: `recipe pools verify --full` checks all that is left",
        )  # fmt: skip
    if before is not None and {part.name for part in before.parts} == set(names):
        names = [part.name for part in before.parts]
    made, blocks = recomputed(folder, base, names)
    made = replace(made, files={**made.files, HASHES_NAME: npy_record(blocks, blocks.dtype)})
    with own_pool(folder, folder.name, made, (None, None)) as pool:
        findings = tuple(document_findings(pool))
    return Refingerprint(
        path=folder,
        card=state,
        stated=stated,
        found=made.fingerprint,
        differences=tuple(_differences(before, made)) if before is not None else (),
        findings=findings,
        made=made,
        blocks=blocks,
        are_hashes_there=_holds(folder / HASHES_NAME, _hashes_bytes(blocks)),
    )


def write_anew(found: Refingerprint) -> None:
    """Write the card of the contents, and the hashes of the blocks where they are other ones.

    Raises:
        ValueError: the files do not agree with each other.
    """
    if found.findings:
        raise ValueError(f"{found.path}: files that do not agree are never blessed")
    if not found.are_hashes_there:
        write_durably(found.path / HASHES_NAME, _hashes_bytes(found.blocks))
    write_durably(found.path / CARD_NAME, card_text(found.made))


def _stated(folder: Path) -> tuple[str, Card | None, str | None]:
    """The state of the card, the card as far as it can be read, and its fingerprint."""
    path = folder / CARD_NAME
    if not path.is_file():
        return LOST, None, None
    try:
        card = read_card(folder)
    except RecipeError:
        return DAMAGED, *_damaged(path)
    return WHOLE, card, card.fingerprint


def _damaged(path: Path) -> tuple[Card | None, str | None]:
    """What a card says whose hash is not that of its contents: all of it is to be doubted."""
    try:
        plain = json.loads(path.read_bytes())
        _refuse_newer(path, plain.get("format"))
        stated = plain.pop("fingerprint", None)
        plain.pop("hash", None)
        card = Card.from_plain({**plain, "format": CARD_FORMAT})
        assert isinstance(card.token_dtype, str), card
        np.dtype(card.token_dtype)
    except (ValueError, TypeError, KeyError, AttributeError, AssertionError, RecursionError):
        return None, None
    return card, stated if isinstance(stated, str) else None


def _refuse_newer(path: Path, stated: object) -> None:
    """A card of a later version says things that this one does not know: it is not written over."""
    if isinstance(stated, int) and stated > CARD_FORMAT:
        raise RecipeError.single(
            str(path.parent), str(path), given=f"format {stated}", expected=f"format {CARD_FORMAT} or older",
            fix="use the version of recipe that wrote it",
        )  # fmt: skip


def _base(folder: Path, known: Known | None) -> Card:
    """A card that says what is known, and counts nothing."""
    if known is None:
        raise RecipeError.single(
            str(folder), str(folder / CARD_NAME), given="no card that can be read",
            expected="what contents do not tell: which tokenizer made the ids, how many there are, the marks",
            fix="name it: --tokenizer PATH; or --vocab-size N, and --eos ID where documents end with one",
        )  # fmt: skip
    return Card(
        vocab_size=known.vocab_size,
        token_dtype=token_dtype(known.vocab_size).name,
        bos=known.bos,
        eos=known.eos,
        bos_stored=NONE if known.bos is None else ALL,
        eos_stored=NONE if known.eos is None else ALL,
        tokenizer=known.tokenizer,
        tokenizer_name=known.tokenizer_name,
        num_documents=0,
        num_units=0,
        body_tokens=0,
        special_tokens=0,
        counted="exact",
        max_document_tokens=0,
        length_histogram=(),
        max_id=None,
        extent_units=1,
        block_bytes=BLOCK_BYTES,
        shuffled=known.shuffled,
        seed=known.seed,
        ids="table",
        dropped=dict(known.dropped or {}),
        source=dict(known.source or {}),
        parts=(),
    )


def _differences(before: Card, made: Card) -> list[tuple[str, Any, Any]]:
    """What two cards say differently; parts and files by name."""
    found = []
    old, new = before.to_plain(), made.to_plain()
    for name in old.keys() | new.keys():
        if name not in ("parts", "files", "origin_parts") and old.get(name) != new.get(name):
            found.append((name, old.get(name), new.get(name)))
    for name in ("parts", "origin_parts"):
        pairs = {p["name"]: p for p in old.get(name, ())}, {p["name"]: p for p in new.get(name, ())}
        found += _between(*pairs, f"{name}.")
    found += _between(old["files"], new["files"], "files.")
    return sorted(found, key=lambda one: one[0])


def _between(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str) -> list[tuple[str, Any, Any]]:
    found = []
    for name in sorted(old.keys() | new.keys()):
        was, becomes = old.get(name, {}), new.get(name, {})
        keys = sorted(key for key in was.keys() | becomes.keys() if was.get(key) != becomes.get(key))
        found += [(f"{prefix}{name}.{key}", was.get(key), becomes.get(key)) for key in keys]
    return found


def _hashes_bytes(blocks: NDArray[np.uint8]) -> bytes:
    """The file of block hashes, as pools have it."""
    file = io.BytesIO()
    npy_format.write_array(file, blocks, version=(1, 0))
    return file.getvalue()


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and path.stat().st_size == len(data) and path.read_bytes() == data
