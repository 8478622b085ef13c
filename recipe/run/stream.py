"""A stream that knows where it was opened, and leaves hints where it belongs to a run folder.

It serves from the last turn of the run on. Steps before that turn are served by the stream of the
turn before, which is opened from the run folder when it is first asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.mixing.balancing import Balance
from recipe.mixing.provenance import PieceAt
from recipe.mixing.reader import Batch, Deal, Reader
from recipe.mixing.snapshot import Snapshot
from recipe.mixing.stream import Stream
from recipe.mixing.weighing import Weights
from recipe.mixing.withdrawals import Withdrawals
from recipe.pools import Pool
from recipe.run.head import read_head, snapshot_of
from recipe.run.hints import SNAPSHOT_SEQUENCES, Hints
from recipe.run.stats import Meter, Stats
from recipe.sequences.sheet import Sheet


class RunStream(Stream):
    """The stream of a run from the step it was opened at; any other step is served too."""

    def __init__(
        self,
        recipe: Recipe,
        pools: Mapping[str, Pool],
        places: Sequence[Snapshot],
        *,
        floor: int = 0,
        withdrawn: Withdrawals | None = None,
    ) -> None:
        """Opened at the last of the places known; steps before ``floor`` are those of an earlier turn."""
        self._counted: _CountedReader | None = None
        super().__init__(recipe, pools, places, withdrawn)
        self._meter = Meter(np.array([pool.token_dtype.itemsize for pool in self._opened], np.int64))
        self.step = places[-1].step
        """First step not consumed when the stream was opened."""
        self.floor = floor
        """First step that this turn of the run serves."""
        self._hints: Hints | None = None
        self._ledger: Path | None = None
        self._open_earlier: Callable[[], RunStream] | None = None
        self._earlier: RunStream | None = None

    def close(self) -> None:
        """Let go of the files the pools mapped; what is asked for later is opened again."""
        for pool in self._opened:
            pool.close()
        if self._earlier is not None:
            self._earlier.close()

    def attach(self, hints: Hints, ledger: Path) -> None:
        """Leave hints in a run folder, and find snapshots in its ledger."""
        self._hints, self._ledger = hints, ledger

    def follow(self, open_earlier: Callable[[], RunStream]) -> None:
        """Serve steps before ``floor`` from the stream of the turn before, opened when it is needed."""
        self._open_earlier = open_earlier

    def at(self, step: int) -> RunStream:
        """The stream of the turn that a step belongs to: this one from ``floor`` on.

        Raises:
            RecipeError: an earlier turn, and there is no run folder to find it in, or its data is gone.
        """
        return self if step >= self.floor else self._before(step).at(step)

    def _before(self, step: int) -> RunStream:
        """The stream of the turn before, asked for a step."""
        if self._open_earlier is None:
            raise RecipeError.single(
                "a step before this stream",
                f"step {step}",
                given="a state, which holds the run from its last turn on",
                expected=f"a step from {self.floor} on",
                fix="open the run folder: it has the turns before (recipe.open_run)",
            )
        if self._earlier is None:
            self._earlier = self._open_earlier()
        return self._earlier

    def batches(  # noqa: PLR0913 - as the stream it extends
        self,
        start: int | None = None,
        dp_rank: int = 0,
        dp_size: int = 1,
        micro_batch: int | None = None,
        *,
        stop: int | None = None,
        cu_seqlens: bool = False,
        rows: bool = False,
        read_ahead: int = 2,
    ) -> Iterator[tuple[int, Batch]]:
        """Steps and their batches from ``start`` (default: where the stream was opened) on."""
        first = self.step if start is None else start
        how: dict[str, Any] = {"cu_seqlens": cu_seqlens, "rows": rows, "read_ahead": read_ahead}
        self._approach(first)
        if first < self.floor:
            end = self.floor if stop is None else min(stop, self.floor)
            before = self._before(first).batches(first, dp_rank, dp_size, micro_batch, stop=end, **how)
            if end == stop:
                return before
            rest = self.batches(end, dp_rank, dp_size, micro_batch, stop=stop, **how)
            return chain(before, rest)
        inner = self._measured(super().batches(first, dp_rank, dp_size, micro_batch, stop=stop, **how))
        return self._leaving_hints(inner) if self._hints is not None and dp_rank == 0 else inner

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
        """The rows of one rank in one step, as :meth:`Stream.batch` gives them."""
        self._approach(step)
        if step < self.floor:
            return self.at(step).batch(step, dp_rank, dp_size, micro_batch, cu_seqlens=cu_seqlens, rows=rows)
        return super().batch(step, dp_rank, dp_size, micro_batch, cu_seqlens=cu_seqlens, rows=rows)

    def snapshot(self, step: int) -> Snapshot:
        """The state with steps ``0..step - 1`` consumed; at a turn, the one from which it goes on."""
        if step >= 0:
            self._approach(step)
        if 0 <= step < self.floor:
            return self.at(step).snapshot(step)
        return super().snapshot(step)

    def rows(self, step: int, rows: Sequence[int]) -> Batch:
        """Some rows of the global batch of a step, as :meth:`Stream.rows` gives them."""
        self._approach(step)
        if step < self.floor:
            return self.at(step).rows(step, rows)
        return super().rows(step, rows)

    def num_labels(self, step: int) -> int:
        """Labels of a step over all ranks, as :meth:`Stream.num_labels`."""
        self._approach(step)
        if step < self.floor:
            return self.at(step).num_labels(step)
        return super().num_labels(step)

    def loss_weights(self, step: int) -> Weights | None:
        """What a label of each pool counts in the loss, as :meth:`Stream.loss_weights`."""
        if 0 <= step < self.floor:
            return self.at(step).loss_weights(step)
        return super().loss_weights(step)

    def order(self, step: int, dp_size: int = 1, micro_batch: int | None = None) -> NDArray[np.int64]:
        """The order in which the rows of a step are dealt, as :meth:`Stream.order`."""
        self._approach(step)
        if step < self.floor:
            return self.at(step).order(step, dp_size, micro_batch)
        return super().order(step, dp_size, micro_batch)

    def balance(self, step: int, dp_size: int = 1, micro_batch: int | None = None) -> Balance:
        """How even the micro-batches of a step are, as :meth:`Stream.balance`."""
        self._approach(step)
        if step < self.floor:
            return self.at(step).balance(step, dp_size, micro_batch)
        return super().balance(step, dp_size, micro_batch)

    def provenance(self, step: int, row: int) -> list[PieceAt]:
        """Where the body tokens of a row of the global batch come from, left to right."""
        self._approach(step)
        if step < self.floor:
            return self.at(step).provenance(step, row)
        return super().provenance(step, row)

    def stats(self) -> Stats:
        """What iterating over ``batches`` handed out in this process, and how long it was waited for.

        Steps of turns before this one, and single calls of ``batch``, are not counted.
        """
        return self._meter.stats()

    def sheet(self, step: int) -> tuple[Sheet, int, NDArray[np.int64]]:
        """The pieces of a step of this turn: its sheet, the place of row 0 there, and the pools' rules."""
        self._approach(step)
        span = self._spanned(step)
        return span.sheet, span.first_row(step), span.sources.rules

    def _new_reader(self, stop: int | None = None) -> Reader:
        self._counted = _CountedReader(self._ground, self._library, self._memory, stop)
        return self._counted

    def _measured(self, batches: Iterator[tuple[int, Batch]]) -> Iterator[tuple[int, Batch]]:
        reader = self._counted
        assert reader is not None
        return self._meter.follow(batches, lambda item: item[1], reader.ready)

    def _leaving_hints(self, batches: Iterator[tuple[int, Batch]]) -> Iterator[tuple[int, Batch]]:
        assert self._hints is not None
        for step, batch in batches:
            yield step, batch
            self._hints.served(step, self._memory.before(step + 1))

    def _approach(self, step: int) -> None:
        """Learn a snapshot on record if none near a step of this turn is known."""
        if step < 0:
            raise ValueError(f"step {step} is outside 0..{self.num_steps - 1}")
        if step < self.floor:
            return
        known = self._memory.before(step)
        if self._hints is None or self._ledger is None or not 0 <= step < self.num_steps:
            return
        here = self.curriculum.stretch(step)
        sequences = here.first_sequence + (step - here.first_step) * here.batch
        if sequences - known.sequences < 2 * SNAPSHOT_SEQUENCES:
            return
        found = [self._hints.nearest(step)]
        if step < self.step:  # What is later on record may be of another lineage.
            head = read_head(self._ledger, step)
            found += [snapshot_of(row) for row in (head.closing, head.parent) if row is not None]
        for snapshot in found:
            if snapshot is not None and snapshot.step > known.step:
                self._memory.add(snapshot)


def steps_there(stream: RunStream, step: int) -> int:
    """Steps that there are, walked from a step: those planned, or fewer where a pool runs dry."""
    if all(stream.recipe.exhaustion(name) == "repeat" for name in stream.pools):
        return stream.num_steps
    try:
        last = deque(stream.walk(stream.snapshot(step), stream.num_steps), maxlen=1)
    except RecipeError:  # a step that fails: it says why when it is served
        return stream.num_steps
    return last[0].step if last else step


class _CountedReader(Reader):
    """A reader that knows how many of its batches nobody has taken yet."""

    _made = _taken = 0

    def batch(self, step: int, deal: Deal) -> Batch | None:
        """As it is; one more was made."""
        batch = super().batch(step, deal)
        self._made += batch is not None
        return batch

    def ready(self) -> int:
        """Batches that stand ready, once one more was taken."""
        self._taken += 1
        return self._made - self._taken
