"""Walking a stream: from a snapshot, step by step, on metadata alone.

Everything that serves, accounts or resumes walks the same way; only the starting value differs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.config import Recipe
from recipe.maths.deadlines import Race, carry
from recipe.maths.rounding import owed
from recipe.mixing.curriculum import Curriculum, Stretch
from recipe.mixing.cursor_block import BlockCache
from recipe.mixing.reading import Reading, counted_totals
from recipe.mixing.schedule import Queue, schedule
from recipe.mixing.snapshot import Snapshot
from recipe.mixing.withdrawals import Withdrawals, withdrawn_of
from recipe.pools import Pool
from recipe.sequences.blocks import Block
from recipe.sequences.withdrawn import Withdrawn


@dataclass(frozen=True, slots=True)
class Ground:
    """What a walk stands on: a settled recipe, its pools in its order, and its steps."""

    recipe: Recipe
    pools: tuple[Pool, ...]
    curriculum: Curriculum
    blocks: BlockCache
    withdrawn: Withdrawals = field(default_factory=Withdrawals)
    """Documents that are not read any more."""

    def withdrawn_of(self, pool: str) -> Withdrawn:
        """Of a pool, whichever pool of its folder they were withdrawn from."""
        return withdrawn_of(self.recipe, self.withdrawn, pool)


class Walked(NamedTuple):
    """Sequences of some whole steps, in schedule order: per sequence its pool, block and index in it."""

    first_step: int
    num_steps: int
    stretch: Stretch
    pools: NDArray[np.int64]
    block_of: NDArray[np.int64]
    indices: NDArray[np.int64]
    blocks: tuple[Block, ...]
    """The blocks that ``block_of`` numbers."""

    def by_block(self) -> Iterator[tuple[Block, NDArray[np.int64]]]:
        """Every block with the sequences that come from it, int64[n], in schedule order."""
        for number, block in enumerate(self.blocks):
            yield block, np.flatnonzero(self.block_of == number)


class _Dry(Exception):  # noqa: N818 - no error: the run ends here
    """A pool was chosen and the run must end; ``sequences`` were served before."""

    def __init__(self, sequences: int) -> None:
        self.sequences = sequences


class Walker:
    """A place in the stream that moves forward; :meth:`snapshot` is its state as a value."""

    def __init__(self, ground: Ground, start: Snapshot) -> None:
        """Stand at a snapshot."""
        self._ground = ground
        self._restore(start)

    def _restore(self, start: Snapshot) -> None:
        """Take up the leg that a snapshot stands in."""
        ground = self._ground
        self._at = start
        self._left = start.left
        self._counted = start.counted
        self._debts = [pool.debt for pool in start.pools]
        layout = ground.curriculum.stages[start.stage]
        self._leg = layout.leg(max(start.step - 1, layout.first_step))
        self._race = self._race_of(start.stage, self._leg, start.left)
        in_leg = owed(self._race.parts, self._race.denominator, start.counted)
        self._owed_before = [pool.owed - now for pool, now in zip(start.pools, in_leg, strict=True)]
        self._readings = [
            Reading(ground.recipe, pool, state, ground.blocks, ground.withdrawn_of(pool.name))
            for pool, state in zip(ground.pools, start.pools, strict=True)
        ]
        self._counts: list[NDArray[np.int64] | None] = [None] * len(self._readings)
        self._ready: NDArray[np.int64] | None = None

    def _enter_next_stage(self) -> None:
        """A new leg: nothing counted, every debt at zero; the readings go on where they are."""
        at = self._at
        pools = tuple(replace(pool, debt=0) for pool in at.pools)
        self._at = replace(
            at, stage=at.stage + 1, stage_positions=0, chunk=0, counted=0, left=(), pools=pools
        )
        self._left, self._counted = (), 0
        self._debts = [0] * len(pools)
        self._owed_before = [pool.owed for pool in pools]
        self._leg = self._ground.curriculum.stages[self._at.stage].leg(at.step)
        self._race = self._race_of(self._at.stage, self._leg, ())
        self._counts = [None] * len(pools)
        self._ready = None

    def _enter_leg(self, leg: int) -> None:
        """Other shares inside the stage: what every pool is ahead or behind goes on.

        Raises:
            _Dry: only pools that left the stage would have a share.
        """
        layout = self._ground.curriculum.stages[self._at.stage]
        parts = layout.legs[leg].race.parts
        if not any(part for pool, part in enumerate(parts) if pool not in self._left):
            raise _Dry(0)
        race = self._race_of(self._at.stage, leg, self._left)
        self._debts = carry(self._race, race, self._debts, self._counted)
        self._end_leg()
        self._leg, self._race = leg, race

    def _end_leg(self) -> None:
        """What was owed in the leg is settled; the next one counts from zero."""
        in_leg = owed(self._race.parts, self._race.denominator, self._counted)
        self._owed_before = [a + b for a, b in zip(self._owed_before, in_leg, strict=True)]
        self._counted = 0

    def _race_of(self, stage: int, leg: int, left: tuple[int, ...]) -> Race:
        race = self._ground.curriculum.stages[stage].legs[leg].race
        for pool in left:
            race = race.without(pool)
        return race

    @property
    def step(self) -> int:
        """Steps consumed."""
        return self._at.step

    @property
    def finished(self) -> bool:
        """Whether no step is left: the run is complete, or a pool ran dry under ``stop``."""
        return self._at.ended or self._at.step == self._ground.curriculum.num_steps

    def snapshot(self) -> Snapshot:
        """The state here."""
        return self._at

    def advance(self, stop_step: int, most_sequences: int = 1 << 16) -> Walked:
        """Walk whole steps: at most to ``stop_step``, the next change of batch or shares, or a chunk's close.

        At least one step is walked, however large, unless the run ends here.
        """
        stretch = self._ground.curriculum.stretch(self.step)
        if stretch.stage > self._at.stage:
            self._enter_next_stage()
        close = self._ground.curriculum.chunk_close(self.step)
        change = self._ground.curriculum.change(self.step)
        limit = min(stop_step, close, change, self.step + max(1, most_sequences // stretch.batch))
        before = self._at
        try:
            walked = self._serve(stretch, limit - self.step)
        except _Dry as dry:
            self._restore(before)
            walked = self._serve(stretch, dry.sequences // stretch.batch)
            self._move(walked, closes=self._opened_chunk(walked), ended=True)
            return walked
        self._move(walked, closes=limit == close, ended=False)
        return walked

    def _opened_chunk(self, walked: Walked) -> bool:
        """Whether the chunk in which the run ends holds any step."""
        step = self.step + walked.num_steps
        layout = self._ground.curriculum.stages[self._at.stage]
        return step > layout.first_step and self._ground.curriculum.chunk_close(step - 1) != step

    def _move(self, walked: Walked, *, closes: bool, ended: bool) -> None:
        """Set the state after whole steps."""
        at = self._at
        positions = walked.num_steps * walked.stretch.step_positions
        in_leg = owed(self._race.parts, self._race.denominator, self._counted)
        states = tuple(
            reading.state(debt=debt, owed=before + now)
            for reading, debt, before, now in zip(
                self._readings, self._debts, self._owed_before, in_leg, strict=True
            )
        )
        self._at = Snapshot(
            step=at.step + walked.num_steps,
            stage=at.stage,
            positions=at.positions + positions,
            stage_positions=at.stage_positions + positions,
            sequences=at.sequences + len(walked.pools),
            chunk=at.chunk + (1 if closes else 0),
            counted=self._counted,
            left=self._left,
            ended=ended,
            pools=states,
        )

    def _serve(self, stretch: Stretch, num_steps: int) -> Walked:
        leg = self._ground.curriculum.stages[self._at.stage].leg(self.step)
        if num_steps and leg != self._leg:
            self._enter_leg(leg)
        wanted = num_steps * stretch.batch
        pools, block_of, indices = (np.empty(wanted, np.int64) for _ in range(3))
        used: list[Block] = []
        number = [-1] * len(self._readings)
        done = 0
        while done < wanted:
            queue = self._queue(stretch, used, number)
            served, self._debts = schedule(self._race, self._debts, queue, wanted - done)
            here = slice(done, done + len(served.pools))
            pools[here], indices[here] = served.pools, served.indices
            block_of[here] = np.array(number, np.int64)[served.pools]
            self._counted += served.counted
            self._account(queue)
            done = here.stop
            if served.waiting >= 0:
                self._refill(served.waiting, done)
        return Walked(self.step, num_steps, stretch, pools, block_of, indices, tuple(used))

    def _queue(self, stretch: Stretch, used: list[Block], number: list[int]) -> Queue:
        """What is ready in every pool; blocks that these steps meet for the first time are numbered."""
        size = len(self._readings)
        begins, nexts, stops = (np.zeros(size, np.int64) for _ in range(3))
        columns: list[NDArray[np.int64]] = []
        filled = 0
        for p, reading in enumerate(self._readings):
            block = reading.ready(self._at.stage) if self._race.parts[p] else None
            if block is None:
                if self._counts[p] is not None:
                    self._counts[p] = self._ready = None
                continue
            totals = self._counts[p]
            if totals is None:
                totals = counted_totals(block, self._ground.recipe.count, stretch.context)
                self._counts[p], self._ready, number[p] = totals, None, -1
            if number[p] < 0:
                number[p] = len(used)
                used.append(block)
            begins[p], nexts[p], stops[p] = filled, reading.sequence, reading.stop
            columns.append(totals)
            filled += block.num_sequences
        if self._ready is None:
            self._ready = np.concatenate([np.diff(totals) for totals in columns] or [np.empty(0, np.int64)])
        return Queue(self._ready, begins, nexts, stops)

    def _account(self, queue: Queue) -> None:
        for p, reading in enumerate(self._readings):
            totals = self._counts[p]
            if totals is not None and queue.stop[p]:
                reading.serve_to(int(queue.next[p]), totals)

    def _refill(self, pool: int, served: int) -> None:
        """Open the next block of a pool that was chosen, or let it leave.

        Raises:
            _Dry: the run ends here.
        """
        name = self._ground.pools[pool].name
        policy = self._ground.recipe.exhaustion(name)
        allowed = self._ground.recipe.epochs_allowed(name)
        opened = self._readings[pool].open(
            self._at.stage, lambda reading: policy == "repeat" or reading.epoch < allowed
        )
        self._counts[pool] = self._ready = None
        if opened is not None:
            return
        if policy == "stop" or self._race.num_drawn == 1:
            raise _Dry(served)
        self._end_leg()
        self._race = self._race.without(pool)
        self._left = (*self._left, pool)
        self._debts = [0] * len(self._debts)
