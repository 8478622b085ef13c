"""What a rule does to a pool's texts, measured on whole blocks before any step.

How often tokens are read, where cuts fall, how rows fill, who lies beside whom, and what each reading of the
pool is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.config import Recipe, Rule
from recipe.errors import RecipeError
from recipe.mixing.aligning import give_edges
from recipe.mixing.cursor_block import block_place
from recipe.mixing.estimate import EpochYield, epoch_yield
from recipe.mixing.planned import Plan
from recipe.mixing.simulated import read_stock
from recipe.mixing.snapshot import Cursor
from recipe.pools import Pool
from recipe.sequences.blocks import Block, plan_block
from recipe.sequences.pieces import AHEAD, CONTEXT, MARKER
from recipe.sequences.placing import places_of_cuts, tables_of
from recipe.sequences.reading_order import BlockPlace, num_blocks
from recipe.sequences.withdrawn import from_the_start

MOST_BLOCKS = 2
"""Blocks looked at of a pool that has more."""
MOST_EPOCHS = 8
"""Readings that are looked at of a pool that is read more often."""
MOST_CUTS = 2048
"""Cuts whose places are looked at, evenly spread over all."""
EIGHTHS = 8
"""Bars of a piece's length in windows, and of a row's filling."""


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """One pool under one stage's rule; counts are those of the blocks looked at."""

    documents: int
    body: int
    overlap: int
    readings: tuple[int, ...]
    """[k]: document tokens that are read k times in one epoch; [0] were dropped."""
    cuts: int
    """Places inside documents where a piece ends and the next begins to be fresh."""
    places: Mapping[str, int] | None
    """Of them, or of ``MOST_CUTS`` evenly spread ones, at what: the coarsest kind of place. None where nobody
    said what tokens spell."""
    lengths: tuple[int, ...]
    """Pieces by length, in eighths of the window."""
    filling: tuple[int, ...]
    """Rows by positions that are no padding, in eighths of the context."""
    documents_per_row: Fraction
    neighbours: int
    """Pairs of documents side by side in a row."""
    neighbours_again: int
    """Of them, those side by side in the next epoch, too, wherever the block lies there."""
    epochs: tuple[EpochYield, ...]
    """What each reading of the pool gives, as far as this stage takes it."""

    @property
    def mean_readings(self) -> Fraction:
        """Times that a served token is read in one epoch, on average."""
        served = sum(self.readings[1:])
        return Fraction(sum(times * tokens for times, tokens in enumerate(self.readings)), served or 1)

    def to_plain(self) -> dict[str, Any]:
        """Plain values for ``recipe plan --diagnose --json``."""
        return {
            "documents": self.documents,
            "body": self.body,
            "overlap": self.overlap,
            "overlap_ratio": float(Fraction(self.overlap, self.body or 1)),
            "mean_readings": float(self.mean_readings),
            "readings": {str(times): tokens for times, tokens in enumerate(self.readings) if tokens},
            "cuts": self.cuts,
            "places": None if self.places is None else dict(self.places),
            "lengths": list(self.lengths),
            "filling": list(self.filling),
            "documents_per_row": float(self.documents_per_row),
            "neighbours": self.neighbours,
            "neighbours_again": self.neighbours_again,
            "epochs": [one.to_plain() for one in self.epochs],
        }


def diagnose(plan: Plan) -> dict[str, dict[str, Diagnosis]]:
    """Every pool that a stage draws from and that has a folder, by stage and name."""
    recipe = plan.recipe
    return {
        stage: {
            name: _diagnosis(recipe, stage, plan.opened[name], pool.epochs)
            for name, pool in of.pools.items()
            if pool.share and name in plan.opened
        }
        for stage, of in plan.stages.items()
    }


def _diagnosis(recipe: Recipe, stage: str, pool: Pool, epochs: Fraction) -> Diagnosis:
    rule, place = recipe.rule(stage, pool.name), block_place(recipe, pool, Cursor())
    total = num_blocks(pool, place.block_units, place.prefix, place.fraction)
    gone = from_the_start(pool.erased)
    numbers = range(total)[:MOST_BLOCKS]
    blocks = [plan_block(pool, rule, replace(place, block=number), (), gone) for number in numbers]
    totals = np.sum([block.totals[-1] for block in blocks], axis=0)
    both = _neighbours(pool, rule, place, blocks)
    rows = sum(block.num_sequences for block in blocks)
    stock = read_stock(recipe, pool)
    return Diagnosis(
        documents=sum(len(block.documents) for block in blocks),
        body=int(totals[0]),
        overlap=int(totals[1]),
        readings=_readings(blocks),
        cuts=sum(len(_cuts(block)) for block in blocks),
        places=_places(recipe, pool, blocks),
        lengths=_eighths([_lengths(block) for block in blocks], rule.window),
        filling=_eighths(
            [np.diff(block.totals[:, 0] + block.totals[:, 2]) for block in blocks], rule.context
        ),
        documents_per_row=Fraction(sum(_documents_in_rows(block) for block in blocks), rows or 1),
        neighbours=both[0],
        neighbours_again=both[1],
        epochs=tuple(
            epoch_yield(pool, rule, replace(place, epoch=epoch), recipe.count, stock)
            for epoch in range(min(max(1, ceil(epochs)), MOST_EPOCHS))
        ),
    )


