"""Checking a pool's contents against the hashes and counts it was written with."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import ceil
from os import cpu_count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.blocks import DIGEST_BYTES, block_digest, file_hash, num_blocks, root_hash
from recipe.pools.card import (
    CARD_NAME,
    HASHES_NAME,
    LEADS_NAME,
    NEEDS_NAME,
    OFFSETS_NAME,
    ORIGIN_HASHES_NAME,
    REPEATS_NAME,
    SECTIONS_NAME,
    TABLE_NAME,
    UNITS_NAME,
    WITHDRAWN_NAME,
    Card,
    PartRecord,
)
from recipe.pools.finding import Finding
from recipe.pools.mapped import map_npy
from recipe.pools.megatron import read_index
from recipe.pools.offsets import boundary_fault, map_offsets
from recipe.pools.origins import AS_WRITTEN, check_origin_indices, check_origin_rows, read_tokens
from recipe.pools.table import DocumentTable

Check = Callable[[], list[Finding]]
SMALL_FILE = 64 << 20
"""Bytes of a file beside the tokens that is always hashed whole."""
_HASHED = (HASHES_NAME, ORIGIN_HASHES_NAME, WITHDRAWN_NAME)
"""Files that are hashed in any case, where the blocks are looked at."""


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch of a token file with a hash of its own."""

    part: str
    number: int
    start: int
    stop: int
    digest: bytes
    base: int
    """Bytes of the pool's tokens before its part."""

    @property
    def where(self) -> str:
        """Part, block and bytes, for people."""
        return f"{self.part}.bin block {self.number} (bytes {self.start}..{self.stop})"


