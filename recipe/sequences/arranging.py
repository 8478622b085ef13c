"""A block under one rule: what is to be served of it, sliced, packed and shuffled."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.maths.order import key, permute_range
from recipe.pools import Pool
from recipe.sequences.bundles import bundled, joined_rows, packed
from recipe.sequences.concat import Joining, join_runs
from recipe.sequences.duplicates import without_duplicates
from recipe.sequences.near_cuts import cut_near
from recipe.sequences.pieces import REASONS, Documents, Pieces, whole
from recipe.sequences.reading_order import BlockPlace, order_name
from recipe.sequences.relations import relations_of, separators_kept, without_separators
from recipe.sequences.rows import Rows, in_rows
from recipe.sequences.slicing import Sliced, cutting_of, heads_of, slice_documents, slice_runs, thinned
from recipe.sequences.transform import infilled


class Arranged(NamedTuple):
    """A block, or what is left of it, under one rule."""

    rows: Rows
    dropped: dict[str, int]
    aligned: tuple[int, int, int]
    duplicates: int
    looked: tuple[int, int]


def arranged(
    rule: Rule,
    at: tuple[Pool, BlockPlace, NDArray[np.int64]],
    state: tuple[Documents, NDArray[np.int64], NDArray[np.int64] | None, int],
) -> Arranged:
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
    return Arranged(Rows(pieces.take(order), ends), by_reason, aligned, duplicates, looked)


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
