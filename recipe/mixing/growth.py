"""A pool that has grown, while a run reads it.

The epoch in progress goes on over what was there when it began; the next one reads everything. So that
this can be told from the state alone, cursors hold the size that the pool had (``prefix``) until the
epoch turns; returned ranges until they are read. An epoch of which nothing was opened is a next one already.

To have what is new at once, the epoch in progress is ended (:func:`recipe.mixing.unread.at_next_epoch`).
"""

from __future__ import annotations

from dataclasses import replace

from recipe.mixing.snapshot import Cursor, PoolState
from recipe.mixing.unread import is_begun
from recipe.pools import Prefix


def grown(state: PoolState, prefix: Prefix) -> PoolState:
    """The state of a pool that has grown.

    Args:
        state: of the pool as it was.
        prefix: what it was (:func:`recipe.pools.grown_from`).
    """
    cursor = _within(state.cursor, prefix) if is_begun(state) else state.cursor
    return replace(state, cursor=cursor, held=tuple(_within(each, prefix) for each in state.held))


def _within(cursor: Cursor, prefix: Prefix) -> Cursor:
    """A cursor of an epoch that began before the pool grew, this time or before."""
    if cursor.prefix is not None:
        return cursor
    return replace(cursor, prefix=(prefix.units, prefix.extent_units))
