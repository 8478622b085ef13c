"""Serving steps: spans of steps planned by a walker, rows copied when a rank asks for them."""

from __future__ import annotations

import os
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from recipe.mixing.balancing import balanced_order
from recipe.mixing.dealing import dealt_rows
from recipe.mixing.memory import Memory
from recipe.mixing.reading import LABELS
from recipe.mixing.served_ids import is_unchecked, refuse_impossible
from recipe.mixing.sheets import Library
from recipe.mixing.walker import Ground, Walked, Walker
from recipe.mixing.weighing import Weighing
from recipe.sequences.assembly import assemble
from recipe.sequences.page import Buffers
from recipe.sequences.pieces import AHEAD, JOINED, Pieces
from recipe.sequences.segment_lengths import padded_segment_lengths, segment_lengths
from recipe.sequences.sheet import FLAGS, MULTIPLE, TOKENS, WHOLE_ROW, Sheet, Sources
from recipe.sequences.transform import positions_of

if TYPE_CHECKING:
    from recipe.mixing.fetching import Ahead

SPAN_SEQUENCES = 4096
"""Sequences planned at once."""
MOST_SPANS = 64
"""Spans that are kept while their tokens are fetched ahead."""

Batch = dict[str, Any]
"""Arrays by name, and numbers on request; see :meth:`recipe.mixing.stream.Stream.batch`."""
LOSS_WEIGHT = "loss_weight"
"""float32[rows] of a batch where a stage has an objective: what a row's labels count in the loss."""


class Deal(NamedTuple):
    """Which rows a rank asks for, and whether with segment lengths and the rows' places in the schedule."""

    rank: int = 0
    size: int = 1
    micro_batch: int | None = None
    cu_seqlens: bool = False
    rows: bool = False
    chosen: tuple[int, ...] | None = None
    """Rows by their places in the schedule, whoever they are dealt to."""


class Span(NamedTuple):
    """Steps ready to be copied."""

    first_step: int
    num_steps: int
    batch: int
    sheet: Sheet
    sources: Sources
    context: int
    labels: NDArray[np.int64]
    """int64[num_steps]: positions that carry a label."""

    def holds(self, step: int) -> bool:
        """Whether the step is one of these."""
        return 0 <= step - self.first_step < self.num_steps

    def rows(self, step: int, deal: Deal) -> NDArray[np.int64]:
        """int64[rows]: places in the sheet of a rank's rows in a step."""
        rows: NDArray[np.int64] = _dealt(self.num_steps, self.batch, deal)[step - self.first_step]
        return rows

    def first_row(self, step: int) -> int:
        """Place in the sheet of row 0 of a step."""
        return (step - self.first_step) * self.batch

    def costs(self, step: int) -> NDArray[np.int64]:
        """int64[batch]: of every row of a step the sum of squared lengths of what attends to itself."""
        first = self.first_row(step)
        ends = self.sheet.ends[first : first + self.batch + 1]
        pieces = self.sheet.pieces[ends[0] : ends[-1]]
        flags = pieces[:, FLAGS]
        sizes = positions_of(Pieces(*pieces[:, :TOKENS].T))
        sizes[(flags & AHEAD) > 0] = 0
        row_of = np.repeat(np.arange(self.batch), np.diff(ends))
        opens = np.flatnonzero((flags & JOINED) == 0)
        if len(opens) < len(sizes):
            sizes, row_of = np.add.reduceat(sizes, opens), row_of[opens]
        whole = self.sources.rules[self.sheet.pool[first : first + self.batch], WHOLE_ROW] > 0
        pieced, summed = np.zeros(self.batch, np.int64), np.zeros(self.batch, np.int64)
        np.add.at(pieced, row_of, sizes**2)
        np.add.at(summed, row_of, sizes)
        costs: NDArray[np.int64] = np.where(whole, summed**2, pieced)
        return costs


