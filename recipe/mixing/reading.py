"""One pool's reading: which block is open, how far it is served, and what comes next."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.config import Recipe
from recipe.errors import Problem, RecipeError
from recipe.mixing.snapshot import Cursor, Cut, PoolState
from recipe.pools import Pool
from recipe.sequences.blocks import KINDS, Block, BlockPlace, CutBlock, num_blocks, plan_block

BODY, OVERLAP, SPECIAL, LABELS, DOCUMENTS = range(len(KINDS))


class BlockCache:
    """The last few blocks planned, shared by everything that walks one stream."""

    def __init__(self, capacity: int) -> None:
        """Keep at most ``capacity`` blocks."""
        self._capacity = capacity
        self._blocks: OrderedDict[Any, Block] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Any, plan: Callable[[], Block]) -> Block:
        """The block of a key, planned if it is not there."""
        with self._lock:
            block = self._blocks.get(key)
            if block is not None:
                self._blocks.move_to_end(key)
                return block
        block = plan()
        with self._lock:
            self._blocks[key] = block
            while len(self._blocks) > self._capacity:
                self._blocks.popitem(last=False)
        return block


class Reading:
    """The reading of one pool, opened at a state; it moves forward only.

    Block and counts change in place; :meth:`state` gives the value that opens it again.
    """

    def __init__(self, recipe: Recipe, pool: Pool, state: PoolState, blocks: BlockCache) -> None:
        """Open a pool at a state."""
        self.pool = pool
        self.recipe = recipe
        self._blocks = blocks
        self._state = state
        self._cursor = state.cursor
        units = recipe.pools[pool.name].block_units
        assert units is not None, "a settled recipe has numbers for block_units"
        self._block_units = units
        self._num_blocks = num_blocks(pool, self._block_units)
        self._block: Block | None = None
        self._taken = self._cursor.sequence
        """Sequences of the open block that are in ``_state`` already."""

    @property
    def epoch(self) -> int:
        """Readings of the pool completed."""
        return self._cursor.epoch

    def _after_block(self) -> Cursor:
        """The cursor, moved past the open block when all of it is served."""
        cursor = self._cursor
        if self._block is None or cursor.sequence < self._block.num_sequences:
            return cursor
        if cursor.block + 1 < self._num_blocks:
            return Cursor(epoch=cursor.epoch, block=cursor.block + 1)
        return Cursor(epoch=cursor.epoch + 1)

    def ready(self, stage: int) -> Block | None:
        """The open block, if sequences of it can be served in this stage as they are."""
        if self._block is None or self._cursor.stage != stage:
            return None
        return self._block if self._cursor.sequence < self._block.num_sequences else None

    def open(self, stage: int, may_turn: Callable[[Reading], bool]) -> Block | None:
        """Open whatever serves the next sequence in a stage.

        Args:
            stage: index of the stage.
            may_turn: asked before a further epoch is begun.

        Returns:
            a block with at least one sequence left, from ``cursor.sequence`` on; None when a further
            epoch was not allowed.

        Raises:
            RecipeError: a whole epoch of the pool gives no sequence.
        """
        for _ in range(2 * self._num_blocks + 2):
            self._cursor, self._block = self._settled(stage), None
            fresh = self._cursor.stage < 0
            if fresh and self._cursor.block == 0 and not may_turn(self):
                return None
            if fresh:
                self._cursor = replace(self._cursor, stage=stage)
            self._block = self._plan(self._cursor)
            self._taken = self._cursor.sequence
            if fresh:
                self._charge(self._block.dropped)
            if self._cursor.sequence < self._block.num_sequences:
                return self._block
        raise RecipeError(
            self.recipe.name, [no_sequences(self.recipe, self._stage_name(stage), self.pool.name)]
        )

    def _settled(self, stage: int) -> Cursor:
        """Where to read on in a stage: the cursor past a finished block, cut when the rule changed."""
        if self._block is None and self._cursor.stage >= 0:
            self._block = self._plan(self._cursor)
        cursor = self._after_block()
        if cursor.stage < 0 or cursor.stage == stage:
            return cursor
        if self._rule(cursor.stage) == self._rule(stage):
            return replace(cursor, stage=stage)
        cuts = (*cursor.cuts, Cut(cursor.stage, cursor.sequence))
        return Cursor(epoch=cursor.epoch, block=cursor.block, stage=stage, cuts=cuts)

    def _stage_name(self, stage: int) -> str:
        return list(self.recipe.stages)[stage]

    def _rule(self, stage: int) -> Any:
        return self.recipe.rule(self._stage_name(stage), self.pool.name)

    def _plan(self, cursor: Cursor) -> Block:
        rule = self._rule(cursor.stage)
        cuts = tuple(CutBlock(self._rule(cut.stage), cut.served) for cut in cursor.cuts)
        place = BlockPlace(self.recipe.seed, cursor.epoch, cursor.block, self._block_units)
        return self._blocks.get(
            (self.pool.name, place, rule, cuts), lambda: plan_block(self.pool, rule, place, cuts)
        )

    def _charge(self, dropped: dict[str, int]) -> None:
        if not dropped:
            return
        total = dict(self._state.dropped)
        for reason, tokens in dropped.items():
            total[reason] = total.get(reason, 0) + tokens
        self._state = replace(self._state, dropped=total)

    def serve_to(self, sequence: int, counted: NDArray[np.int64]) -> None:
        """Account for the open block's sequences up to ``sequence``; ``counted``: their kind's totals."""
        assert self._block is not None
        begin, self._taken = self._taken, sequence
        self._cursor = replace(self._cursor, sequence=sequence)
        if begin == sequence:
            return
        totals = self._block.totals
        gained = (totals[sequence] - totals[begin]).tolist()
        context = self._rule(self._cursor.stage).context
        state, rows = self._state, sequence - begin
        body, special, documents = gained[BODY], gained[SPECIAL], gained[DOCUMENTS]
        self._state = replace(
            state,
            spent=state.spent + int(counted[sequence] - counted[begin]),
            body=state.body + body,
            overlap=state.overlap + gained[OVERLAP],
            special=state.special + special,
            padding=state.padding + rows * context - body - special,
            labels=state.labels + gained[LABELS],
            sequences=state.sequences + rows,
            documents=state.documents + documents,
            distinct=state.distinct + (documents if self._cursor.epoch == 0 else 0),
        )

    @property
    def sequence(self) -> int:
        """Sequences of the open block served."""
        return self._cursor.sequence

    def state(self, *, debt: int, owed: int) -> PoolState:
        """The pool's state, with the debt and owed tokens that the schedule keeps."""
        return replace(self._state, cursor=self._after_block(), debt=debt, owed=owed)


