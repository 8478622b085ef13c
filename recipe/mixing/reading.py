"""One pool's reading: which block is open, how far it is served, and what comes next.

**Where it reads.** Blocks 0, 1, … of an epoch, each from its first sequence to its last. After the last
block come the ranges that skips gave back (``PoolState.held``), in their order: while they are read, the
cursor's block is the number of blocks, and the range being read is the first of ``held``. A range goes out
of ``held`` once it is served; when none is left, the next epoch begins. A range belongs to the epoch in
which it was skipped, which may be an earlier one: it keeps that epoch's order.

**What happens before a draw**, whenever the place has to be opened (a new block, another stage, a walk
that starts here); *number* is the last withdrawal that names a document of this pool:

1. A block of which nothing was served is arranged by the stage's rule without the documents withdrawn up
   to *number*, which becomes the cursor's ``withdrawn``; what that leaves out is counted by reason.
2. A block or range that is being read is cut if the stage's rule for the pool is another one (of pools that
   come before it in its folder only those count that share a document with it), or if its
   unserved sequences hold anything (fresh tokens, overlap, a label read ahead) of a document withdrawn
   after the cursor's ``withdrawn``. The cut notes stage, sequences served, ``withdrawn`` and ``stop``; the
   rest is arranged anew under the stage's rule and *number*, from sequence 0, with no ``stop``. The
   fresh tokens of withdrawn documents that were still to come are counted as ``withdrawn``.
3. Otherwise it goes on as it is: the cursor takes the stage, and keeps its ``withdrawn`` although later
   withdrawals are in force. They concern nothing that is still to be served of it, nor will they.
4. Where that leaves no sequence, reading moves on and this is done again.

So the state at a step depends on what comes before it alone, not on how a walk there was broken up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from recipe.config import Recipe, Rule
from recipe.errors import Problem, RecipeError
from recipe.mixing.cursor_block import BlockCache, begin_block, block_at, block_units
from recipe.mixing.snapshot import Cursor, Cut, PoolState
from recipe.pools import Pool
from recipe.sequences.blocks import Block, holds_withdrawn
from recipe.sequences.ownership import rule_for
from recipe.sequences.reading_order import num_blocks
from recipe.sequences.rows import KINDS
from recipe.sequences.withdrawn import NOTHING, Withdrawn

BODY, OVERLAP, SPECIAL, LABELS, DOCUMENTS, SEPARATORS = range(len(KINDS))


class Reading:
    """The reading of one pool, opened at a state; it moves forward only.

    Block and counts change in place; :meth:`state` gives the value that opens it again.
    """

    def __init__(
        self, recipe: Recipe, pool: Pool, state: PoolState, blocks: BlockCache, withdrawn: Withdrawn = NOTHING
    ) -> None:
        """Open a pool at a state."""
        self.pool = pool
        self.recipe = recipe
        self._blocks = blocks
        self._state = state
        self._cursor, self._held = state.cursor, state.held
        self._withdrawn, self._number = withdrawn, withdrawn.number
        self._rules: dict[int, Rule] = {}
        self._block_units = block_units(recipe, pool)
        self._fraction = recipe.simulated_fraction
        self._block: Block | None = None
        self._stop = 0
        self._taken = self.place.sequence
        """Sequences of the open block that are in ``_state`` already."""

    @property
    def epoch(self) -> int:
        """Readings of the pool completed."""
        return self._cursor.epoch

    @property
    def place(self) -> Cursor:
        """Where the next sequence comes from: a block of the epoch, or a returned range."""
        return self._held[0] if self._reads_held() else self._cursor

    @property
    def sequence(self) -> int:
        """Sequences of the open block served."""
        return self.place.sequence

    @property
    def stop(self) -> int:
        """Where the sequences of the open block end that are to be served now: all, or a returned range."""
        return self._stop

    def _reads_held(self) -> bool:
        return bool(self._held) and self._cursor.block >= self._num_blocks(self._cursor)

    def _move_to(self, place: Cursor) -> None:
        if self._reads_held():
            self._held = (place, *self._held[1:])
        else:
            self._cursor = place

    def _num_blocks(self, cursor: Cursor) -> int:
        return num_blocks(self.pool, self._block_units, cursor.prefix, self._fraction)

    def _after_block(self) -> tuple[Cursor, tuple[Cursor, ...]]:
        """The cursor and the ranges held, past the open block or range when all of it is served."""
        cursor, held = self._cursor, self._held
        if self._block is None or self.sequence < self._stop:
            return cursor, held
        if not self._reads_held():
            cursor = Cursor(epoch=cursor.epoch, block=cursor.block + 1, prefix=cursor.prefix)
        else:
            held = held[1:]
        if cursor.block >= self._num_blocks(cursor) and not held:
            return Cursor(epoch=cursor.epoch + 1), ()
        return cursor, held

    def ready(self, stage: int) -> Block | None:
        """The open block, if sequences of it can be served in this stage as they are."""
        if self._block is None:
            return None
        place = self.place
        return self._block if place.stage == stage and place.sequence < self._stop else None

    def open(self, stage: int, may_turn: Callable[[Reading], bool]) -> Block | None:
        """Open whatever serves the next sequence in a stage.

        Args:
            stage: index of the stage.
            may_turn: asked before a further epoch is begun.

        Returns:
            a block with at least one sequence left, from ``sequence`` on up to ``stop``; None when a
            further epoch was not allowed.

        Raises:
            RecipeError: a whole epoch of the pool gives no sequence.
        """
        epochs = 2 * self._num_blocks(Cursor()) + self._num_blocks(self._cursor)
        for _ in range(epochs + len(self._held) + 2):
            if self._block is None and self.place.stage >= 0:
                self._show()
            self._cursor, self._held = self._after_block()
            self._block = None
            before = self.place
            if before.stage < 0 and before.block == 0 and not may_turn(self):
                return None
            self._move_to(self._settled(before, stage))
            block = self._show()
            self._taken = self.sequence
            if before.stage < 0 or len(before.cuts) < len(self.place.cuts):
                self._charge(block.dropped)
            if self.sequence < self._stop:
                self._begin_next(stage)
                return block
        withdrawn = len(self._withdrawn.documents)
        problem = no_sequences(self.recipe, self._stage_name(stage), self.pool.name, withdrawn)
        raise RecipeError(self.recipe.name, [problem])

    def _begin_next(self, stage: int) -> None:
        """Plan the block after the open one ahead, where that takes a look at texts far away."""
        if self._held:
            return
        here, after = self._cursor, Cursor(epoch=self._cursor.epoch + 1)
        if here.block + 1 < self._num_blocks(here):
            after = Cursor(epoch=here.epoch, block=here.block + 1, prefix=here.prefix)
        after = replace(after, stage=stage, withdrawn=self._number)
        begin_block(self.recipe, self.pool, after, self._withdrawn, self._blocks)

    def _settled(self, place: Cursor, stage: int) -> Cursor:
        """A place as it is read in a stage: a new block is opened, one that cannot go on as it is cut."""
        if place.stage < 0:
            return replace(place, stage=stage, withdrawn=self._number)
        if self._rule(place.stage) == self._rule(stage) and not self._holds_withdrawn(place):
            return place if place.stage == stage else replace(place, stage=stage)
        return Cursor(
            epoch=place.epoch,
            block=place.block,
            stage=stage,
            cuts=(*place.cuts, Cut(place.stage, place.sequence, place.withdrawn, place.stop)),
            withdrawn=self._number,
            prefix=place.prefix,
        )

    def _holds_withdrawn(self, place: Cursor) -> bool:
        """Whether what is left at a place holds anything of a document withdrawn since it was arranged."""
        if place.withdrawn == self._number:
            return False
        block = self._plan(place)
        stop = block.num_sequences if place.stop is None else place.stop
        return holds_withdrawn(block, (place.sequence, stop), self._withdrawn, place.withdrawn)

    def _show(self) -> Block:
        """Plan the block that the place lies in."""
        place = self.place
        self._block = block = self._plan(place)
        self._stop = block.num_sequences if place.stop is None else place.stop
        return block

    def _stage_name(self, stage: int) -> str:
        return list(self.recipe.stages)[stage]

    def _rule(self, stage: int) -> Rule:
        known = self._rules.get(stage)
        if known is None:
            stated = self.recipe.rule(self._stage_name(stage), self.pool.name)
            known = self._rules[stage] = rule_for(self.pool, stated)
        return known

    def _plan(self, place: Cursor) -> Block:
        return block_at(self.recipe, self.pool, place, self._withdrawn, self._blocks)

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
        self._move_to(replace(self.place, sequence=sequence))
        if begin == sequence:
            return
        totals = self._block.totals
        gained = (totals[sequence] - totals[begin]).tolist()
        place = self.place
        context = self._rule(place.stage).context
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
            distinct=state.distinct + (documents if place.epoch == 0 else 0),
            separators=state.separators + gained[SEPARATORS],
        )

    def state(self, *, debt: int, owed: int) -> PoolState:
        """The pool's state, with the debt and owed tokens that the schedule keeps."""
        cursor, held = self._after_block()
        return replace(self._state, cursor=cursor, held=held, debt=debt, owed=owed)