@lru_cache(maxsize=64)
def _dealt(num_steps: int, batch: int, deal: Deal) -> NDArray[np.int64]:
    """int64[num_steps, rows]: a rank's rows in steps that lie one behind the other."""
    dealt = dealt_rows(batch, deal.rank, deal.size, deal.micro_batch)
    return dealt + np.arange(num_steps)[:, None] * batch


def _labels(walked: Walked) -> NDArray[np.int64]:
    """int64[num_steps]: labels of every walked step, from the counts of its sequences."""
    labels = np.empty(len(walked.pools), np.int64)
    for block, rows in walked.by_block():
        totals = block.totals[:, LABELS]
        labels[rows] = totals[walked.indices[rows] + 1] - totals[walked.indices[rows]]
    summed: NDArray[np.int64] = labels.reshape(walked.num_steps, -1).sum(axis=1)
    return summed


def _lengths(segment_ids: NDArray[np.int32], multiple: int) -> Batch:
    """``cu_seqlens`` and ``max_seqlen``; where pieces are padded, ``cu_seqlens_padded`` too."""
    if multiple == 1:
        lengths, longest = segment_lengths(segment_ids)
        return {"cu_seqlens": lengths, "max_seqlen": longest}
    true, with_padding, longest = padded_segment_lengths(segment_ids, multiple)
    return {"cu_seqlens": true, "cu_seqlens_padded": with_padding, "max_seqlen": longest}


