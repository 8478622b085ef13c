"""A pool that is there already, split: each part a pool of its own, as if it had been prepared so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from recipe.errors import Problem, RecipeError
from recipe.pools.adopting import refuse_pairs
from recipe.pools.contents import RANGE_DOCUMENTS, Contents, Equal, digests_of, folder_above
from recipe.pools.copied import existing_copy, write_copy
from recipe.pools.dedup import needed_documents
from recipe.pools.pool import Pool
from recipe.pools.reasons import OTHER_SPLIT, WITHDRAWN
from recipe.pools.split_record import check_others, has_record, write_record
from recipe.pools.splits import SPLIT, Split, split_draw
from recipe.pools.table import either, row_groups
from recipe.pools.workplace import refuse_inside

LEFT_OUT = 255
"""The split of a document whose text a smaller split keeps."""


def split_pool(
    pool: Pool, split: Split, out: Path | str, *, tell: Callable[[str], None] = lambda text: None
) -> dict[str, Pool]:
    """Write the parts of a split as pools ``out/train``, ``out/validation``, …, and open them.

    A document is where ``recipe prepare --split`` would put it: by its group, or else by its tokens. No text
    is in two of them: where documents of several groups are equal, those of the smallest split stay.
    Interrupted, the same call goes on.

    Args:
        pool: an own one.
        split: names, shares and salt.
        out: folder of the new ones.
        tell: called with what happens.

    Raises:
        RecipeError: token files without a document table, a split of nothing, something else at ``out``, or
            a document in one split whose group needs it, while a smaller one has its text.
    """
    folder = Path(out)
    refuse_pairs(pool, folder)
    refuse_inside(folder)
    check_others(folder, split)
    if SPLIT in pool.card.source:
        raise RecipeError.single(
            "split", str(pool.path), given="a pool that is one part of a split", expected="a whole pool",
            fix="split the pool that it was taken from: another draw would mix the two",
        )  # fmt: skip
    assigned, left_out = _assigned(pool, split, folder_above(folder))
    counts = {name: int(np.count_nonzero(assigned == at)) for at, name in enumerate(split.names)}
    if empty := [name for name, count in counts.items() if not count]:
        raise RecipeError(
            f"splits of {pool.path}",
            [
                Problem(
                    name, f"0 of {pool.num_documents:,} documents", "at least one",
                    "give it a larger share, leave it out, or choose another --split-salt",
                )
                for name in empty
            ],
        )  # fmt: skip
    gone = {OTHER_SPLIT: sum(left_out), WITHDRAWN: len(pool.erased)}
    gone = {reason: count for reason, count in gone.items() if count}
    sources = {name: {SPLIT: {**split.to_plain(), "name": name, "documents": counts}} for name in split.names}
    there = {name: existing_copy(folder / name, pool, source) for name, source in sources.items()}
    pools = dict[str, Pool]()
    for index, (name, source) in enumerate(sources.items()):
        if (new := there[name]) is None:
            reasons = {OTHER_SPLIT: left_out[index]} if left_out[index] else {}
            if not index and len(pool.erased):
                reasons[WITHDRAWN] = len(pool.erased)
            new = write_copy(
                pool, assigned == index, folder / name, source=source, left_out=reasons, elsewhere=gone
            )
        else:
            tell(f"{new.path} is up to date")
        pools[name] = new
    if not has_record(folder, list(pools.values())):
        kept = sum(counts.values())
        read = {"read": pool.num_documents, "kept": kept, OTHER_SPLIT: sum(left_out)}
        write_record(folder, split, list(pools.values()), read)
    return pools


def _assigned(pool: Pool, split: Split, scratch: Path) -> tuple[NDArray[np.uint8], list[int]]:
    """uint8[documents]: the split of each, or LEFT_OUT; documents of each split that were left out."""
    assigned = np.full(pool.num_numbers, LEFT_OUT, np.uint8)
    tables = row_groups(pool.layout.table_file(), ["group_int", "group_str"])
    start = 0
    for table, digests in zip(tables, digests_of(pool), strict=True):
        groups = either(table, "group")
        draws = [split_draw(split.salt, g, d.tobytes()) for g, d in zip(groups, digests, strict=True)]
        assigned[start : start + len(draws)] = split.of(np.array(draws, np.uint64))
        start += len(draws)
    assigned[pool.erased] = LEFT_OUT
    left_out = [0] * len(split.names)
    if pool.units is not None:
        torn = _Torn(pool, split, assigned, left_out)
        with Contents([pool], scratch) as contents:
            for equal in contents.equal(RANGE_DOCUMENTS):
                torn.settle(equal)
        torn.check()
    return assigned, left_out


class _Torn:
    """Texts of groups in several splits: the smallest keeps them."""

    def __init__(self, pool: Pool, split: Split, assigned: NDArray[np.uint8], left_out: list[int]) -> None:
        self._pool, self._assigned, self._left_out = pool, assigned, left_out
        self._ranks = split.ranks()
        self._needed = set(needed_documents(pool).tolist())
        self._problems: list[int] = []

    def settle(self, equal: Equal) -> None:
        """Leave out the copies of each text that are not in the split that keeps it."""
        for numbers in equal.sets():
            splits = {n: int(self._assigned[n]) for n in numbers if self._assigned[n] != LEFT_OUT}
            if len(set(splits.values())) < 2:
                continue
            needed = [at for number, at in splits.items() if number in self._needed]
            home = min(needed or splits.values(), key=self._ranks.__getitem__)
            for number, at in splits.items():
                if at != home:
                    if number in self._needed:
                        self._problems.append(number)
                    self._assigned[number] = LEFT_OUT
                    self._left_out[at] += 1

    def check(self) -> None:
        """Raise RecipeError where a group needs what is left out."""
        if self._problems:
            ids = self._pool.ids(self._problems[:20])
            raise RecipeError(
                f"splits of {self._pool.path}",
                [
                    Problem(
                        f"document {id!r}", "a text that is in another split too",
                        "another text: sections of its group need it, so it is not left out",
                        "leave one of the copies out, or put both into one group",
                    )
                    for id in ids
                ],
            )  # fmt: skip
