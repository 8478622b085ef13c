"""A block: consecutive units of a pool's reading order, sliced, packed and shuffled together.

Planned from lengths alone; under a rule that aligns cuts, tokens near them are read, too. A block opened
under one rule and left unfinished when the rule changed, or when documents in it were withdrawn, is opened
again by replaying its cuts: what the old rule left unserved becomes runs for the new one.

Withdrawn documents. A block that is opened for the first time under withdrawal number g leaves out
the documents withdrawn by then (number <= g): they are not sliced, their place in the order stays empty,
and all their body tokens are dropped as ``withdrawn``, also those that a tail or oversize rule would have
dropped. Which block the others are in does not change; the shuffle goes by the sequences that there are.
A block that is cut and goes on under number g leaves out the runs of such documents: the
tokens that were still to be served fresh are dropped as ``withdrawn``. Nothing else is dropped by a cut.

Returned ranges. Of a cut with a ``stop`` only the sequences ``served..stop`` go on: what a skip gave back
of the block, in the arrangement that it had then.

Documents that belong to another pool of the same folder under the rule (`recipe.sequences.ownership`) are
left out in the same two ways, as ``elsewhere``; of those that were withdrawn, too, nothing more is said.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.errors import RecipeError
from recipe.maths.order import key, permute_range
from recipe.pools import Pool
from recipe.sequences.bundles import bundled, joined_rows, packed
from recipe.sequences.concat import Joining, join_runs
from recipe.sequences.duplicates import without_duplicates
from recipe.sequences.near_cuts import cut_near
from recipe.sequences.ownership import owned_elsewhere
from recipe.sequences.pieces import body_starts
from recipe.sequences.reading_order import BlockPlace, block_documents, num_blocks, order_name
from recipe.sequences.relations import relations_of, separators_kept, without_separators
from recipe.sequences.rows import KINDS, Rows, count_rows, in_rows
from recipe.sequences.slicing import (
    REASONS,
    Documents,
    Pieces,
    Sliced,
    cutting_of,
    heads_of,
    slice_documents,
    slice_runs,
    thinned,
    unserved_runs,
    whole,
)
from recipe.sequences.transform import infilled
from recipe.sequences.withdrawn import NOTHING, Withdrawn

__all__ = [
    "KINDS",
    "Block",
    "BlockPlace",
    "CutBlock",
    "Rows",
    "block_documents",
    "holds_withdrawn",
    "measure",
    "num_blocks",
    "plan_block",
]


@dataclass(frozen=True, slots=True)
class CutBlock:
    """One rule under which a block was open, and the sequences it served before the next one."""

    rule: Rule
    served: int
    withdrawn: int = 0
    """Withdrawals of the pool in force when the block was planned under it."""
    stop: int | None = None
    """Sequences from here on are not part of what goes on; None: all are."""


@dataclass(frozen=True, slots=True)
class Block:
    """The sequences of a block in the order in which they are served.

    ``documents`` int64[n]: document numbers in reading order; ``tokens`` their body tokens; ``starts``
    where the first of them is stored, counted over the whole pool;
    ``rows``: the pieces of every sequence, their ``document`` an index into ``documents``;
    ``totals`` int64[num_sequences + 1, len(KINDS)]: counts of all sequences before each;
    ``dropped``: tokens that this opening left out, by reason; ``place``: which block it is;
    ``multiple``: every piece takes a multiple of so many positions; ``aligned``: cuts that were moved back,
    cuts that stayed although nothing permits them, starts that were moved; ``duplicates``: windows that were
    left out as such; ``looked``: requests and bytes that it took to look at texts in a store.
    """

    documents: NDArray[np.int64]
    tokens: NDArray[np.int64]
    starts: NDArray[np.int64]
    rows: Rows
    totals: NDArray[np.int64]
    dropped: dict[str, int]
    place: BlockPlace
    multiple: int = 1
    aligned: tuple[int, int, int] = (0, 0, 0)
    duplicates: int = 0
    looked: tuple[int, int] = (0, 0)

    @property
    def num_sequences(self) -> int:
        """Sequences of the block."""
        return len(self.totals) - 1


def measure(pool: Pool, documents: NDArray[np.int64]) -> Documents:
    """Body tokens of documents, and which marks are stored with them.

    Raises:
        RecipeError: a length below zero or above the pool's tokens: its boundaries are damaged.
    """
    bos, eos = pool.stored_marks(documents)
    stored = np.asarray(pool.offsets[documents + 1]) - np.asarray(pool.offsets[documents])
    if pool.leads is None:
        measured = Documents(stored - bos - eos, bos, eos)
    else:
        fronts = pool.fronts(documents)
        is_mark = bos & (fronts == 1)
        measured = Documents(stored - fronts - eos, is_mark, eos, np.where(is_mark, 0, fronts))
    tokens = measured.tokens
    if len(tokens) and (tokens.min() < 0 or stored.max() > pool.num_tokens):
        worst = int(np.argmax(np.where(tokens < 0, pool.num_tokens + 1, stored)))
        raise RecipeError.single(
            f"pool {pool.name}",
            str(pool.path),
            given=f"document {int(documents[worst])} of {int(stored[worst])} stored tokens",
            expected=f"lengths in 0..{pool.num_tokens}: the pool's boundaries are damaged",
            fix="copy the pool again from where it is whole; `recipe audit --full` compares its files",
        )
    return measured


def plan_block(
    pool: Pool,
    rule: Rule,
    place: BlockPlace,
    cuts: tuple[CutBlock, ...] = (),
    withdrawn: tuple[Withdrawn, int] = (NOTHING, 0),
) -> Block:
    """The sequences of one block under a rule.

    Args:
        pool: its lengths are read, and with ``align`` tokens near cuts.
        rule: the rule in force.
        place: seed, epoch, block number and size.
        cuts: earlier rules under which the block was open, oldest first; empty for a new block.
        withdrawn: documents withdrawn from the pool, and the number of the withdrawal up to which they are
            left out; each cut has the number of its own.

    Returns:
        the block; with cuts, only what they left unserved, and nothing is dropped but what was
        withdrawn since the last of them.
    """
    documents = block_documents(pool, place)
    measured = measure(pool, documents)
    taken_down = withdrawn[0].of(documents) if len(withdrawn[0].documents) else None
    runs: NDArray[np.int64] | None = None
    for depth, cut in enumerate(cuts):
        others = owned_elsewhere(pool, cut.rule, documents)
        kept, shown, runs, _ = _without((taken_down, cut.withdrawn), others, (measured, runs))
        rows = _arrange(cut.rule, (pool, place, documents), (kept, shown, runs, depth)).rows
        runs = _left_over(rows, cut.served, cut.stop)
    others = owned_elsewhere(pool, rule, documents)
    kept, shown, runs, gone = _without((taken_down, withdrawn[1]), others, (measured, runs))
    made = _arrange(rule, (pool, place, documents), (kept, shown, runs, len(cuts)))
    made.dropped.update(gone)
    starts = body_starts(pool, documents, measured)
    lists = (documents, measured.tokens, starts, made.rows, count_rows(made.rows, measured, rule))
    return Block(
        *lists,
        made.dropped,
        place,
        multiple=rule.document_multiple,
        aligned=made.aligned,
        duplicates=made.duplicates,
        looked=made.looked,
    )


def _without(
    withdrawn: tuple[NDArray[np.int64] | None, int],
    others: NDArray[np.bool_] | None,
    state: tuple[Documents, NDArray[np.int64] | None],
) -> tuple[Documents, NDArray[np.int64], NDArray[np.int64] | None, dict[str, int]]:
    """Documents and runs without those withdrawn by a number and those of others, and what this takes away.

    Second: int64[n] body tokens of documents, 0 of those left out, whatever of them is still to be served.
    """
    (taken_down, number), (measured, runs) = withdrawn, state
    out = {}
    if taken_down is not None and number:
        out["withdrawn"] = (taken_down > 0) & (taken_down <= number)
    if others is not None:
        out["elsewhere"] = others & ~out["withdrawn"] if out else others
    if not out:
        return measured, measured.tokens, runs, {}
    gone = np.logical_or.reduce(list(out.values()))
    shown = np.where(gone, 0, measured.tokens)
    if runs is None:
        lost = {reason: int(measured.tokens[hit].sum()) for reason, hit in out.items()}
        kept = measured._replace(tokens=shown)
    else:
        sizes, of = runs[:, 2] - runs[:, 1], runs[:, 0]
        lost = {reason: int(sizes[hit[of]].sum()) for reason, hit in out.items()}
        kept, runs = measured, runs[~gone[of]]
    return kept, shown, runs, {reason: tokens for reason, tokens in lost.items() if tokens}


def holds_withdrawn(block: Block, sequences: tuple[int, int], withdrawn: Withdrawn, number: int) -> bool:
    """Whether some sequences of a block hold anything of a document withdrawn after ``number``.

    Overlap, and a label read ahead across documents, count as well as fresh tokens.
    """
    first, last = block.rows.ends[sequences[0]], block.rows.ends[sequences[1]]
    late = withdrawn.of(block.documents) > number
    return bool(late.any() and late[block.rows.pieces.document[first:last]].any())


def _left_over(rows: Rows, served: int, stop: int | None) -> NDArray[np.int64]:
    """Runs of what the sequences from ``served`` on, up to ``stop``, would have served fresh."""
    first = int(rows.ends[served])
    last = len(rows.pieces.document) if stop is None else int(rows.ends[stop])
    document, fresh = rows.pieces.document[first:last], rows.pieces.fresh[first:last]
    return unserved_runs(rows.pieces.take(first + np.lexsort((fresh, document))))


class _Arranged(NamedTuple):
    """A block, or what is left of it, under one rule."""

    rows: Rows
    dropped: dict[str, int]
    aligned: tuple[int, int, int]
    duplicates: int
    looked: tuple[int, int]


def _arrange(
    rule: Rule,
    at: tuple[Pool, BlockPlace, NDArray[np.int64]],
    state: tuple[Documents, NDArray[np.int64], NDArray[np.int64] | None, int],
) -> _Arranged:
    """Slice, pack and shuffle a block, or what is left of it (runs), under one rule.

    ``state``: lengths and marks; int64[n] tokens that may be shown of each document; runs; depth.
    """
    (pool, place, documents), (measured, shown, runs, depth) = at, state
    aligned, duplicates, looked = (0, 0, 0), 0, (0, 0)
    relations = relations_of(pool, rule, documents, (measured, shown))
    kept = separators_kept(pool, rule, place, documents)
    if rule.method == "concat":
        pieces, row_of_piece, dropped = _concatenate(measured, runs, rule, kept)
        if relations is not None:
            pieces, row_of_piece = joined_rows(pieces, row_of_piece, relations.units)
    else:
        (pieces, dropped, counted, looked), duplicates = _slice(measured, runs, rule, at)
        aligned = tuple(counted.tolist())
        if rule.fim is not None:
            draw_key = key(place.seed, place.epoch, "transform", order_name(pool, place))
            pieces = infilled(pieces, rule.fim, documents, draw_key)
        pieces = without_separators(pieces, kept)
        if relations is not None:
            pieces, lost = bundled(pieces, relations, rule.context, may_drop=runs is None)
            dropped[REASONS.index("oversize")] += lost
        row_of_piece = packed(pieces, rule)
    num_rows = int(row_of_piece.max()) + 1 if len(row_of_piece) else 0
    shuffle = key(place.seed, place.epoch, "shuffle", order_name(pool, place), place.block, depth)
    served = permute_range(0, num_rows, max(1, num_rows), shuffle)
    order, ends = in_rows(row_of_piece, served)
    by_reason = {r: int(n) for r, n in zip(REASONS, dropped, strict=True) if n}
    return _Arranged(Rows(pieces.take(order), ends), by_reason, aligned, duplicates, looked)


def _slice(
    measured: Documents,
    runs: NDArray[np.int64] | None,
    rule: Rule,
    at: tuple[Pool, BlockPlace, NDArray[np.int64]],
) -> tuple[Sliced, int]:
    """The pieces, and how many were left out as duplicates."""
    pool, place, documents = at
    cutting, of = cutting_of(rule), (pool, rule, documents)
    if runs is not None:
        return cut_near(of, measured, runs, lambda some, seen: slice_runs(measured, some, cutting, seen)), 0
    heads = None
    if rule.random_offset:
        offsets = key(place.seed, place.epoch, "offset", order_name(pool, place))
        heads = heads_of(measured, documents, cutting, offsets)
    sliced = cut_near(
        of,
        measured,
        whole(measured),
        lambda some, seen: slice_documents(measured, cutting, heads, seen, some),
    )
    duplicates = 0
    if rule.duplicates is not None:
        sliced, duplicates = without_duplicates(sliced, pool, (documents, measured), rule.duplicates)
    if rule.density is not None:
        densities = key(place.seed, place.epoch, "density", order_name(pool, place))
        kept, lost = thinned(sliced.pieces, (measured, documents), (cutting, rule.density), densities)
        sliced.dropped[REASONS.index("thinned")] = lost
        sliced = sliced._replace(pieces=kept)
    return sliced, duplicates


def _concatenate(
    measured: Documents,
    runs: NDArray[np.int64] | None,
    rule: Rule,
    kept: NDArray[np.bool_] | None,
) -> tuple[Pieces, NDArray[np.int64], NDArray[np.int64]]:
    dropped = np.zeros(len(REASONS), np.int64)
    keep = rule.tail == "keep" or runs is not None
    if runs is None:
        runs = whole(measured)
    joining = Joining(rule.context, rule.stride, keep, rule.cross_labels)
    pieces, row_of_piece, left = join_runs(measured, runs, joining, kept)
    dropped[REASONS.index("tail")] = left
    return pieces, row_of_piece, dropped
