"""What a run asks of stores, before the first step: requests and bytes, from the spans of its first steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from recipe.config import Recipe
from recipe.mixing.fetching import LOADS
from recipe.mixing.loads import sheets_of, spans_of
from recipe.mixing.memory import Memory
from recipe.mixing.reader import SPAN_SEQUENCES, Deal, Reader
from recipe.mixing.sheets import Library
from recipe.mixing.snapshot import start_of
from recipe.mixing.stream import Stream
from recipe.mixing.walker import Walker
from recipe.pools import Pool
from recipe.pools.remote.cache import cache
from recipe.pools.remote.ranges import runs_of, used_bytes
from recipe.sequences.sheet import SLOT

MOST_STEPS = 256
MOST_SEQUENCES = 1 << 14
"""A stretch that is looked at has no more of either, but one step at least."""


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Reads of a stretch of the run, all its rows read by one process with this cache."""

    pools: tuple[str, ...]
    """Pools that lie in stores."""
    steps: int
    """Steps looked at, from the first one on."""
    steps_together: int
    """Of these, steps that are fetched together once the cache is warm."""
    requests: int
    bytes_read: int
    bytes_used: int
    """Of these bytes, those that rows are copied from."""
    cache_bytes: int
    aligned: tuple[str, ...]
    """Pools whose cuts are looked for in the tokens, by every process that reads."""
    looked_requests: int
    looked_bytes: int
    """Of requests and bytes read, those that look for cuts: of whole blocks, the part that the stretch is."""

    def to_plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            **asdict(self),
            "amplification": self.bytes_read / self.bytes_used if self.bytes_used else 1.0,
        }


def traffic_of(recipe: Recipe, opened: Mapping[str, Pool]) -> Traffic | None:
    """What reading begins with; None: no pool lies in a store, or one has no folder.

    Args:
        recipe: settled.
        opened: its pools.

    Raises:
        RecipeError: a step cannot be planned, or the cache's bound is no amount.
    """
    names = tuple(name for name, pool in opened.items() if pool.layout.remote is not None)
    if not names or set(opened) != set(recipe.pools):
        return None
    stream, ordered = Stream(recipe, opened), tuple(opened[name] for name in recipe.pools)
    library = Library(ordered)
    reader = Reader(stream.ground, library, Memory(start_of(len(ordered))))
    batch = stream.curriculum.stretch(0).batch
    steps = max(1, min(stream.num_steps, MOST_STEPS, MOST_SEQUENCES // batch))
    sheets = sheets_of(reader.looked_up, range(steps), Deal())
    pieces = [sheet.pieces[library.is_remote[sheet.pieces[:, SLOT]]] for sheet in sheets.values()]
    spans = [spans_of(library, some) for some in pieces]
    per_step = max(1, sum(runs_of(some).size for some in spans) // max(1, len(spans)))
    together = max(1, min(len(spans), cache().bound // LOADS // per_step))
    loads = [np.concatenate(spans[k : k + together]) for k in range(0, len(spans), together)]
    runs = [runs_of(load) for load in loads]
    stage = next(iter(recipe.stages))
    looked = _looked(stream, steps)
    return Traffic(
        pools=names,
        steps=len(spans),
        steps_together=together,
        requests=sum(one.num_requests for one in runs) + looked[0],
        bytes_read=sum(one.num_bytes for one in runs) + looked[1],
        bytes_used=sum(used_bytes(load) for load in loads),
        cache_bytes=cache().bound,
        aligned=tuple(n for n in names if recipe.rule(stage, n).align not in ("none", "section")),
        looked_requests=looked[0],
        looked_bytes=looked[1],
    )


def _looked(stream: Stream, steps: int) -> tuple[int, int]:
    """Requests and bytes that look for cuts in the blocks of the first steps, by the rows they give."""
    walker, sums = Walker(stream.ground, start_of(len(stream.pools))), np.zeros(2)
    while walker.step < steps and not walker.finished:
        for block, rows in walker.advance(steps, SPAN_SEQUENCES).by_block():
            sums += np.array(block.looked) * len(rows) / max(1, block.num_sequences)
    requests, size = np.ceil(sums).astype(np.int64).tolist()
    return requests, size
