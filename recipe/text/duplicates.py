"""Between the passes: which documents stay, and in which split, decided from what they hold.

Documents with equal body tokens are one. Of the copies the one stays whose unit comes first in the shuffle,
then the one with the least id: order of files, tasks and workers change nothing. A document of a group is
left out alone; one whose sections have ids stays, since others of its group may need them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.errors import ContentError, Problem
from recipe.pools.card import canonical_json
from recipe.pools.contents import RANGE_DOCUMENTS, Contents, equal_documents
from recipe.pools.pool import Pool
from recipe.pools.splits import MOST_SPLITS, Split
from recipe.pools.tags import JoinedTags, TagsWriter, joined_tags
from recipe.pools.workplace import sync, write_durably
from recipe.text.copies import CopyNotes
from recipe.text.spill import first_numbers
from recipe.text.spilled import Spilled, contents_of

AS_DUPLICATE, AS_OTHER_SPLIT = MOST_SPLITS, 2 * MOST_SPLITS
"""Added to the split of a document that is left out."""

_FILES = PLACES, TAGS, TAG_PLACES, FINISHED = "placed.npy", "placed.tags", "placed.tags.npy", "placed.json"
_SHOWN = 20
_CACHED = 1 << 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """What is decided, and about what is there already."""

    drop: bool
    """One copy of each text stays; else all do that are in one split."""
    split: Split | None = None
    extends: tuple[Pool | None, ...] = (None,)
    """By split, the pools that are extended: their documents stay where they are."""

    @property
    def is_needed(self) -> bool:
        """Whether any document can be left out, or goes somewhere."""
        return self.drop or self.split is not None


@dataclass(frozen=True, slots=True)
class Placed:
    """The split of every document by number; AS_DUPLICATE or AS_OTHER_SPLIT more where it is left out."""

    places: NDArray[np.uint8]
    tags: JoinedTags

    def chosen(self, split: int) -> NDArray[np.bool_]:
        """bool[documents]: those of a split."""
        chosen: NDArray[np.bool_] = self.places == split
        return chosen

    def count(self, split: int, reason: int = 0) -> int:
        """Documents of a split that stay, or that are left out ``AS_DUPLICATE`` or ``AS_OTHER_SPLIT``."""
        return int(np.count_nonzero(self.places == split + reason))

    def total(self, reason: int = 0) -> int:
        """As `count`, of all splits."""
        inside = (self.places >= reason) & (self.places < reason + MOST_SPLITS)
        return int(np.count_nonzero(inside))


def place_documents(folder: Path, num_tasks: int, rule: Rule) -> Placed:
    """Decide about every document of a first pass; what was decided before an interruption is read again.

    Memory: a byte a document, 24 bytes for each that gets tags of others, and one range of hashes.

    Raises:
        ContentError: a document that others need sections of is in one split, and its text in another.
    """
    if (folder / FINISHED).is_file():
        return Placed(np.load(folder / PLACES), JoinedTags(folder / TAGS, np.load(folder / TAG_PLACES)))
    for name in _FILES:
        (folder / name).unlink(missing_ok=True)
    with TagsWriter(folder / TAGS) as tags:
        decided = _Decided(folder, num_tasks, rule, tags)
        decided.decide()
        decided.write_copies(folder)
    np.save(folder / TAG_PLACES, tags.places())
    np.save(folder / PLACES, decided.places)
    for name in (PLACES, TAGS, TAG_PLACES):
        sync(folder / name)
    write_durably(folder / FINISHED, b"{}")
    return place_documents(folder, num_tasks, rule)


class _Decided:
    """The decisions while they are made."""

    def __init__(self, folder: Path, num_tasks: int, rule: Rule, tags: TagsWriter) -> None:
        self._rule, self._tags = rule, tags
        self._spilled = Spilled(folder, num_tasks)
        self._rows = dict[int, tuple[Any, ...]]()
        self._tasks = [contents_of(folder, number) for number in range(num_tasks)]
        there = [(split, pool) for split, pool in enumerate(rule.extends) if pool is not None]
        self._known_splits = [split for split, _ in there]
        self._known = Contents([pool for _, pool in there], folder)
        self._ranks = [0] if rule.split is None else rule.split.ranks()
        self._problems: list[Problem] = []
        self._copies = CopyNotes()
        self.places = np.zeros(first_numbers(folder, num_tasks)[-1], np.uint8)
        if rule.split is not None:
            for first, task in zip(self._spilled.first, self._tasks, strict=False):
                self.places[first + task["number"].astype(np.int64)] = rule.split.of(task["draw"])

    def decide(self) -> None:
        """Leave out what is to be left out."""
        with self._known:
            known = int(self._known.bases[-1])
            bases = [0] * len(self._known.runs) + [known + first for first in self._spilled.first[:-1]]
            for equal in equal_documents([*self._known.runs, *self._tasks], bases, RANGE_DOCUMENTS):
                for numbers in equal.sets():
                    old = [number for number in numbers if number < known]
                    if len(numbers) > len(old):
                        new = [number - known for number in numbers[len(old) :]]
                        self._settle(self._places_of(old), new)
        if self._problems:
            raise ContentError("splits", self._problems[:_SHOWN])

    def write_copies(self, folder: Path) -> None:
        """Note what new documents say more than old ones that they equal."""
        self._copies.write(folder, self._rule.extends, self._spilled.row, self._order)

    def _places_of(self, old: list[int]) -> dict[int, int]:
        """Splits of the pools that have a text already, each with its first document there."""
        pools = self._known.pool_of(np.array(old, np.int64)).tolist()
        places = dict[int, int]()
        for number, pool in zip(old, pools, strict=True):
            places.setdefault(self._known_splits[pool], number - int(self._known.bases[pool]))
        return places

    def _settle(self, known: dict[int, int], copies: list[int]) -> None:
        """Decide about the copies of one text; ``known``: splits of pools that have it already, and where."""
        splits = self.places[copies].tolist()
        self._rows.clear()
        if not self._rule.drop and len({*known, *splits}) == 1:
            return
        named = {copy: split for copy, split in zip(copies, splits, strict=True) if self._is_named(copy)}
        homes = set(known) or {min(named.values() or splits, key=self._ranks.__getitem__)}
        inside = [copy for copy, split in zip(copies, splits, strict=True) if split in homes]
        first = None if known or not inside else min(inside, key=self._order)
        gone = []
        for copy, split in zip(copies, splits, strict=True):
            if split not in homes:
                if copy in named:
                    self._problems.append(self._torn(copy))
                self.places[copy] += AS_OTHER_SPLIT
                gone.append(copy)
            elif self._rule.drop and copy != first and copy not in named:
                self.places[copy] += AS_DUPLICATE
                gone.append(copy)
        if first is not None:
            self._keep_tags(first, gone)
        for split, old in known.items():
            self._copies.add(split, old, gone)

    def _keep_tags(self, first: int, gone: Sequence[int]) -> None:
        said: dict[bytes, Any] = {}
        for copy in gone:
            tags = self._row(copy)[2]
            said.setdefault(canonical_json(tags), tags)
        own = self._row(first)[2]
        if (joined := joined_tags(own, said.values())) != own:
            self._tags.add(first, joined)

    def _row(self, number: int) -> tuple[Any, ...]:
        """What is said of a document; that of a few copies is read once."""
        if (row := self._rows.get(number)) is None:
            row = self._spilled.row(number)
            if len(self._rows) < _CACHED:
                self._rows[number] = row
        return row

    def _is_named(self, number: int) -> bool:
        """Whether others of its group may need a section of it."""
        _, group, _, _, *said = self._row(number)
        return group is not None and bool(said) and any(id is not None for _, id, _ in said[0] or ())

    def _order(self, number: int) -> tuple[Any, ...]:
        id = self._row(number)[0]
        return (*self._spilled.key(number), isinstance(id, str), id)

    def _torn(self, number: int) -> Problem:
        id, group, _, source, *_ = self._spilled.row(number)
        return Problem(
            source, f"document {id!r}, whose text is in another split too",
            f"another text: sections of group {group!r} may need it, so it is not left out",
            "leave one of the copies out, or put both into one group",
        )  # fmt: skip
