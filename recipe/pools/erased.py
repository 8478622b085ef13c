"""Documents whose tokens were overwritten with zeros after they were withdrawn: erased, not corrupt.

A block of a token file that lost documents no longer has its hash. It is as it should be all the same
where every token of it is accounted for: the withdrawn documents in it hold nothing but zeros (or are
whole), and each of the others has the content hash that the document table states, and its marks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.blocks import document_hash, file_hash
from recipe.pools.card import ALL, TABLE_NAME
from recipe.pools.finding import Finding
from recipe.pools.table import DocumentTable
from recipe.pools.verify import Block, block_digests, hashed_blocks

if TYPE_CHECKING:
    from recipe.pools.pool import Pool


def explained(
    pool: Pool, findings: Sequence[Finding], withdrawn: NDArray[np.int64]
) -> tuple[list[Finding], NDArray[np.int64]]:
    """Findings that erased documents do not explain, and the documents found erased.

    Args:
        pool: an own pool.
        findings: what ``pool.verify`` found.
        withdrawn: numbers of the documents that were withdrawn, rising.

    Returns:
        the findings that are left, and int64[n] the withdrawn documents that hold nothing but zeros, of
        those in the blocks that findings name.
    """
    left: list[Finding] = []
    erased: set[int] = set()
    by_name = _blocks_by_name(pool, findings) if len(withdrawn) else {}
    table = DocumentTable(pool.layout.folder / TABLE_NAME)
    for finding in findings:
        block = by_name.get(finding.where)
        known = None if block is None else _account(pool, table, block, withdrawn)
        if known is None:
            left.append(finding)
        else:
            erased.update(known)
    return left, np.array(sorted(erased), np.int64)


def _blocks_by_name(pool: Pool, findings: Sequence[Finding]) -> dict[str, Block]:
    """The blocks that findings about contents name; none where hashes or the table are damaged themselves."""
    wanted = {finding.where for finding in findings if finding.check == "contents"}
    folder, card = pool.layout.folder, pool.card
    if not wanted or not _is_whole_table(pool):
        return {}
    found = {}
    for origin in (False, True) if card.origin_parts else (False,):
        digests = block_digests(folder, card, origin=origin)[0]
        for block in () if digests is None else hashed_blocks(card, digests, origin=origin):
            if (name := f"{folder / block.where}") in wanted:
                found[name] = block
    return found


def _is_whole_table(pool: Pool) -> bool:
    record = pool.card.files.get(TABLE_NAME)
    try:
        return record is not None and file_hash(pool.layout.folder / TABLE_NAME) == record.hash
    except OSError:
        return False


def _account(
    pool: Pool, table: DocumentTable, block: Block, withdrawn: NDArray[np.int64]
) -> list[int] | None:
    """The erased documents of a block; None where something else in it is not what it was."""
    documents = _documents_in(pool, block)
    taken_down = np.isin(documents, withdrawn, assume_unique=True).tolist()
    erased = []
    try:
        hashes = table.read(documents, ("content_hash",))["content_hash"].to_pylist()
        for number, is_withdrawn, digest, (stored, body) in zip(
            documents.tolist(), taken_down, hashes, _texts(pool, documents), strict=True
        ):
            if document_hash(body) == digest.hex():
                if not is_withdrawn and not _has_marks(pool, stored):
                    return None
                continue
            if not is_withdrawn or body.any():
                return None
            erased.append(number)
    except (RecipeError, OSError):
        return None
    return erased


def _texts(pool: Pool, documents: NDArray[np.int64]) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Stored tokens and bodies of documents that stand one after another."""
    edges = pool.offsets[documents[0] : documents[-1] + 2].tolist()
    parts = (np.searchsorted(pool.part_documents, documents, side="right") - 1).tolist()
    end = int(pool.layout.eos_stored == ALL and pool.layout.eos is not None)
    fronts = pool.fronts(documents).tolist()
    for part, front, start, stop in zip(parts, fronts, edges[:-1], edges[1:], strict=True):
        base = int(pool.part_offsets[part])
        stored = pool.span(part, start - base, stop - base)
        yield stored, stored[front : len(stored) - end]


def _documents_in(pool: Pool, block: Block) -> NDArray[np.int64]:
    """int64[n]: the documents of which a token lies in a block."""
    size = pool.token_dtype.itemsize
    start, stop = (block.base + block.start) // size, -(-(block.base + block.stop) // size)
    low = int(np.searchsorted(pool.offsets, start, side="right")) - 1
    return np.arange(low, int(np.searchsorted(pool.offsets, stop, side="left")))


def _has_marks(pool: Pool, stored: NDArray[Any]) -> bool:
    """Whether the marks that every document of the pool stores are there."""
    layout = pool.layout
    marks = ((layout.bos_stored, layout.bos, 0), (layout.eos_stored, layout.eos, -1))
    return all(stored[at] == mark for said, mark, at in marks if said == ALL and mark is not None)
