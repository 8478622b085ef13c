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

import numpy as np
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.pools import Pool
from recipe.sequences.arranging import arranged
from recipe.sequences.ownership import owned_elsewhere
from recipe.sequences.pieces import Documents, body_starts, measure, unserved_runs
from recipe.sequences.reading_order import BlockPlace, block_documents
from recipe.sequences.rows import Rows, count_rows
from recipe.sequences.withdrawn import NOTHING, Withdrawn


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
        rows = arranged(cut.rule, (pool, place, documents), (kept, shown, runs, depth)).rows
        runs = _left_over(rows, cut.served, cut.stop)
    others = owned_elsewhere(pool, rule, documents)
    kept, shown, runs, gone = _without((taken_down, withdrawn[1]), others, (measured, runs))
    made = arranged(rule, (pool, place, documents), (kept, shown, runs, len(cuts)))
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


def holds_withdrawn(block: Block, sequences: tuple[int, int], withdrawn: Withdrawn, number: int) -> bool:
    """Whether some sequences of a block hold anything of a document withdrawn after ``number``.

    Overlap, and a label read ahead across documents, count as well as fresh tokens.
    """
    first, last = block.rows.ends[sequences[0]], block.rows.ends[sequences[1]]
    late = withdrawn.of(block.documents) > number
    return bool(late.any() and late[block.rows.pieces.document[first:last]].any())


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


def _left_over(rows: Rows, served: int, stop: int | None) -> NDArray[np.int64]:
    """Runs of what the sequences from ``served`` on, up to ``stop``, would have served fresh."""
    first = int(rows.ends[served])
    last = len(rows.pieces.document) if stop is None else int(rows.ends[stop])
    document, fresh = rows.pieces.document[first:last], rows.pieces.fresh[first:last]
    return unserved_runs(rows.pieces.take(first + np.lexsort((fresh, document))))