class Reader:
    """Serves steps, best in order; a step back costs an opening from the nearest snapshot."""

    def __init__(self, ground: Ground, library: Library, memory: Memory, stop: int | None = None) -> None:
        """Serve the steps of a stream; ``stop``: one after the other is read, up to it. None: any."""
        self._ground = ground
        self._library = library
        self._memory = memory
        self._walker: Walker | None = None
        self._spans: tuple[Span, ...] = ()
        self._served = 0
        self._ahead: Ahead | None = None
        self._lock = threading.Lock()
        self._buffers = Buffers()
        self._stop = stop
        self._is_unchecked = any(is_unchecked(pool) for pool in ground.pools)
        self._weighing = Weighing(ground.recipe, ground.curriculum)

    def span(self, step: int) -> Span | None:
        """The span that holds a step; None where a pool that ran dry ended the run before it.

        Raises:
            ValueError: the run has no such step.
        """
        if (span := self._known(step)) is not None:
            return span
        num_steps = self._ground.curriculum.num_steps
        if not 0 <= step < num_steps:
            raise ValueError(f"step {step} is outside 0..{num_steps - 1}")
        with self._lock:
            if (span := self._known(step)) is None and (span := self._plan(step)) is not None:
                self._spans = (*self._kept(), span)
            return span

    def _known(self, step: int) -> Span | None:
        return next((span for span in self._spans if span.holds(step)), None)

    def _kept(self) -> tuple[Span, ...]:
        """Spans still to be copied when another one is planned: some where tokens are fetched ahead."""
        if self._ahead is None:
            return ()
        left = (span for span in self._spans if span.first_step + span.num_steps > self._served)
        return tuple(left)[-MOST_SPANS:]

    def _plan(self, step: int) -> Span | None:
        walker = self._walker
        if walker is None or walker.step != step:
            walker = self._walker = Walker(self._ground, self._memory.before(step))
        while not walker.finished:
            ahead = step if walker.step < step else self._ground.curriculum.num_steps
            try:
                walked = walker.advance(ahead, SPAN_SEQUENCES)
            except BaseException:
                self._walker = None  # it stands between two places now
                raise
            self._memory.pass_by(walker.snapshot())
            if walked.first_step <= step < walked.first_step + walked.num_steps:
                return self._prepare(walked)
        return None

    def _prepare(self, walked: Walked) -> Span:
        stretch = walked.stretch
        stage = self._ground.curriculum.stages[stretch.stage].name
        sources = self._library.sources(self._ground.recipe, stage)
        sheet = self._library.sheet(walked)
        labels = _labels(walked)
        return Span(
            walked.first_step, walked.num_steps, stretch.batch, sheet, sources, stretch.context, labels
        )

    def batch(self, step: int, deal: Deal) -> Batch | None:
        """The rows of a rank in a step; None where the run ended before it."""
        span = self.span(step)
        if span is None:
            return None
        rows = self._rows(span, step, deal)
        batch = self._assembled(span, step, rows, deal)
        if deal.rows or self._ground.recipe.deal != "order":
            batch["rows"] = rows - span.first_row(step)
        return batch

    def _assembled(self, span: Span, step: int, rows: NDArray[np.int64], deal: Deal) -> Batch:
        """Rows of a sheet with their tokens, from mapped parts or as they were fetched."""
        if not self._library.has_remote:
            return self._copied(span, step, rows, cu_seqlens=deal.cu_seqlens)
        self._served = step
        with self._fetcher().held(step, deal) as (sheet, addresses):
            alone = span._replace(sheet=sheet, sources=span.sources._replace(address=addresses))
            return self._copied(alone, step, np.arange(len(rows)), cu_seqlens=deal.cu_seqlens)

    def _rows(self, span: Span, step: int, deal: Deal) -> NDArray[np.int64]:
        """int64[rows]: places in the sheet of a rank's rows, as the recipe deals them."""
        if deal.chosen is not None:
            return span.first_row(step) + np.array(deal.chosen, np.int64)
        if self._ground.recipe.deal == "order":
            return span.rows(step, deal)
        order = balanced_order(span.costs(step), deal.size, deal.micro_batch)
        places = dealt_rows(span.batch, deal.rank, deal.size, deal.micro_batch)
        return span.first_row(step) + order[places]

    def looked_up(self, step: int, deal: Deal) -> tuple[Span, NDArray[np.int64]] | None:
        """A step that is fetched ahead; None: there is none, or only an error, told when it is asked for."""
        if step >= (self._ground.curriculum.num_steps if self._stop is None else self._stop):
            return None
        span = self.span(step)
        return None if span is None else (span, self._rows(span, step, deal))

    def _fetcher(self) -> Ahead:
        """What fetches tokens from stores, in this process."""
        if self._ahead is None or self._ahead.process != os.getpid():
            # what talks to stores: only pools that lie in one have a use for it
            from recipe.mixing.fetching import Ahead

            self._ahead = Ahead(self._library, self.looked_up, stride=0 if self._stop is None else 1)
        return self._ahead

    def close(self) -> None:
        """Let go of what was fetched ahead."""
        if self._ahead is not None and self._ahead.process == os.getpid():
            self._ahead.close()
            self._ahead = None

    def rows(self, step: int, rows: NDArray[np.int64]) -> Batch | None:
        """Some rows of the global batch of a step; None where the run ended before it."""
        span = self.span(step)
        if span is None:
            return None
        if len(rows) and not 0 <= rows.min() <= rows.max() < span.batch:
            raise ValueError(f"rows {rows.min()}..{rows.max()} are outside 0..{span.batch - 1}")
        deal = Deal(chosen=tuple(rows.tolist()))
        return self._assembled(span, step, span.first_row(step) + rows, deal)

    def _copied(self, span: Span, step: int, rows: NDArray[np.int64], *, cu_seqlens: bool) -> Batch:
        page, arrays = self._buffers.take(len(rows), span.context)
        what = (span.sheet, rows, span.sources)
        while (slot := assemble(what, self._library.widths, page)) >= 0:
            self._library.open(slot)
        if self._is_unchecked:
            refuse_impossible(arrays, (span.sheet, rows, span.sources), self._ground.pools)
        batch: Batch = arrays._asdict()
        batch["pool"] = span.sheet.pool[rows]
        weights = self._weighing.of_rows(step, batch["pool"])
        if weights is not None:
            batch[LOSS_WEIGHT] = weights
        if cu_seqlens:
            batch |= _lengths(arrays.segment_ids, int(span.sources.rules[:, MULTIPLE].max(initial=1)))
        return batch
