"""A pool without the text of documents that were withdrawn: zeros stand in their place.

Documents keep their numbers, their lengths and their places in the order, and the pool its fingerprint: a
run that withdrew the same documents goes on with the new folder as with the old one, and what it served
before can still be recounted. Their tokens are in no file of it. The card says how many documents were
erased and why; ``withdrawn.npy`` says which. Every token file has a hash of what it holds now, beside that
of what it held, of which the fingerprint is made: a block of the latter that lost documents is as it should
be where the others in it have the hashes that the table states. What the table says of documents (id, group,
tags, source, hash) stays: it is what proves which ones are gone.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.adopting import link_beside, link_file, whole_folder
from recipe.pools.blocks import DIGEST_BYTES, BlockHasher, numbers_hash, root_hash
from recipe.pools.card import (
    CARD_NAME,
    HASHES_NAME,
    ORIGIN_HASHES_NAME,
    WITHDRAWN_NAME,
    canonical_json,
    card_text,
)
from recipe.pools.checked_blocks import CheckedBlocks
from recipe.pools.lengths import body_lengths
from recipe.pools.npy_files import write_npy
from recipe.pools.opening import open_pool
from recipe.pools.pool import Pool
from recipe.pools.reasons import added
from recipe.pools.settings import SETTINGS_NAME
from recipe.pools.workplace import Workplace, sync, write_durably

_INT64 = np.dtype("<i8")
_ZEROS = 1 << 20


def erase_documents(pool: Pool | Path | str, numbers: NDArray[Any], out: Path | str, *, reason: str) -> Pool:
    """Write a pool without the text of some documents to a new folder, and open it.

    The old pool stays as it is: remove it once nothing reads it. Token files that hold none of the documents
    are linked, or copied to another disk; the others are copied, each block compared with its hash first. An
    interrupted call goes on when it is made again.

    Args:
        pool: of our own; of a view, the whole folder.
        numbers: int64[n], in any order; documents erased before stay erased.
        out: folder of the new one; nothing may be there.
        reason: why, for the card.

    Raises:
        RecipeError: imported token files, no document that is not erased already, something at ``out``, a
            damaged pool, a full disk.
        ValueError: numbers that the pool does not have, or no reason.
    """
    old = whole_folder(pool, Path(out))
    wanted = np.unique(np.asarray(numbers, np.int64))
    if not reason.strip():
        raise ValueError("no reason")
    if len(wanted) and not 0 <= wanted[0] <= wanted[-1] < old.num_documents:
        raise ValueError(f"documents {wanted[0]}..{wanted[-1]} of a pool with {old.num_documents}")
    new = np.setdiff1d(wanted, old.erased)
    if not len(new):
        raise RecipeError.single(
            str(out), "documents", given=f"{len(wanted)} documents that were erased before" if len(wanted)
            else "no document", expected="a document that the pool still holds",
            fix="use the pool as it is",
        )  # fmt: skip
    place = Workplace(Path(out))
    try:
        with place.disk_errors(old.num_tokens * old.token_dtype.itemsize):
            _begin(place, old, new, reason)
            _write(old, place.folder, new, reason)
            place.publish()
    finally:
        if place.held:
            place.keep_only(_kept_files(place.folder, old))
            place.release()
    return open_pool(out, old.name)


def _kept_files(folder: Path, old: Pool) -> set[str]:
    """Token files that are whole, with their notes: a note comes after its file."""
    names = [name for name in old.layout.part_names if (folder / f"{name}.json").is_file()]
    return {SETTINGS_NAME, *(f"{name}.{ending}" for name in names for ending in ("bin", "json"))}


def _begin(place: Workplace, old: Pool, new: NDArray[np.int64], reason: str) -> None:
    """Keep the token files that an interrupted call for the same left."""
    digest = numbers_hash(new)
    parts = [part.hash for part in old.card.parts]
    settings = canonical_json({"erased": old.fingerprint, "parts": parts, "new": digest, "reason": reason})
    path = place.folder / SETTINGS_NAME
    known = path.is_file() and path.read_bytes() == settings
    place.keep_only(_kept_files(place.folder, old) if known else set())
    write_durably(path, settings)


def _write(old: Pool, folder: Path, new: NDArray[np.int64], reason: str) -> None:
    card, source, blocks = old.card, old.layout.folder, CheckedBlocks(old)
    digests = [_digests(blocks, index, folder, new) for index in range(old.num_parts)]
    for name in old.layout.part_names:
        link_file(source / f"{name}.idx", folder / f"{name}.idx")
    link_beside(old, folder, but=(WITHDRAWN_NAME, HASHES_NAME))
    files = dict(card.files)
    if not card.origin_parts:
        link_file(source / HASHES_NAME, folder / ORIGIN_HASHES_NAME)
        files[ORIGIN_HASHES_NAME] = card.files[HASHES_NAME]
    numbers = np.union1d(old.erased, new)
    files[WITHDRAWN_NAME] = write_npy(folder / WITHDRAWN_NAME, numbers.shape, _INT64, [numbers])
    rows = np.frombuffer(b"".join(each for part in digests for each in part), np.uint8)
    rows = rows.reshape(-1, DIGEST_BYTES)
    files[HASHES_NAME] = write_npy(folder / HASHES_NAME, rows.shape, rows.dtype, [rows])
    card = replace(
        card,
        parts=tuple(replace(p, hash=root_hash(d)) for p, d in zip(card.parts, digests, strict=True)),
        origin_parts=card.written_parts,
        files=files,
        withdrawn=withdrawn_since(old, new, reason),
    )
    write_durably(folder / CARD_NAME, card_text(card))
    for name in old.layout.part_names:
        (folder / f"{name}.json").unlink()
    (folder / SETTINGS_NAME).unlink()


def withdrawn_since(old: Pool, new: NDArray[np.int64], reason: str) -> dict[str, Any]:
    """What a card says of all documents that are gone, when ``new`` ones go for a reason."""
    before = old.card.withdrawn or {"documents": 0, "tokens": 0, "reasons": {}}
    return {
        "documents": before["documents"] + len(new),
        "tokens": before["tokens"] + int(body_lengths(old, new).sum()),
        "reasons": added(before["reasons"], {reason: len(new)}),
    }


def _digests(blocks: CheckedBlocks, index: int, folder: Path, new: NDArray[np.int64]) -> list[bytes]:
    """Hashes of the blocks of one token file, which is written if it is not there yet."""
    name = blocks.pool.layout.part_names[index]
    note = folder / f"{name}.json"
    if note.is_file():
        return [bytes.fromhex(digest) for digest in json.loads(note.read_bytes())]
    digests = _write_part(blocks, index, folder / f"{name}.bin", new)
    write_durably(note, canonical_json([digest.hex() for digest in digests]))
    return digests


def _write_part(blocks: CheckedBlocks, index: int, target: Path, new: NDArray[np.int64]) -> list[bytes]:
    """One token file; hashes of its blocks."""
    old, size = blocks.pool, blocks.pool.token_dtype.itemsize
    first, last = old.part_documents[index : index + 2].tolist()
    here = new[(new >= first) & (new < last)]
    if not len(here):
        link_file(old.layout.part_path(index), target)
        return [bytes.fromhex(digest) for digest in blocks.digests_of(index)]
    hasher = BlockHasher(old.card.block_bytes)
    base, end = (old.part_offsets[index : index + 2] * size).tolist()
    starts, stops = (old.offsets[here] * size).tolist(), (old.offsets[here + 1] * size).tolist()
    with target.open("wb") as file:
        for begin, start, stop in zip([base, *stops], [*starts, end], [*stops, end], strict=True):
            for data in blocks.between(begin, start):
                file.write(data)
                hasher.update(data)
            file.seek(stop - base)  # what is jumped over reads as zeros, and takes no room
            for at in range(start, stop, _ZEROS):
                hasher.update(memoryview(bytes(min(_ZEROS, stop - at))))
        file.truncate(end - base)
    sync(target)
    return hasher.digests()
