"""Some documents of a pool as a pool of their own, with all that the pool says of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.adopting import EXTENDS, refuse_pairs
from recipe.pools.blocks import numbers_hash
from recipe.pools.copies import Noted
from recipe.pools.pool import Pool
from recipe.pools.repeats import REPEATS
from recipe.pools.sections import Section
from recipe.pools.table import Row, row_groups, rows_from
from recipe.pools.writer import PoolWriter

COPIED = "copied"
"""Key of a card's ``source``: the pool that the documents are from, and which of them."""
LOST_NEEDS = "needs"
"""Key of a card's ``dropped``: needs of sections whose needed section stayed behind."""


class _Sections(NamedTuple):
    """Of one document, and how many of their needs name a document that is not copied."""

    found: list[int | Section] | None
    lost: int


def copy_documents(  # noqa: PLR0913  what may differ from the pool that is copied
    pool: Pool,
    chosen: NDArray[Any],
    out: Path | str,
    *,
    tags: Callable[[Row], Mapping[str, Any]] | None = None,
    dropped: Mapping[str, Any] | None = None,
    source: Mapping[str, Any] | None = None,
    part_tokens: int | None = None,
    beside: Callable[[Path], None] | None = None,
) -> Pool:
    """Write some documents of a pool as another pool, in their order, and open it.

    Kept are ids, groups, tags, sources, sections with what they need, special tokens in front, marks and
    whether repeats are looked for. An interrupted copy of the same documents goes on to the part. A need of
    a section that is not copied is left out, and counted in the card.

    Args:
        pool: an own pool, or a view of one.
        chosen: bool[num_numbers] which documents, or int64[n] their numbers, rising.
        out: folder of the new pool; nothing may be there.
        tags: of a copied document; default: those it has. What they depend on belongs into ``source``.
        dropped: what was left out, by reason, beside what the card of ``pool`` says.
        source: what the card says beside what the documents are from.
        part_tokens: stored tokens of a part at most.
        beside: as `PoolWriter.close` takes it.

    Raises:
        RecipeError: imported token files, no document chosen, something at ``out``, a full disk.
        ValueError: numbers that do not rise or that the pool does not have; a document that was erased.
    """
    refuse_pairs(pool, Path(out))
    numbers = _numbers(pool, chosen)
    if np.isin(numbers, pool.erased).any():
        raise ValueError("a document that was erased: it has no tokens to copy")
    if not len(numbers):
        raise RecipeError.single(
            str(out), str(pool.path), given="no document of it", expected="a pool with documents",
            fix="choose at least one document",
        )  # fmt: skip
    card = pool.card
    assert card.vocab_size is not None  # own pools state it
    before = {key: value for key, value in card.source.items() if key not in (EXTENDS, COPIED, REPEATS)}
    origin = {"fingerprint": card.fingerprint, "documents": len(numbers), "chosen": numbers_hash(numbers)}
    with PoolWriter(
        out,
        vocab_size=card.vocab_size,
        eos=card.eos,
        bos=card.bos,
        tokenizer=card.tokenizer,
        tokenizer_name=card.tokenizer_name,
        part_tokens=part_tokens,
        shuffled=card.shuffled,
        seed=card.seed,
        source={**before, **(source or {}), COPIED: origin},
        resume=True,
        repeats=None if pool.repeats is None else card.source.get(REPEATS),
    ) as writer:
        lost = _copy(writer, pool, numbers, tags)
        left_out: dict[str, Any] = {**card.dropped, **(dropped or {})}
        if lost:
            left_out[LOST_NEEDS] = lost
        return writer.close(dropped=left_out, beside=beside)


def _numbers(pool: Pool, chosen: NDArray[Any]) -> NDArray[np.int64]:
    if chosen.dtype == np.bool_:
        if len(chosen) != pool.num_numbers:
            raise ValueError(f"a mask of {len(chosen)} for {pool.num_numbers} documents")
        return np.flatnonzero(chosen)
    numbers = chosen.astype(np.int64)
    if len(numbers) and (numbers[0] < 0 or numbers[-1] >= pool.num_numbers or (np.diff(numbers) <= 0).any()):
        raise ValueError(f"numbers that do not rise within 0..{pool.num_numbers - 1}")
    return numbers


