"""What documents of a block have to do with each other, and what stands in front of and behind them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.errors import RecipeError
from recipe.maths.draws import below, draws
from recipe.maths.order import key
from recipe.pools import Pool
from recipe.pools.selection import units_of
from recipe.sequences.bundles import Relations
from recipe.sequences.pieces import HAS_EOS, OLD_EOS, Documents, Pieces, body_starts
from recipe.sequences.reading_order import BlockPlace, order_name

_NO_NEEDS = np.empty((0, 4), np.int64)


def relations_of(
    pool: Pool, rule: Rule, documents: NDArray[np.int64], of: tuple[Documents, NDArray[np.int64]]
) -> Relations | None:
    """Units, leads and needs of documents; None where none of them matters under the rule.

    Args:
        pool: which says what belongs together.
        rule: how it is packed.
        documents: int64[n], in reading order.
        of: their lengths and marks; int64[n] body tokens of those that are not withdrawn, 0 of the others.

    Raises:
        RecipeError: what stands in front of a document fills a row.
    """
    measured, tokens = of
    if len(measured.leads) and (longest := int(measured.leads.max())) >= rule.room:
        raise RecipeError.single(
            f"pool {pool.name}",
            "context",
            given=f"{rule.context} positions",
            expected=f"more than the {longest} special tokens in front of a document, and markers",
            fix="raise the context, or prepare the pool with a shorter --marker",
        )
    needs = pool.needs if rule.method != "concat" else None
    grouped = rule.attention == "group" and pool.units is not None
    if not grouped and needs is None and not len(measured.leads):
        return None
    numbers = np.arange(len(documents), dtype=np.int64)
    units, firsts = np.full(len(documents), -1, np.int64), numbers
    if pool.units is not None:
        found = units_of(pool, documents)
        begins = np.ones(len(found), np.bool_)
        begins[1:] = found[1:] != found[:-1]
        firsts = np.maximum.accumulate(np.where(begins, numbers, 0))
        if grouped:
            sizes = np.asarray(pool.units[found + 1]) - np.asarray(pool.units[found])
            units = np.where(sizes > 1, found, -1)
    leads = measured.leads if len(measured.leads) else np.zeros(len(documents), np.int64)
    places = body_starts(pool, documents, measured)
    return Relations(units, firsts, leads, places, tokens, _NO_NEEDS if needs is None else needs)


def separators_kept(
    pool: Pool, rule: Rule, place: BlockPlace, documents: NDArray[np.int64]
) -> NDArray[np.bool_] | None:
    """bool[n]: whether the end mark of each document takes a position; None: all do.

    Kept iff draw 0 of (document, 0), of domain ``separators`` and the epoch, falls below ``eos_keep``.
    """
    if rule.eos_keep == 1:
        return None
    order_key = key(place.seed, place.epoch, "separators", order_name(pool, place))
    drawn = draws(order_key, (documents, np.zeros_like(documents)), 1)[0]
    return below(drawn, rule.eos_keep)


def without_separators(pieces: Pieces, kept: NDArray[np.bool_] | None) -> Pieces:
    """The pieces whose end marks take a position only where they are kept; the others are flagged.

    ``OLD_EOS`` without ``HAS_EOS`` says that a mark is left out; its label stays.
    """
    if kept is None:
        return pieces
    lose = ((pieces.flags & HAS_EOS) > 0) & ~kept[pieces.document]
    flags = np.where(lose, pieces.flags & ~HAS_EOS | OLD_EOS, pieces.flags)
    return pieces._replace(flags=flags)
