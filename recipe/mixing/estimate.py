"""What one epoch of a pool gives under a rule: counted from all its blocks, or from a few of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.mixing.reading import counted_totals
from recipe.pools import Pool
from recipe.sequences.blocks import Block, plan_block
from recipe.sequences.pieces import CONTEXT, MARKER, Pieces
from recipe.sequences.reading_order import BlockPlace, epoch_units, num_blocks
from recipe.sequences.rows import KINDS
from recipe.sequences.withdrawn import from_the_start

SAMPLED_BLOCKS = 4
"""Blocks planned of a pool that has more."""


class AlignmentCost(NamedTuple):
    """What alignment does to one epoch of a pool; the last three against the same rule without it."""

    moved: Fraction
    """Cuts that were moved back."""
    unaligned: Fraction
    """Cuts that stayed, as nothing within reach permits them."""
    starts: Fraction
    """Windows that start later, at a permitted place inside their overlap."""
    pieces: Fraction
    sequences: Fraction
    padding: Fraction


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochYield:
    """One epoch of a pool under one rule; exact fractions where it was estimated from some blocks."""

    sequences: Fraction
    counted: Fraction
    body: Fraction
    overlap: Fraction
    special: Fraction
    padding: Fraction
    labels: Fraction
    cut_documents: Fraction
    """Documents that are cut into more than one piece."""
    dropped: dict[str, Fraction]
    spread: Fraction
    """Relative uncertainty of counted tokens per sequence: 0 when every sequence counts the same."""

    transformed: tuple[Fraction, Fraction] | None = None
    """Pieces, and body tokens in them, that hashes are expected to choose; None without a transform."""

    separators: Fraction = Fraction(0)
    """Stored end marks that are left out."""

    alignment: AlignmentCost | None = None
    """None: nothing is aligned."""

    duplicates: Fraction | None = None
    """Windows that are left out as duplicates; None: none would be."""

    is_declared: bool = False
    """Only the size of the pool is known: sequences are full, and the need is what is planned."""

    def to_plain(self) -> dict[str, int]:
        """Whole sequences and tokens, and what is dropped by reason."""
        kinds = ("sequences", "body", "overlap", "special", "padding", "labels", "cut_documents")
        plain = {kind: round(getattr(self, kind)) for kind in kinds}
        if self.transformed is not None:
            pieces, tokens = map(round, self.transformed)
            plain |= {"transformed_pieces": pieces, "transformed_tokens": tokens}
        if self.separators:
            plain["separators"] = round(self.separators)
        if self.alignment is not None:
            plain |= {f"align_{key}": round(n) for key, n in self.alignment._asdict().items()}
        if self.duplicates is not None:
            plain |= {"duplicate_pieces": round(self.duplicates)}
        return plain | {f"dropped_{reason}": round(tokens) for reason, tokens in self.dropped.items()}

    @property
    def per_sequence(self) -> Fraction:
        """Counted tokens of a sequence, on average."""
        return self.counted / self.sequences if self.sequences else Fraction(0)


def stock_yield(stock: int, context: int) -> EpochYield:
    """A pool of which only the size is known: full sequences, nothing padded or dropped."""
    none = Fraction(0)
    return EpochYield(
        sequences=Fraction(stock, context),
        counted=Fraction(stock),
        body=Fraction(stock),
        overlap=none,
        special=none,
        padding=none,
        labels=Fraction(stock),
        cut_documents=none,
        dropped={},
        spread=none,
        is_declared=True,
    )


def epoch_yield(
    pool: Pool, rule: Rule, place: BlockPlace, count: str, stock: int | None = None
) -> EpochYield:
    """The yield of a pool's first epoch.

    Args:
        pool: its lengths are read, and tokens near cuts where those are aligned.
        rule: how it is sliced and packed.
        place: seed, epoch and block size; its block number is not used.
        count: the counted kind.
        stock: body tokens of the epoch; default: the part of the pool's that its units are.
    """
    if stock is None:
        stock = pool.stock * epoch_units(pool, place.prefix, place.fraction) // max(1, pool.num_units)
    total = num_blocks(pool, place.block_units, place.prefix, place.fraction)
    chosen, gone = range(total), from_the_start(pool.erased)
    if total > SAMPLED_BLOCKS:
        chosen = range(0, total - 1, max(1, (total - 1) // SAMPLED_BLOCKS))[:SAMPLED_BLOCKS]
    blocks = [plan_block(pool, rule, replace(place, block=block), (), gone) for block in chosen]
    if not any(counted_totals(block, count, rule.context)[-1] for block in blocks):
        blocks = [plan_block(pool, rule, replace(place, block=block), (), gone) for block in range(total)]
    whole = total == len(blocks)
    # by tokens, not by units: one very long document in a block nobody looked at is in the stock
    scale = Fraction(1) if whole else Fraction(stock, sum(int(block.tokens.sum()) for block in blocks))
    sums = np.sum([block.totals[-1] for block in blocks], axis=0).tolist() if blocks else [0] * len(KINDS)
    body, overlap, special, labels, _, separators = (scale * number for number in sums)
    sequences = scale * sum(block.num_sequences for block in blocks)
    counted = [int(counted_totals(block, count, rule.context)[-1]) for block in blocks]
    reasons = sorted({reason for block in blocks for reason in block.dropped})
    return EpochYield(
        sequences=sequences,
        counted=scale * sum(counted),
        body=body,
        overlap=overlap,
        special=special,
        padding=sequences * rule.context - body - special,
        labels=labels,
        separators=separators,
        cut_documents=scale * sum(_cut_documents(block) for block in blocks),
        dropped={reason: scale * sum(block.dropped.get(reason, 0) for block in blocks) for reason in reasons},
        spread=_spread(blocks, count, rule.context, whole=whole),
        transformed=None if rule.fim is None else _transformed(blocks, scale * rule.fim.rate),
        alignment=None if rule.align == "none" else _alignment(pool, rule, blocks, scale),
        duplicates=None if rule.duplicates is None else scale * sum(block.duplicates for block in blocks),
    )


def _alignment(pool: Pool, rule: Rule, blocks: list[Block], scale: Fraction) -> AlignmentCost:
    plain = replace(rule, align="none", align_within=0)
    others = [plan_block(pool, plain, block.place, (), from_the_start(pool.erased)) for block in blocks]
    counted = [sum(block.aligned[kind] for block in blocks) for kind in range(3)]
    pieces = sum(len(b.rows.pieces.start) - len(o.rows.pieces.start) for b, o in _both(blocks, others))
    sequences = sum(b.num_sequences - o.num_sequences for b, o in _both(blocks, others))
    used = sum(int(b.totals[-1, [0, 2]].sum() - o.totals[-1, [0, 2]].sum()) for b, o in _both(blocks, others))
    found = (*counted, pieces, sequences, sequences * rule.context - used)
    return AlignmentCost(*(scale * number for number in found))


def _both(blocks: list[Block], others: list[Block]) -> Iterator[tuple[Block, Block]]:
    return zip(blocks, others, strict=True)


def _transformed(blocks: list[Block], rate: Fraction) -> tuple[Fraction, Fraction]:
    """That part of the pieces without overlap, and of their tokens."""
    pieces = tokens = 0
    for block in blocks:
        found = block.rows.pieces
        sizes = (found.stop - found.start)[found.fresh == found.start]
        pieces, tokens = pieces + int((sizes > 0).sum()), tokens + int(sizes.sum())
    return rate * pieces, rate * tokens


def _own(pieces: Pieces) -> NDArray[np.bool_]:
    """bool[n]: the pieces that windows cut: nothing that stands in front of them."""
    own: NDArray[np.bool_] = (pieces.flags & (MARKER | CONTEXT)) == 0
    return own


def _cut_documents(block: Block) -> int:
    pieces = np.bincount(block.rows.pieces.document[_own(block.rows.pieces)], minlength=1)
    return int((pieces > 1).sum())


def _spread(blocks: list[Block], count: str, context: int, *, whole: bool) -> Fraction:
    """How far counted tokens per sequence, and of an epoch, may lie from what was estimated, as a share.

    Three standard errors of the blocks' means; where all blocks were planned only later epochs can
    differ, and they differ by what one row a block can.
    """
    totals = [counted_totals(block, count, context) for block in blocks]
    lists = [np.diff(each) for each in totals if len(each) > 1]
    if not lists:
        return Fraction(0)
    row = Fraction(len(lists), sum(len(sizes) for sizes in lists))
    if all(bool((sizes == lists[0][0]).all()) for sizes in lists):
        row = Fraction(0)
    if whole or len(lists) < 2:
        return row
    tokens = [int(block.tokens.sum()) for block in blocks]
    of_tokens = [each[-1] / n for each, n in zip(totals, tokens, strict=True) if n]
    return max(row, _error([sizes.mean() for sizes in lists]), _error(of_tokens))


def _error(means: list[float]) -> Fraction:
    """Three standard errors of a mean of means, as a share of it."""
    values = np.array(means)
    if not values.mean():
        return Fraction(0)
    error = 3 * float(values.std(ddof=1)) / len(values) ** 0.5 / float(values.mean())
    return Fraction(error).limit_denominator(10**6)
