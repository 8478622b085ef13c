"""What a pool's reading leaves unread when it goes on at the next epoch."""

from __future__ import annotations

from dataclasses import replace

from recipe.config import Recipe
from recipe.mixing.cursor_block import block_at, block_place
from recipe.mixing.reading import BODY, OVERLAP
from recipe.mixing.snapshot import Cursor, PoolState
from recipe.pools import Pool
from recipe.sequences.pieces import measure
from recipe.sequences.reading_order import BlockPlace, block_documents, num_blocks
from recipe.sequences.withdrawn import NOTHING, Withdrawn


def is_begun(state: PoolState) -> bool:
    """Whether anything of the pool's present epoch was opened.

    >>> is_begun(PoolState(cursor=Cursor(epoch=2))), is_begun(PoolState(cursor=Cursor(epoch=2, block=1)))
    (False, True)
    """
    return state.cursor.block > 0 or state.cursor.stage >= 0 or bool(state.held)


def epoch_tokens(recipe: Recipe, pool: Pool, cursor: Cursor) -> int:
    """Tokens that one epoch reads: the pool's stock, or less of a shrunk pool or one that has grown since."""
    if cursor.prefix is None and recipe.simulated_fraction is None:
        return pool.stock
    return sum(
        _tokens(pool, replace(block_place(recipe, pool, cursor), block=b))
        for b in range(_blocks(recipe, pool, cursor))
    )


def unread_tokens(recipe: Recipe, pool: Pool, state: PoolState, withdrawn: Withdrawn = NOTHING) -> int:
    """Tokens of the present epoch, and of returned ranges, that were neither served fresh nor dropped so far.

    The rest of the open block is planned; of blocks behind or ahead, whichever are fewer, only the
    lengths of their documents are read.

    Args:
        recipe: settled; the one that the pool was read by.
        pool: as it was read.
        state: how far.
        withdrawn: documents that were withdrawn from it.
    """
    cursor = state.cursor
    place, blocks = block_place(recipe, pool, cursor), _blocks(recipe, pool, cursor)
    is_open = cursor.stage >= 0 and cursor.block < blocks
    first = cursor.block + is_open
    if blocks - first <= first or pool.card.counted != "exact":
        ahead = sum(_tokens(pool, replace(place, block=block)) for block in range(first, blocks))
    else:
        behind = sum(_tokens(pool, replace(place, block=block)) for block in range(first))
        ahead = epoch_tokens(recipe, pool, cursor) - behind
    places = [*([cursor] if is_open else []), *state.held]
    return ahead + sum(_rest(recipe, pool, each, withdrawn) for each in places)


def at_next_epoch(recipe: Recipe, pool: Pool, state: PoolState, withdrawn: Withdrawn = NOTHING) -> PoolState:
    """The state with the reading at the next epoch; what that leaves unread is counted as dropped.

    An epoch of which nothing was opened is the next one already.
    """
    if not is_begun(state):
        return state
    left = unread_tokens(recipe, pool, state, withdrawn)
    dropped = dict(state.dropped)
    if left:
        dropped["unread"] = dropped.get("unread", 0) + left
    return replace(state, cursor=Cursor(epoch=state.cursor.epoch + 1), held=(), dropped=dropped)


def _blocks(recipe: Recipe, pool: Pool, cursor: Cursor) -> int:
    units = block_place(recipe, pool, cursor).block_units
    return num_blocks(pool, units, cursor.prefix, recipe.simulated_fraction)


def _tokens(pool: Pool, place: BlockPlace) -> int:
    return int(measure(pool, block_documents(pool, place)).tokens.sum())


def _rest(recipe: Recipe, pool: Pool, cursor: Cursor, withdrawn: Withdrawn) -> int:
    """Fresh tokens of the sequences at a place that were not served."""
    if cursor.stage < 0:
        return _tokens(pool, block_place(recipe, pool, cursor))
    block = block_at(recipe, pool, cursor, withdrawn)
    totals = block.totals
    left = totals[block.num_sequences if cursor.stop is None else cursor.stop] - totals[cursor.sequence]
    return int(left[BODY] - left[OVERLAP])