def counted_totals(block: Block, kind: str, context: int) -> NDArray[np.int64]:
    """int64[num_sequences + 1]: counted tokens of the block's sequences before each, in the counted kind."""
    totals = block.totals
    if kind == "positions":
        return np.arange(len(totals), dtype=np.int64) * context
    if kind == "fresh":
        return np.ascontiguousarray(totals[:, BODY] - totals[:, OVERLAP])
    return np.ascontiguousarray(totals[:, BODY if kind == "body" else LABELS])


def no_sequences(recipe: Recipe, stage_name: str, pool: str, withdrawn: int = 0) -> Problem:
    """A pool has a share in a stage, and its documents, but for those withdrawn, give no sequence there."""
    stage, rule = recipe.stages[stage_name], recipe.rule(stage_name, pool)
    named = pool if pool in stage.parts else next(g for g in stage.parts if pool in recipe.groups[g].pools)
    ways = ["give it no share", "prepare more text"]
    if rule.behind:
        ways += [f"let it hold documents that {' and '.join(rule.behind)} leave out"]
    if rule.tail == "drop":
        ways += ["use tail: keep", "lower the window"]
    if rule.oversize == "drop":
        ways += ["use oversize: split"]
    if rule.density is not None:
        ways += ["keep more of its pieces (density)"]
    if rule.duplicates is not None:
        ways += ["keep what repeats (duplicates: keep)"]
    return Problem(
        f"stages.{stage_name}.{stage.shares_form}.{named}",
        f"pool {pool!r} gives 0 sequences (window {rule.window}, tail {rule.tail}, oversize {rule.oversize}"
        + (f", {withdrawn:,} documents withdrawn)" if withdrawn else ")"),
        "at least one sequence an epoch",
        ", or ".join(ways),
    )