def _copy(
    writer: PoolWriter,
    pool: Pool,
    numbers: NDArray[np.int64],
    tags: Callable[[Row], Mapping[str, Any]] | None,
) -> int:
    """Give the documents to a writer that may hold the first of them; needs that are lost."""
    begins = int(pool.card.bos is not None)
    sections = _Boundaries(pool, numbers)
    done, lost, noted = writer.num_documents, 0, Noted(pool)
    for number in numbers[:done].tolist():
        lost += sections.of(number).lost
    for row in _rows(pool, numbers[done:]):
        stored, (front,) = pool.stored(row.document), pool.fronts(np.array([row.document]))
        found = sections.of(row.document)
        lost += found.lost
        writer.add(
            stored[front : len(stored) - int(pool.card.eos is not None)],
            id=row.id,
            group=row.group,
            tags=noted.joined(row.document, row.tags if tags is None else tags(row)),
            source=row.source,
            sections=found.found,
            lead=stored[begins:front],
        )
    return lost


def _rows(pool: Pool, numbers: NDArray[np.int64]) -> Iterator[Row]:
    """Rows of documents with rising numbers; the table is read once, a row group at a time."""
    start = 0
    for table in row_groups(pool.layout.table_file()):
        low, high = np.searchsorted(numbers, [start, start + table.num_rows]).tolist()
        if low < high:
            here = numbers[low:high]
            yield from rows_from(table.take(pa.array(here - start)), here.tolist(), pool.layout.part_names)
        start += table.num_rows


class _Boundaries:
    """Sections of the documents of a pool as they were declared; their ids are where they begin."""

    def __init__(self, pool: Pool, numbers: NDArray[np.int64]) -> None:
        self._pool, self._numbers = pool, numbers

    def of(self, number: int) -> _Sections:
        """Sections of a document; None where the pool says nothing of any."""
        pool, starts = self._pool, self._pool.sections
        if starts is None:
            return _Sections(None, 0)
        first, stop = pool.offsets[number : number + 2].tolist()
        body = first + int(pool.fronts(np.array([number]))[0])
        low, high = np.searchsorted(starts, [first, stop]).tolist()
        own = starts[low:high].tolist()
        if pool.needs is None or not len(pool.needs):
            return _Sections([start - body for start in own], 0)
        needing, lost = self._needs(first, stop)
        named = self._needed(number)
        if body in named or body in needing:
            own = [body, *own]
        return _Sections(
            [
                Section(at - body, at if at in named else None, tuple(needing.get(at, ())))
                if at in named or at in needing
                else at - body
                for at in own
            ],
            lost,
        )

    def _needs(self, first: int, stop: int) -> tuple[dict[int, list[int]], int]:
        """What the sections that begin between two tokens need, and needs that are lost."""
        assert self._pool.needs is not None
        rows = self._pool.needs
        low, high = np.searchsorted(rows[:, 0], [first, stop]).tolist()
        needing: dict[int, list[int]] = {}
        lost = 0
        for a, _, c, _ in rows[low:high].tolist():
            if self._is_copied(c):
                needing.setdefault(a, []).append(c)
            else:
                lost += 1
        return needing, lost

    def _is_copied(self, token: int) -> bool:
        number = int(np.searchsorted(self._pool.offsets, token, side="right")) - 1
        at = int(np.searchsorted(self._numbers, number))
        return at < len(self._numbers) and int(self._numbers[at]) == number

    def _needed(self, number: int) -> set[int]:
        """Beginnings of the sections that others of the document's unit need."""
        assert self._pool.needs is not None
        units, rows = self._pool.units, self._pool.needs
        edges = (number, number + 1)
        if units is not None:
            unit = int(np.searchsorted(units, number, side="right")) - 1
            edges = (int(units[unit]), int(units[unit + 1]))
        bounds = self._pool.offsets[list(edges)]
        low, high = np.searchsorted(rows[:, 0], bounds).tolist()
        return set(rows[low:high, 2].tolist())