def _lengths(block: Block) -> NDArray[np.int64]:
    """int64[n]: tokens of the pieces that windows cut: nothing that stands in front of them."""
    pieces = block.rows.pieces
    own = (pieces.flags & (MARKER | CONTEXT)) == 0
    lengths: NDArray[np.int64] = (pieces.stop - pieces.start)[own]
    return lengths


def _eighths(sizes: list[NDArray[np.int64]], whole: int) -> tuple[int, ...]:
    """How many sizes are at most an eighth of the whole, two eighths, …; empty ones are none."""
    found = np.concatenate(sizes)
    bars = np.minimum(-(-found[found > 0] * EIGHTHS // whole), EIGHTHS) - 1
    return tuple(np.bincount(bars, minlength=EIGHTHS).tolist())


def _readings(blocks: list[Block]) -> tuple[int, ...]:
    """How many document tokens are read 0, 1, 2, … times."""
    found = np.zeros(1, np.int64)
    for block in blocks:
        pieces, edges = block.rows.pieces, np.concatenate([[0], np.cumsum(block.tokens)])
        real = (pieces.flags & AHEAD) == 0
        depth = np.zeros(int(edges[-1]) + 1, np.int64)
        first = edges[pieces.document[real]]
        np.add.at(depth, first + np.maximum(pieces.start[real], 0), 1)
        np.add.at(depth, first + pieces.stop[real], -1)
        times = np.bincount(np.cumsum(depth[:-1])) if len(depth) > 1 else np.zeros(1, np.int64)
        size = max(len(found), len(times))
        found = np.pad(found, (0, size - len(found))) + np.pad(times, (0, size - len(times)))
    return tuple(int(n) for n in found)


def _cuts(block: Block) -> NDArray[np.int64]:
    """int64[n, 2]: (document of the block, token) where one piece's fresh tokens end and another's begin."""
    pieces = block.rows.pieces
    inner = (pieces.fresh > 0) & (pieces.stop > pieces.fresh) & ((pieces.flags & AHEAD) == 0)
    return np.unique(np.stack([pieces.document[inner], pieces.fresh[inner]], axis=1), axis=0)


def _places(recipe: Recipe, pool: Pool, blocks: list[Block]) -> dict[str, int] | None:
    give_edges(recipe, pool)
    try:
        tables = tables_of(pool)
    except RecipeError:
        return None
    found = [(block, _cuts(block)) for block in blocks]
    cuts = np.concatenate([np.stack([b.documents[at[:, 0]], at[:, 1]], axis=1) for b, at in found])
    chosen = np.linspace(0, len(cuts) - 1, min(len(cuts), MOST_CUTS)).astype(np.int64)
    return places_of_cuts(pool, cuts[chosen], tables)


def _documents_in_rows(block: Block) -> int:
    """Documents of every row, summed over the rows."""
    pieces, ends = block.rows
    row = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    return len(np.unique(np.stack([row, pieces.document], axis=1), axis=0))


def _pairs(block: Block, documents: int) -> NDArray[np.int64]:
    """Which documents lie side by side, each pair once, as one number."""
    pieces, ends = block.rows
    row = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
    number = block.documents[pieces.document]
    beside = (row[1:] == row[:-1]) & (number[1:] != number[:-1])
    low, high = np.minimum(number[1:], number[:-1])[beside], np.maximum(number[1:], number[:-1])[beside]
    return np.unique(low * documents + high)


def _neighbours(pool: Pool, rule: Rule, place: BlockPlace, blocks: list[Block]) -> tuple[int, int]:
    """Pairs of the blocks looked at, and those of them that the next epoch's blocks hold again."""
    total = num_blocks(pool, place.block_units, place.prefix, place.fraction)
    now = np.unique(np.concatenate([_pairs(block, pool.num_numbers) for block in blocks]))
    if total > MOST_BLOCKS:  # other units are in the next epoch's blocks: pairs meet by chance alone
        return len(now), 0
    gone = from_the_start(pool.erased)
    places = [replace(place, epoch=1, block=number) for number in range(total)]
    later = [plan_block(pool, rule, one, (), gone) for one in places]
    after = np.unique(np.concatenate([_pairs(block, pool.num_numbers) for block in later]))
    return len(now), len(np.intersect1d(now, after))
