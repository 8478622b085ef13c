"""One pool for each text: of documents that several pools hold, the first pool keeps one, with all tags."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from recipe.config.places import place
from recipe.errors import Problem, RecipeError
from recipe.pools.chosen_ids import ChosenIds
from recipe.pools.contents import RANGE_DOCUMENTS, Contents, Equal, folder_above
from recipe.pools.copied import existing_copy, write_copy
from recipe.pools.copies import Noted
from recipe.pools.lengths import body_lengths
from recipe.pools.opening import open_pool
from recipe.pools.pool import Pool
from recipe.pools.reasons import DUPLICATE, WITHDRAWN
from recipe.pools.settings import differences
from recipe.pools.tags import JoinedTags, TagsWriter, joined_texts
from recipe.pools.workplace import refuse_inside

DEDUPLICATED = "deduplicated"
"""Key of a card's ``source``: the pools that were looked at, in the order of their priority."""
DEDUP_VERSION = 1

Tell = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Deduplicated:
    """What of one pool stays, and where the rest is."""

    name: str
    path: Path
    """Where it is written; nothing is there where no document stays."""
    documents: int
    """Before."""
    tokens: int
    kept_documents: int
    kept_tokens: int
    left_out: Mapping[str, int]
    """Documents by reason."""
    duplicates_of: Mapping[str, int]
    """Duplicates by the pool that keeps the text; its own name: by another of its documents."""
    needed: int
    """Duplicates that stay: others of their group need sections of them."""
    fingerprint: str | None = None
    """Of the pool that was written."""


def dedup_pools(
    pools: Sequence[Path | str],
    out: Path | str,
    *,
    ids: ChosenIds | None = None,
    dry_run: bool = False,
    tell: Tell = lambda text: None,
) -> list[Deduplicated]:
    """Write the pools anew, each text in the first of them that has it, under the names of their folders.

    What stays has the order that it had, with ids, groups, sections and sources; the copy that is kept gets
    the tags of the others (`recipe.pools.tags`). A document leaves its group alone; one that others of its
    group need sections of stays. Interrupted, the same call goes on: pools that are whole stay.

    Args:
        pools: folders, by priority; their contents stay as they are.
        out: folder of the new ones.
        ids: of one pool alone: which of its documents may stay at all.
        dry_run: count, and write nothing.
        tell: called with what happens.

    Raises:
        RecipeError: pools of different tokenizers or marks, token files without a document table, two
            folders of one name, or something else at ``out``.
    """
    folders = _named(pools)
    refuse_inside(Path(out))
    if ids is not None and len(folders) > 1:
        given, fix = f"{len(folders)} pools", "give the ids of each pool with that pool alone"
        raise RecipeError.single("dedup", "ids", given=given, expected="one pool", fix=fix)
    opened = [open_pool(folder, name) for name, folder in folders.items()]
    check_alike(opened)
    scratch = None if dry_run else folder_above(Path(out))  # as large as the pools may need, and no memory
    with tempfile.TemporaryFile(dir=scratch) as file, TagsWriter(file) as tags:
        decided = _Decided(opened, ids, tags)
        decided.decide(scratch)
        found = [decided.of(index, Path(out)) for index in range(len(opened))]
        if dry_run:
            return found
        joined = JoinedTags(file, tags.places())
        there = [decided.existing(index, one) for index, one in enumerate(found)]
        return [decided.write(index, one, joined, (there[index], tell)) for index, one in enumerate(found)]


def _named(pools: Sequence[Path | str]) -> dict[str, Path]:
    found = dict[str, Path]()
    problems = []
    for given in pools:
        folder = place(given)
        name = folder.resolve().name
        if name in found:
            fix = "rename one of the folders, or deduplicate them into folders of their own"
            problems.append(
                Problem(str(folder), f"the name {name!r} again, of {found[name]}", "one name each", fix)
            )
        found.setdefault(name, folder)
    if problems:
        raise RecipeError("dedup", problems)
    return found