def counted_totals(block: Block, kind: str, context: int) -> NDArray[np.int64]:
    """int64[num_sequences + 1]: counted tokens of the block's sequences before each, in the counted kind."""
    totals = block.totals
    if kind == "positions":
        return np.arange(len(totals), dtype=np.int64) * context
    if kind == "fresh":
        return np.ascontiguousarray(totals[:, BODY] - totals[:, OVERLAP])
    return np.ascontiguousarray(totals[:, BODY if kind == "body" else LABELS])


def no_sequences(recipe: Recipe, stage_name: str, pool: str) -> Problem:
    """A pool has a share in a stage, and its documents give no sequence there."""
    stage, rule = recipe.stages[stage_name], recipe.rule(stage_name, pool)
    named = pool if pool in stage.parts else next(g for g in stage.parts if pool in recipe.groups[g].pools)
    ways = ["give it no share", "prepare more text"]
    if rule.tail == "drop":
        ways += ["use tail: keep", "lower the window"]
    if rule.oversize == "drop":
        ways += ["use oversize: split"]
    return Problem(
        f"stages.{stage_name}.{stage.shares_form}.{named}",
        f"pool {pool!r} gives 0 sequences (window {rule.window}, tail {rule.tail}, oversize {rule.oversize})",
        "at least one sequence an epoch",
        ", or ".join(ways),
    )
