"""The stream: batches of any step, for any rank, a pure function of recipe, pools and step."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.mixing.ahead import read_ahead as run_ahead
from recipe.mixing.balancing import Balance, balance, balanced_order
from recipe.mixing.curriculum import Curriculum
from recipe.mixing.cursor_block import BlockCache
from recipe.mixing.dealing import check_dealing
from recipe.mixing.memory import SNAPSHOT_SEQUENCES, Memory
from recipe.mixing.provenance import PieceAt, pieces_of_row
from recipe.mixing.reader import Batch, Deal, Reader, Span
from recipe.mixing.sheets import Library
from recipe.mixing.snapshot import Snapshot, start_of
from recipe.mixing.walker import Ground, Walker
from recipe.mixing.weighing import Weights, weights_at
from recipe.mixing.withdrawals import Withdrawals, erased_withdrawals
from recipe.pools import Pool


class Stream:
    """The mixed stream of a settled recipe. Reading it changes nothing; threads may share it.

    ``num_steps`` are the steps planned; ``pools`` the names in the recipe's order.
    """

    def __init__(
        self,
        recipe: Recipe,
        pools: Mapping[str, Pool],
        snapshots: Iterable[Snapshot] = (),
        withdrawn: Withdrawals | None = None,
    ) -> None:
        """A stream over opened pools; ``snapshots`` are places known before, ``withdrawn`` is not read.

        By default documents that were erased from the pools are withdrawn from the first step on.
        """
        ordered = tuple(pools[name] for name in recipe.pools)
        self.recipe = recipe
        self.pools = tuple(recipe.pools)
        self.curriculum = Curriculum.from_recipe(recipe)
        self.num_steps = self.curriculum.num_steps
        self._opened = ordered
        blocks = BlockCache(2 * len(ordered) + 4)
        gone = erased_withdrawals(recipe, pools) if withdrawn is None else withdrawn
        self._ground = Ground(recipe, ordered, self.curriculum, blocks, gone)
        self._library = Library(ordered)
        self._memory = Memory(start_of(len(ordered)))
        for snapshot in snapshots:
            self._memory.add(snapshot)
        self._reader = self._new_reader()

    def _new_reader(self, stop: int | None = None) -> Reader:
        return Reader(self._ground, self._library, self._memory, stop)

    @property
    def ground(self) -> Ground:
        """What its walks stand on."""
        return self._ground

    @property
    def end_step(self) -> int | None:
        """The step at which a pool that ran dry ended the run, once something walked that far."""
        return self._memory.end_step

    def walk(self, start: Snapshot, stop_step: int) -> Iterator[Snapshot]:
        """The snapshots of a walk over metadata: at every chunk close, every 2**16 sequences, and the end.

        Ends early where a pool ran dry under ``stop``: the last snapshot then has ``ended``.
        """
        walker = Walker(self._ground, start)
        while walker.step < stop_step and not walker.finished:
            walker.advance(stop_step, SNAPSHOT_SEQUENCES)
            self._memory.pass_by(walker.snapshot())
            yield walker.snapshot()

    def snapshot(self, step: int) -> Snapshot:
        """The state with steps ``0..step - 1`` consumed.

        Raises:
            ValueError: the run has no such step, or ended before it.
        """
        if not 0 <= step <= self.num_steps:
            raise ValueError(f"step {step} is outside 0..{self.num_steps}")
        start = self._memory.before(step)
        walked = deque(self.walk(start, step), maxlen=1)
        at = walked.pop() if walked else start
        if at.step != step:
            raise ValueError(f"the run ended at step {at.step}, before step {step}")
        at = self._ended(at)
        self._memory.add(at)
        return at

    def _ended(self, at: Snapshot) -> Snapshot:
        """The same state, or the one that says so where the next step cannot be served.

        Looked up each time: a snapshot must not depend on how far somebody happened to read.
        """
        repeats = all(self.recipe.exhaustion(name) == "repeat" for name in self.pools)
        if repeats or at.ended or at.step == self.num_steps:
            return at
        ahead = Walker(self._ground, at)
        try:
            ahead.advance(at.step + 1)
        except RecipeError:  # told when that step is asked for
            return at
        return ahead.snapshot() if ahead.step == at.step else at

    def closings(self, start: Snapshot, stop_step: int) -> list[Snapshot]:
        """Snapshots at every close of a chunk in ``(start.step, stop_step]``, in order."""
        chunk, closed = (start.stage, start.chunk), []
        for at in self.walk(start, stop_step):
            if at.chunk and (at.stage, at.chunk) > chunk:
                chunk = (at.stage, at.chunk)
                closed.append(at)
        return closed

    def batch(  # noqa: PLR0913 - the trainer's own words
        self,
        step: int,
        dp_rank: int = 0,
        dp_size: int = 1,
        micro_batch: int | None = None,
        *,
        cu_seqlens: bool = False,
        rows: bool = False,
    ) -> Batch:
        """The rows of one rank in one step, in schedule order or as ``deal`` of the recipe says.

        Returns:
            ``input_ids``, ``labels`` int64[rows, context]; ``position_ids``, ``segment_ids`` int32 (-1 is
            padding); ``attention_mask`` int8; ``pool`` int64[rows], an index into ``pools``; where a stage
            has an objective ``loss_weight`` float32[rows], what the row's labels count in the loss. On
            request ``cu_seqlens`` int32[segments + 1] over the flattened rows, and ``max_seqlen``; where
            documents are padded to a multiple, ``cu_seqlens`` counts true positions and
            ``cu_seqlens_padded`` says where segments begin. On request, and where they are dealt balanced,
            ``rows`` int64[rows]: their places in the schedule, to which :meth:`provenance` refers.

        Raises:
            ValueError: the run has no such step, ended before it, or has no such rank.
            RecipeError: the batch cannot be dealt to so many ranks.
        """
        batch = self._reader.batch(step, Deal(dp_rank, dp_size, micro_batch, cu_seqlens, rows))
        if batch is None:
            raise self._ended_before(step)
        return batch

    def batches(  # noqa: PLR0913 - the trainer's own words
        self,
        start: int = 0,
        dp_rank: int = 0,
        dp_size: int = 1,
        micro_batch: int | None = None,
        *,
        stop: int | None = None,
        cu_seqlens: bool = False,
        rows: bool = False,
        read_ahead: int = 2,
    ) -> Iterator[tuple[int, Batch]]:
        """Steps and their batches from ``start`` on, ``read_ahead`` of them assembled ahead in a thread.

        Ends at ``stop``, at the run's last step, or where a pool that ran dry ended the run.

        Raises:
            RecipeError: a batch of the run cannot be dealt to so many ranks.
        """
        check_dealing(tuple({s.batch for s in self.curriculum.stretches}), dp_size, micro_batch)
        end = self.num_steps if stop is None else min(stop, self.num_steps)
        reader, deal = self._new_reader(end), Deal(dp_rank, dp_size, micro_batch, cu_seqlens, rows)

        def produce() -> Iterator[tuple[int, Batch]]:
            try:
                for step in range(start, end):
                    batch = reader.batch(step, deal)
                    if batch is None:
                        return
                    yield step, batch
            finally:
                reader.close()

        return run_ahead(produce, read_ahead) if read_ahead else produce()

    def rows(self, step: int, rows: Sequence[int]) -> Batch:
        """Some rows of the global batch of a step, by their place in it, as :meth:`batch` gives them.

        Raises:
            ValueError: the run has no such step or row, or ended before it.
        """
        batch = self._reader.rows(step, np.asarray(rows, np.int64))
        if batch is None:
            raise self._ended_before(step)
        return batch

    def order(self, step: int, dp_size: int = 1, micro_batch: int | None = None) -> NDArray[np.int64]:
        """The order in which the rows of a step are dealt: place p of the batch has row ``order[p]``.

        Returns:
            int64[batch]: 0, 1, 2 ... unless the recipe says ``deal: balanced``. From metadata alone, and the
            same on every rank.

        Raises:
            ValueError: the run has no such step, or ended before it.
            RecipeError: the batch cannot be dealt to so many ranks.
        """
        span = self._spanned(step)
        check_dealing((span.batch,), dp_size, micro_batch)
        if self.recipe.deal == "order":
            return np.arange(span.batch)
        return balanced_order(span.costs(step), dp_size, micro_batch)

    def balance(self, step: int, dp_size: int = 1, micro_batch: int | None = None) -> Balance:
        """How even the micro-batches of a step are, in schedule order and as they are dealt.

        Raises:
            ValueError: the run has no such step, or ended before it.
            RecipeError: the batch cannot be dealt to so many ranks.
        """
        order, span = self.order(step, dp_size, micro_batch), self._spanned(step)
        parts = dp_size if micro_batch is None else span.batch // micro_batch
        costs = span.costs(step)
        return Balance(balance(costs, np.arange(span.batch), parts), balance(costs, order, parts))

    def _spanned(self, step: int) -> Span:
        span = self._reader.span(step)
        if span is None:
            raise self._ended_before(step)
        return span

    def num_labels(self, step: int) -> int:
        """Positions of the whole batch of a step that carry a label, over all ranks: from metadata alone.

        What a mean loss over ranks and micro-batches divides by, without asking the other ranks.

        Raises:
            ValueError: the run has no such step, or ended before it.
        """
        span = self._spanned(step)
        return int(span.labels[step - span.first_step])

    def loss_weights(self, step: int) -> Weights | None:
        """What a label of each pool counts in the loss of a step, exactly; None: one each.

        The share of the stage's ``objective`` over the share in force, in the leg that the step lies in.

        Raises:
            ValueError: the run has no such step.
        """
        return weights_at(self.recipe, self.curriculum, step)

    def known(self, step: int) -> Snapshot:
        """The last snapshot at or before a step that something passed; nothing is walked for it."""
        return self._memory.before(step)

    def _ended_before(self, step: int) -> ValueError:
        end = self.end_step or 0
        has = f"steps 0..{end - 1}" if end else "no step"
        return ValueError(f"the run ended at step {end}: it has {has}, not step {step}")

    def provenance(self, step: int, row: int) -> list[PieceAt]:
        """Where the document tokens of a row of the global batch come from, left to right.

        Raises:
            ValueError: the run has no such step or row.
        """
        span = self._reader.span(step)
        if span is None or not 0 <= row < span.batch:
            raise ValueError(f"step {step} has no row {row}")
        stage = self.curriculum.stages[self.curriculum.stretch(step).stage].name
        return pieces_of_row(
            self.recipe, self._opened, stage, span, (step - span.first_step) * span.batch + row
        )