def check_alike(pools: Sequence[Pool]) -> None:
    """Refuse pools whose tokens do not mean the same, or that have no document table.

    Raises:
        RecipeError: naming each pool that is not like the first one.
    """
    first, problems = pools[0], []
    for pool in pools:
        if pool.layout.table is None:
            fix = "make pools of our own of them first; `recipe pools overlap` counts them as they are"
            problems.append(Problem(str(pool.path), "token files without a document table", "own pools", fix))
            continue
        for name, given, wanted in differences(pool.card, first.card):
            fix = "prepare it with the same tokenizer and marks, or leave it out"
            expected = f"{wanted}, as in {first.path}"
            problems.append(Problem(f"{pool.path}: {name}", str(given), expected, fix))
    if problems:
        raise RecipeError("dedup", problems)


class _Decided:
    """Which documents of which pools stay."""

    def __init__(self, pools: Sequence[Pool], ids: ChosenIds | None, tags: TagsWriter) -> None:
        self._pools, self._ids, self._tags = pools, ids, tags
        self._bases: NDArray[np.int64] = np.cumsum([0, *(pool.num_numbers for pool in pools)])
        self._kept = np.ones(int(self._bases[-1]), np.bool_)
        self._needed = np.zeros(len(self._kept), np.bool_)
        self._reasons = [dict[str, int]() for _ in pools]
        self._homes = np.zeros((len(pools), len(pools)), np.int64)
        self._stay = np.zeros(len(pools), np.int64)

    def decide(self, scratch: Path | None) -> None:
        """Look at every document once; hashes are kept in the folder ``scratch``."""
        for index, pool in enumerate(self._pools):
            base = int(self._bases[index])
            self._kept[base + pool.erased] = False
            self._count(index, WITHDRAWN, len(pool.erased))
            self._needed[base + needed_documents(pool)] = True
            if self._ids is not None:
                wanted = self._ids.wanted(pool) | ~self._kept[base : base + pool.num_numbers]
                self._kept[base : base + pool.num_numbers] &= wanted
                self._count(index, self._ids.reason, int(np.count_nonzero(~wanted)))
        with Contents(self._pools, scratch) as contents:
            for equal in contents.equal(RANGE_DOCUMENTS):
                self._settle(equal)

    def _count(self, index: int, reason: str, documents: int) -> None:
        if documents:
            self._reasons[index][reason] = documents

    def _settle(self, equal: Equal) -> None:
        """Keep one of each text: of the first pool, the first that others need, or else the first."""
        pools = np.searchsorted(self._bases, equal.numbers, side="right") - 1
        pool_of = dict(zip(equal.numbers.tolist(), pools.tolist(), strict=True))
        changed = list[tuple[int, list[int]]]()
        for numbers in equal.sets():
            copies = [number for number in numbers if self._kept[number]]
            if len(copies) < 2:
                continue
            home = [number for number in copies if pool_of[number] == pool_of[copies[0]]]
            kept = next((number for number in home if self._needed[number]), home[0])
            gone = [number for number in copies if number != kept and not self._needed[number]]
            for number in copies:
                if number != kept and self._needed[number]:
                    self._stay[pool_of[number]] += 1
            for number in gone:
                self._kept[number] = False
                self._homes[pool_of[number], pool_of[kept]] += 1
            if gone:
                changed.append((kept, gone))
        self._join(changed)

    def _join(self, changed: Sequence[tuple[int, list[int]]]) -> None:
        """Note the tags of the copies that stay, where those that go say more."""
        wanted = np.array(sorted({n for kept, gone in changed for n in (kept, *gone)}), np.int64)
        said = dict[int, str]()
        for index, pool in enumerate(self._pools):
            low, high = np.searchsorted(wanted, self._bases[index : index + 2]).tolist()
            said.update(tags_of(pool, wanted[low:high] - self._bases[index], int(self._bases[index])))
        for kept, gone in changed:
            others = {said[number] for number in gone if number in said}
            if (joined := joined_texts(said.get(kept), others)) is not None:
                self._tags.add(kept, joined)

    def of(self, index: int, out: Path) -> Deduplicated:
        """What was decided about one pool."""
        pool, kept = self._pools[index], self._chosen(index)
        homes = self._homes[index].tolist()
        of = {other.name: count for other, count in zip(self._pools, homes, strict=True) if count}
        duplicates = {DUPLICATE: sum(homes)} if any(homes) else {}
        return Deduplicated(
            name=pool.name,
            path=out / pool.name,
            documents=pool.num_documents,
            tokens=pool.card.body_tokens,
            kept_documents=int(np.count_nonzero(kept)),
            kept_tokens=_tokens(pool, kept),
            left_out={**self._reasons[index], **duplicates},
            duplicates_of=of,
            needed=int(self._stay[index]),
        )

    def _statement(self, index: int, one: Deduplicated) -> dict[str, object]:
        statement = {
            "version": DEDUP_VERSION,
            "pools": [[other.name, other.fingerprint] for other in self._pools],
            "pool": self._pools[index].name,
            "duplicates_of": dict(one.duplicates_of),
            **({} if self._ids is None else {"ids": self._ids.to_plain()}),
        }
        return {DEDUPLICATED: statement}

    def existing(self, index: int, one: Deduplicated) -> Pool | None:
        """The pool that is written already, asked of all before any is written; else RecipeError."""
        if not one.kept_documents:
            return None
        return existing_copy(one.path, self._pools[index], self._statement(index, one))

    def write(
        self, index: int, one: Deduplicated, tags: JoinedTags, there: tuple[Pool | None, Tell]
    ) -> Deduplicated:
        """Write one pool, or leave it as it is where it is written already."""
        pool, base = self._pools[index], int(self._bases[index])
        new, tell = there
        if not one.kept_documents:
            tell(f"{one.path}: no document stays, nothing is written")
            return one
        if new is not None:
            tell(f"{one.path} is up to date")
        else:
            new = write_copy(
                pool, self._chosen(index), one.path,
                tags=lambda number: tags.of(base + number),
                source=self._statement(index, one), left_out=one.left_out,
            )  # fmt: skip
        with new:
            return replace(one, fingerprint=new.fingerprint)

    def _chosen(self, index: int) -> NDArray[np.bool_]:
        return self._kept[self._bases[index] : self._bases[index + 1]]


