"""A stream that knows where it was opened, and leaves hints where it belongs to a run folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.mixing.reader import Batch
from recipe.mixing.snapshot import Snapshot
from recipe.mixing.stream import PieceAt, Stream
from recipe.pools import Pool
from recipe.run.head import read_head, snapshot_of
from recipe.run.hints import SNAPSHOT_SEQUENCES, Hints


class RunStream(Stream):
    """The stream of a run from the step it was opened at; any other step is served too."""

    def __init__(
        self, recipe: Recipe, pools: Mapping[str, Pool], places: Sequence[Snapshot], *, floor: int = 0
    ) -> None:
        """Opened at the last of the places known; steps before ``floor`` were served from other data."""
        super().__init__(recipe, pools, places)
        self.step = places[-1].step
        """First step not consumed when the stream was opened."""
        self._floor = floor
        self._hints: Hints | None = None
        self._ledger: Path | None = None

    def close(self) -> None:
        """Let go of the files the pools mapped; what is asked for later is opened again."""
        for pool in self._opened:
            pool.close()

    def attach(self, hints: Hints, ledger: Path) -> None:
        """Leave hints in a run folder, and find snapshots in its ledger."""
        self._hints, self._ledger = hints, ledger

    def batches(  # noqa: PLR0913 - as the stream it extends
        self,
        start: int | None = None,
        dp_rank: int = 0,
        dp_size: int = 1,
        micro_batch: int | None = None,
        *,
        stop: int | None = None,
        cu_seqlens: bool = False,
        read_ahead: int = 2,
    ) -> Iterator[tuple[int, Batch]]:
        """Steps and their batches from ``start`` (default: where the stream was opened) on."""
        first = self.step if start is None else start
        self._approach(first)
        inner = super().batches(
            first, dp_rank, dp_size, micro_batch, stop=stop, cu_seqlens=cu_seqlens, read_ahead=read_ahead
        )
        return self._leaving_hints(inner) if self._hints is not None and dp_rank == 0 else inner

    def batch(
        self,
        step: int,
        dp_rank: int = 0,
        dp_size: int = 1,
        micro_batch: int | None = None,
        *,
        cu_seqlens: bool = False,
    ) -> Batch:
        """The rows of one rank in one step, as :meth:`Stream.batch` gives them."""
        self._approach(step)
        return super().batch(step, dp_rank, dp_size, micro_batch, cu_seqlens=cu_seqlens)

    def snapshot(self, step: int) -> Snapshot:
        """The state with steps ``0..step - 1`` consumed."""
        if step >= 0:
            self._approach(step)
        return super().snapshot(step)

    def provenance(self, step: int, row: int) -> list[PieceAt]:
        """Where the body tokens of a row of the global batch come from, left to right."""
        self._approach(step)
        return super().provenance(step, row)

    def _leaving_hints(self, batches: Iterator[tuple[int, Batch]]) -> Iterator[tuple[int, Batch]]:
        assert self._hints is not None
        for step, batch in batches:
            yield step, batch
            self._hints.served(step, self._memory.before(step + 1))

    def _approach(self, step: int) -> None:
        """Refuse what the data no longer gives; learn a snapshot on record if none near is known."""
        if step < 0:
            raise ValueError(f"step {step} is outside 0..{self.num_steps - 1}")
        if step < self._floor:
            raise RecipeError.single(
                "a step before new data was accepted",
                f"step {step}",
                given="data that was replaced later",
                expected=f"a step from {self._floor} on",
                fix="put the old data back and open an older step",
            )
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
