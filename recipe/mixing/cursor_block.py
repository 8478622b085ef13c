"""The block that a cursor lies in: planned from recipe and pool, and kept for the next who asks."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread
from typing import Any
from weakref import WeakSet

from recipe.config import Recipe, Rule
from recipe.errors import RecipeError
from recipe.mixing.snapshot import Cursor
from recipe.pools import Pool
from recipe.sequences.blocks import Block, CutBlock, plan_block
from recipe.sequences.ownership import rule_for
from recipe.sequences.reading_order import BlockPlace, num_blocks
from recipe.sequences.withdrawn import NOTHING, Withdrawn


class BlockCache:
    """The last few blocks planned, shared by everything that walks one stream."""

    def __init__(self, capacity: int) -> None:
        """Keep at most ``capacity`` blocks."""
        self._capacity = capacity
        self._blocks: OrderedDict[Any, Block] = OrderedDict()
        self._ahead: dict[Any, Thread] = {}
        self._lock = Lock()
        _caches.add(self)

    def get(self, key: Any, plan: Callable[[], Block]) -> Block:
        """The block of a key, planned if it is not there; one that is being planned ahead is waited for."""
        block = self._known(key)
        if block is None and (ahead := self._ahead.get(key)) is not None:
            ahead.join()
            block = self._known(key)
        return self._keep(key, plan()) if block is None else block

    def begin(self, key: Any, plan: Callable[[], Block]) -> None:
        """Plan a block in a thread, unless it is there. What is wrong is told when it is asked for."""
        with self._lock:
            if key not in self._blocks and key not in self._ahead:
                thread = Thread(target=self._work, args=(key, plan), name="recipe-block", daemon=True)
                with suppress(RuntimeError):  # no thread to be had: the block is planned when it is asked for
                    thread.start()
                    self._ahead[key] = thread

    def pause(self) -> Callable[[], None]:
        """Keep and begin nothing until what is returned is called."""
        self._lock.acquire()
        return self._lock.release

    def _known(self, key: Any) -> Block | None:
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                self._blocks.move_to_end(key)
            return block

    def _keep(self, key: Any, block: Block) -> Block:
        with self._lock:
            self._blocks[key] = block
            while len(self._blocks) > self._capacity:
                self._blocks.popitem(last=False)
        return block

    def _work(self, key: Any, plan: Callable[[], Block]) -> None:
        try:
            with suppress(Exception):
                self._keep(key, plan())
        finally:
            with self._lock:
                self._ahead.pop(key, None)


_caches: WeakSet[BlockCache] = WeakSet()
_paused: list[Callable[[], None]] = []


def _pause() -> None:
    """A child has none of its parent's threads: what one of them has locked would stay so for ever."""
    _paused.extend(cache.pause() for cache in list(_caches))


def _resume() -> None:
    while _paused:
        _paused.pop()()


os.register_at_fork(before=_pause, after_in_parent=_resume, after_in_child=_resume)


def block_units(recipe: Recipe, pool: Pool) -> int:
    """Units of a block of a settled recipe's pool."""
    units = recipe.pools[pool.name].block_units
    assert units is not None, "a settled recipe has numbers for block_units"
    return units


def block_place(recipe: Recipe, pool: Pool, cursor: Cursor) -> BlockPlace:
    """Which block a cursor lies in."""
    return BlockPlace(
        recipe.seed,
        cursor.epoch,
        cursor.block,
        block_units(recipe, pool),
        recipe.order_name(pool.name),
        cursor.prefix,
        recipe.simulated_fraction,
    )


def blocks_of_epoch(recipe: Recipe, pool: Pool, cursor: Cursor) -> int:
    """Blocks of the epoch that a cursor stands in."""
    return num_blocks(pool, block_units(recipe, pool), cursor.prefix, recipe.simulated_fraction)


def arrangement(recipe: Recipe, pool: Pool, cursor: Cursor) -> tuple[Rule, BlockPlace, tuple[CutBlock, ...]]:
    """Rule, place and earlier cuts of the block that a cursor has open."""
    stages = list(recipe.stages)

    def rule(stage: int) -> Rule:
        return rule_for(pool, recipe.rule(stages[stage], pool.name))

    cuts = tuple(CutBlock(rule(cut.stage), cut.served, cut.withdrawn, cut.stop) for cut in cursor.cuts)
    return rule(cursor.stage), block_place(recipe, pool, cursor), cuts


def block_at(
    recipe: Recipe,
    pool: Pool,
    cursor: Cursor,
    withdrawn: Withdrawn = NOTHING,
    blocks: BlockCache | None = None,
) -> Block:
    """The block that a cursor has open, as it was arranged; planned unless it is among ``blocks``.

    Raises:
        RecipeError: the recipe and the pool have no such place: the snapshot is not theirs.
    """
    try:
        how = arrangement(recipe, pool, cursor)
        if blocks is None:
            return plan_block(pool, *how, (withdrawn, cursor.withdrawn))
        return blocks.get(*_planned(pool, how, withdrawn, cursor.withdrawn))
    except IndexError as error:
        raise RecipeError.single(
            f"pool {pool.name}: no place in its reading",
            "snapshot",
            given=f"{cursor!s:.200}",
            expected="a place that its blocks have",
            fix="open another step; `recipe audit` names every fault of the run's record",
        ) from error


def begin_block(recipe: Recipe, pool: Pool, cursor: Cursor, withdrawn: Withdrawn, blocks: BlockCache) -> None:
    """Plan the block that comes after another one ahead, if texts in a store are looked at for it."""
    if pool.layout.remote is None or cursor.cuts:
        return
    how = arrangement(recipe, pool, cursor)
    if how[0].align not in ("none", "section"):
        blocks.begin(*_planned(pool, how, withdrawn, cursor.withdrawn))


def _planned(
    pool: Pool, how: tuple[Rule, BlockPlace, tuple[CutBlock, ...]], withdrawn: Withdrawn, number: int
) -> tuple[Any, Callable[[], Block]]:
    """What a block goes by among others, and how it is planned."""
    key = (pool.name, pool.fingerprint, how, number)
    return key, lambda: plan_block(pool, *how, (withdrawn, number))