def _tokens(pool: Pool, kept: NDArray[np.bool_]) -> int:
    pieces = range(0, len(kept), 1 << 20)
    numbers = (start + np.flatnonzero(kept[start : start + (1 << 20)]) for start in pieces)
    return sum(int(body_lengths(pool, some).sum()) for some in numbers)


def needed_documents(pool: Pool) -> NDArray[np.int64]:
    """int64[n]: documents with sections that other documents of their group need."""
    if pool.needs is None or not len(pool.needs):
        return np.empty(0, np.int64)
    documents = np.searchsorted(pool.offsets, pool.needs[:, [0, 2]], side="right") - 1
    needed: NDArray[np.int64] = np.unique(documents[documents[:, 0] != documents[:, 1], 1])
    return needed


def tags_of(pool: Pool, documents: NDArray[np.int64], base: int) -> Iterator[tuple[int, str]]:
    """Number (from ``base``) and tags as JSON of documents that have any; numbers rise."""
    if not len(documents):
        return
    start, noted = 0, Noted(pool)
    with pq.ParquetFile(pool.layout.table_file()) as file:
        for group in range(file.num_row_groups):
            stop = start + file.metadata.row_group(group).num_rows
            low, high = np.searchsorted(documents, [start, stop]).tolist()
            if low < high:
                column = file.read_row_group(group, columns=["tags"], use_threads=False)["tags"]
                here = documents[low:high]
                taken = column.take(here - start).to_pylist()
                taken = [noted.joined_text(at, tags) for at, tags in zip(here.tolist(), taken, strict=True)]
                texts = {text: text for text in taken}  # one of each is kept in memory
                yield from (
                    (base + number, texts[text])
                    for number, text in zip(here.tolist(), taken, strict=True)
                    if text is not None
                )
            start = stop
