"""The rows of a file, and what they are made of: tokens by kind and pool, counted from metadata."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.integrations.exporting.layout import Shard, Wanted
from recipe.mixing.dealing import dealt_rows
from recipe.mixing.reader import Batch
from recipe.mixing.stream import Stream
from recipe.mixing.walker import Walker
from recipe.sequences.rows import KINDS


def rows_of(shard: Shard, step: int, wanted: Wanted) -> NDArray[np.int64]:
    """int64[rows]: which rows of the global batch, in schedule order, the rank is dealt."""
    batch = shard.stream.curriculum.stretch(step).batch
    dealt = dealt_rows(batch, wanted.dp_rank, wanted.dp_size, wanted.micro_batch)
    if shard.stream.recipe.deal == "order":
        return dealt
    order: NDArray[np.int64] = shard.stream.order(step, wanted.dp_size, wanted.micro_batch)
    return order[dealt]


def batches_of(shard: Shard, wanted: Wanted) -> Iterator[tuple[int, Batch]]:
    """Steps and the rank's batches, each with its ``row`` int64[rows], places in the global batch."""
    stream = shard.stream
    stream.snapshot(shard.first)  # from the nearest one on record
    deal = (wanted.dp_rank, wanted.dp_size, wanted.micro_batch)
    # As any stream: what is exported is no progress of the trainer's.
    for step, batch in Stream.batches(stream, shard.first, *deal, stop=shard.stop, rows=True):
        yield step, batch | {"row": batch["rows"]}


def counts_of(shard: Shard, wanted: Wanted) -> dict[str, dict[str, int]]:
    """Of every pool with a row: sequences, positions and tokens by kind."""
    stream = shard.stream
    totals = np.zeros((len(stream.pools), len(KINDS) + 1), np.int64)
    walker = Walker(stream.ground, stream.snapshot(shard.first))
    while walker.step < shard.stop:
        walked = walker.advance(shard.stop)
        kinds = np.ones((len(walked.pools), len(KINDS) + 1), np.int64)
        for block, here in walked.by_block():
            place = walked.indices[here]
            kinds[here, :-1] = block.totals[place + 1] - block.totals[place]
        batch = walked.stretch.batch
        for offset in range(walked.num_steps):
            rows = offset * batch + rows_of(shard, walked.first_step + offset, wanted)
            np.add.at(totals, walked.pools[rows], kinds[rows])
    named = zip(stream.pools, totals.tolist(), strict=True)
    return {name: _named(numbers, shard.context) for name, numbers in named if numbers[-1]}


def _named(numbers: list[int], context: int) -> dict[str, Any]:
    kinds = dict(zip(KINDS, numbers, strict=False))
    positions = numbers[-1] * context
    return {
        "sequences": numbers[-1],
        "positions": positions,
        "body": kinds["body"],
        "fresh": kinds["body"] - kinds["overlap"],
        "overlap": kinds["overlap"],
        "special": kinds["special"],
        "padding": positions - kinds["body"] - kinds["special"],
        "labels": kinds["labels"],
    }
