"""What a pool's reading leaves unread when it goes on at the next epoch."""

from __future__ import annotations

from dataclasses import replace

from recipe.config import Recipe
from recipe.mixing.snapshot import Cursor, PoolState
from recipe.pools import Pool
from recipe.sequences.blocks import (
    KINDS,
    BlockPlace,
    CutBlock,
    block_documents,
    measure,
    num_blocks,
    plan_block,
)

_BODY, _OVERLAP = KINDS.index("body"), KINDS.index("overlap")


def is_begun(cursor: Cursor) -> bool:
    """Whether anything of the cursor's epoch was opened.

    >>> is_begun(Cursor(epoch=2)), is_begun(Cursor(epoch=2, block=1))
    (False, True)
    """
    return cursor.block > 0 or cursor.stage >= 0


def unread_tokens(recipe: Recipe, pool: Pool, cursor: Cursor) -> int:
    """Tokens of the cursor's epoch that were neither served fresh nor dropped so far.

    The rest of the open block is planned; of blocks behind or ahead, whichever are fewer, only the
    lengths of their documents are read.

    Args:
        recipe: settled; the one that the pool was read by.
        pool: as it was read.
        cursor: its place.
    """
    units = recipe.pools[pool.name].block_units
    assert units is not None, "a settled recipe has numbers for block_units"
    blocks = num_blocks(pool, units)
    if not is_begun(cursor):
        return pool.stock
    place = BlockPlace(recipe.seed, cursor.epoch, cursor.block, units)
    opened = cursor.stage >= 0
    first = cursor.block + opened
    if blocks - first <= first:
        ahead = sum(_tokens(pool, replace(place, block=block)) for block in range(first, blocks))
    else:
        ahead = pool.stock - sum(_tokens(pool, replace(place, block=block)) for block in range(first))
    return ahead + (_rest(recipe, pool, cursor, place) if opened else 0)


def at_next_epoch(recipe: Recipe, pool: Pool, state: PoolState) -> PoolState:
    """The state with the reading at the next epoch; what that leaves unread is counted as dropped.

    An epoch of which nothing was opened is the next one already.
    """
    if not is_begun(state.cursor):
        return state
    left = unread_tokens(recipe, pool, state.cursor)
    dropped = dict(state.dropped)
    if left:
        dropped["unread"] = dropped.get("unread", 0) + left
    return replace(state, cursor=Cursor(epoch=state.cursor.epoch + 1), dropped=dropped)


def _tokens(pool: Pool, place: BlockPlace) -> int:
    return int(measure(pool, block_documents(pool, place)).tokens.sum())


def _rest(recipe: Recipe, pool: Pool, cursor: Cursor, place: BlockPlace) -> int:
    """Fresh tokens of the open block's sequences that were not served."""
    stages = list(recipe.stages)
    rule = recipe.rule(stages[cursor.stage], pool.name)
    cuts = tuple(CutBlock(recipe.rule(stages[cut.stage], pool.name), cut.served) for cut in cursor.cuts)
    totals = plan_block(pool, rule, place, cuts).totals
    left = totals[-1] - totals[cursor.sequence]
    return int(left[_BODY] - left[_OVERLAP])