def chosen(total: int, sample: Fraction | float | int, seed: int) -> NDArray[np.int64]:
    """Seeded choice of blocks, spread evenly: one from each of equal stretches of the pool.

    Args:
        total: blocks of the pool.
        sample: a number of blocks, or a share in (0, 1] if it is no ``int``: exact, a float as it is written.
        seed: another seed chooses other blocks of the same stretches.

    >>> chosen(10, 10, 1).tolist() == list(range(10)), len(chosen(1000, 0.05, 3))
    (True, 50)
    """
    wanted = sample if isinstance(sample, int) else ceil(total * Fraction(str(sample)))
    count = min(total, max(int(wanted), 1))
    bounds = [index * total // count for index in range(count + 1)] if count else [0]
    picks = [low + _draw(seed, index) % (high - low) for index, (low, high) in enumerate(pairwise(bounds))]
    return np.array(picks, dtype=np.int64)


def verify_own(
    folder: Path, card: Card, *, sample: Fraction | float | int | None, seed: int
) -> list[Finding]:
    """Findings of an own pool; ``sample`` None reads everything.

    Sizes, the hashes of the files beside the tokens, if they are small, and the chosen blocks are always
    compared; all of them, and offsets, indices and the document table against each other, only when
    everything is read. Blocks are hashed in threads.
    """
    checks: list[Check] = []
    findings: list[Finding] = []
    layouts = [False, True] if card.origin_parts else [False]
    for origin in layouts:
        digests, found = block_digests(folder, card, origin=origin)
        findings += found
        # a sample holds the tokens against what the fingerprint stands for, however they are cut now
        if digests is not None and (sample is None or origin == layouts[-1] or card.withdrawn):
            blocks = list(hashed_blocks(card, digests, origin=origin))
            picks = range(len(blocks)) if sample is None else chosen(len(blocks), sample, seed).tolist()
            checks += [lambda block=blocks[pick]: _check_block(folder, card, block) for pick in picks]  # type: ignore[misc]
    if sample is None:
        checks += [lambda part=part: _check_index(folder, part) for part in card.parts]  # type: ignore[misc]
        checks += [lambda: _check_offsets(folder, card), lambda: _check_units(folder, card)]
        checks += [lambda: _check_sections(folder, card), lambda: _check_repeats(folder, card)]
        checks += [lambda: _check_leads(folder, card), lambda: _check_table(folder, card)]
        if card.origin_parts:
            checks += [lambda: check_origin_indices(folder, card), lambda: check_origin_rows(folder, card)]
    else:
        small = [name for name, file in card.files.items() if file.bytes <= SMALL_FILE]
        checks += [lambda name=name: _check_hash(folder, card, name) for name in small if name not in _HASHED]  # type: ignore[misc]
    if WITHDRAWN_NAME in card.files:
        checks += [lambda: _check_hash(folder, card, WITHDRAWN_NAME)]
    with ThreadPoolExecutor(cpu_count() or 1) as threads:
        return [*findings, *(finding for found in threads.map(_guarded, checks) for finding in found)]


def verify_pairs(pairs: Iterable[Path]) -> list[Finding]:
    """Findings of imported pairs: they carry no hashes, so only index and token file are compared."""
    findings = []
    for pair in pairs:
        try:
            read_index(pair).offsets()
        except RecipeError as error:
            findings += _from_error("index", error)
    return findings


def _draw(seed: int, index: int) -> int:
    return int.from_bytes(
        hashlib.blake2b(f"verify {seed} {index}".encode(), digest_size=8).digest(), "little"
    )


def _guarded(check: Check) -> list[Finding]:
    """A file that cannot be read is a finding like any other."""
    try:
        return check()
    except RecipeError as error:
        return _from_error("file", error)
    except OSError as error:
        return [Finding("file", str(error.filename), "a readable file", error.strerror or str(error))]


def _from_error(check: str, error: RecipeError) -> list[Finding]:
    return [Finding(check, problem.where, problem.expected, str(problem.given)) for problem in error.problems]


def block_digests(
    folder: Path, card: Card, *, origin: bool = False
) -> tuple[NDArray[np.uint8] | None, list[Finding]]:
    """The blocks' hashes, if they are the ones the card and its parts state.

    ``origin``: of the parts that a pool was written with, whose token files were cut anew since.
    """
    name, parts = (ORIGIN_HASHES_NAME, card.origin_parts) if origin else (HASHES_NAME, card.parts)
    findings = _guarded(lambda: _check_hash(folder, card, name))
    if findings:
        return None, findings
    digests: NDArray[np.uint8] = np.load(folder / name)
    total = sum(num_blocks(part.bytes, card.block_bytes) for part in parts)
    if digests.shape != (total, DIGEST_BYTES):
        shape = f"{list(digests.shape)}"
        return None, [Finding("hashes", str(folder / name), f"[{total}, {DIGEST_BYTES}]", shape)]
    if origin and sum(part.bytes for part in parts) != sum(part.bytes for part in card.parts):
        sizes = (f"{sum(part.bytes for part in some)} bytes" for some in (parts, card.parts))
        return None, [Finding("parts", str(folder / CARD_NAME), *sizes)]
    start = 0
    for part in parts:
        stop = start + num_blocks(part.bytes, card.block_bytes)
        found = root_hash([digests[start:stop].tobytes()])
        if found != part.hash:
            where = f"{folder / part.name}.bin{AS_WRITTEN if origin else ''}"
            findings.append(Finding("hashes", where, part.hash, found))
        start = stop
    return digests, findings


def hashed_blocks(card: Card, digests: NDArray[np.uint8], *, origin: bool = False) -> Iterator[Block]:
    """The blocks of all token files of a pool, as they are or as they were written, with their hashes."""
    row = base = 0
    for part in card.origin_parts if origin else card.parts:
        for number, start in enumerate(range(0, part.bytes, card.block_bytes)):
            stop = min(start + card.block_bytes, part.bytes)
            name = f"{part.name}{AS_WRITTEN}" if origin else part.name
            yield Block(name, number, start, stop, digests[row].tobytes(), base)
            row += 1
        base += part.bytes


def _check_block(folder: Path, card: Card, block: Block) -> list[Finding]:
    data = read_tokens(folder, card, block.base + block.start, block.base + block.stop)
    found = block_digest(data)
    if found == block.digest:
        return []
    observed = found.hex() if len(data) == block.stop - block.start else f"only {len(data)} bytes"
    return [Finding("contents", f"{folder / block.where}", block.digest.hex(), observed)]


def _check_hash(folder: Path, card: Card, name: str) -> list[Finding]:
    found = file_hash(folder / name)
    expected = card.files[name].hash
    return [] if found == expected else [Finding("contents", str(folder / name), expected, found)]


def _check_index(folder: Path, part: PartRecord) -> list[Finding]:
    path = folder / f"{part.name}.idx"
    if (digest := file_hash(path)) != part.index_hash:
        return [Finding("contents", str(path), part.index_hash, digest)]
    index = read_index(path)
    found = (index.num_documents, int(index.offsets()[-1]))
    expected = (part.documents, part.tokens)
    return [] if found == expected else [Finding("index", str(path), str(expected), str(found))]


def _check_offsets(folder: Path, card: Card) -> list[Finding]:
    path = folder / OFFSETS_NAME
    fault = boundary_fault(folder, card, path.name)
    findings = [Finding("contents", str(path), *fault)] if fault else []
    offsets = map_offsets(folder, card)
    document = token = 0
    for part in card.parts:
        own = read_index(folder / f"{part.name}.idx").offsets() + token
        stored = offsets[document : document + part.documents + 1]
        if not np.array_equal(own, stored):
            at = int(np.argmax(own != stored)) if len(own) == len(stored) else 0
            where = f"{path} document {document + at}"
            findings.append(Finding("offsets", where, f"{own[at]}, as {part.name}.idx says", str(stored[at])))
        document, token = document + part.documents, token + part.tokens
    return findings


def _check_units(folder: Path, card: Card) -> list[Finding]:
    if UNITS_NAME not in card.files:
        return []
    path = folder / UNITS_NAME
    findings = _check_hash(folder, card, path.name)
    units = map_npy(path, card.num_units + 1, np.dtype("<i8"))
    if units[0] != 0 or units[-1] != card.num_documents or bool(np.any(np.diff(units) <= 0)):
        expected = f"numbers that rise from 0 to {card.num_documents}"
        findings.append(Finding("units", str(path), expected, f"{units[0]} … {units[-1]}"))
    return findings


def _check_sections(folder: Path, card: Card) -> list[Finding]:
    names = [name for name in (SECTIONS_NAME, NEEDS_NAME) if name in card.files]
    findings = [finding for name in names for finding in _check_hash(folder, card, name)]
    if findings or SECTIONS_NAME not in names:
        return findings
    path = folder / SECTIONS_NAME
    sections = map_npy(path, None, np.dtype("<i8"))
    if bool(np.any(np.diff(sections) <= 0)):
        findings.append(Finding("sections", str(path), "numbers that rise", "some that do not"))
    return findings


def _check_repeats(folder: Path, card: Card) -> list[Finding]:
    if REPEATS_NAME not in card.files:
        return []
    path = folder / REPEATS_NAME
    findings = _check_hash(folder, card, REPEATS_NAME)
    spans = map_npy(path, None, np.dtype("<i8"))
    if not findings and (len(spans) % 2 or bool(np.any(np.diff(spans) < 0))):
        findings.append(Finding("repeats", str(path), "spans that rise", "some that do not"))
    return findings


def _check_leads(folder: Path, card: Card) -> list[Finding]:
    return _check_hash(folder, card, LEADS_NAME) if LEADS_NAME in card.files else []


def _check_table(folder: Path, card: Card) -> list[Finding]:
    path = folder / TABLE_NAME
    if findings := _check_hash(folder, card, path.name):
        return findings
    rows = DocumentTable(path).num_rows
    if rows == card.num_documents:
        return []
    return [Finding("documents", str(path), f"{card.num_documents} rows", f"{rows} rows")]
