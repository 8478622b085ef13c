"""Part 5: test vectors: digests that the same program must give anywhere.

The *synthetic* ones are of a built-in recipe over pools that are made on the spot, so that they can be
computed on a machine that has the package and nothing else. The run's own are of a few of its steps:
``pieces`` follows from the pools' lengths alone, ``arrays`` needs their tokens.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from recipe.config import recipe_from_plain
from recipe.errors import RecipeError
from recipe.maths.order import ORDER_VERSION
from recipe.mixing.opening import close_pools, open_pools, settle_with
from recipe.mixing.stream import Stream
from recipe.mixing.walker import Walker
from recipe.pools import write_pool
from recipe.run.canonical import Plain, hash_of

FORMAT = 1
ARRAYS = ("input_ids", "labels", "position_ids", "segment_ids", "pool")
"""Arrays of a batch that are digested, in this order."""
ROWS = 4
"""Rows of a step that also have a digest of their own."""
MOST_STAGES = 16

DIGEST = (
    "SHA-256 over, for each of input_ids, labels, position_ids, segment_ids, pool: its name, a line end, its "
    "shape as text such as 8x512, a line end, its values as little-endian int64 in row order. Of a row: the "
    "same with that row alone. pieces: blake2b-256 of the JSON without blanks of "
    "[[pool, [[document number, start, stop, fresh, flags], …]] per row]"
)

_SYNTHETIC: Plain = {
    "seed": 20240501,
    "max_epochs": 64,
    "count": "body",
    "pools": {
        "long": {"path": "long", "block_units": 16},
        "short": {"path": "short", "block_units": 8},
        "marked": {"path": "marked", "block_units": 4, "slicing": {"stride": 12}},
    },
    "stages": {
        "packed": {
            "steps": 24,
            "context": 32,
            "batch": {"ramp": {0: 2, 640: 4}},
            "slicing": {"stride": 24, "tail": "backfill"},
            "quotas": {"long": "61.6%", "short": "38.3%", "marked": "0.1%"},
        },
        "joined": {
            "steps": 24,
            "context": 48,
            "batch": {"sequences": 3},
            "packing": {"method": "concat"},
            "weights": {"long": 2, "short": 1, "marked": 3},
        },
    },
}
_LENGTHS: dict[str, Plain] = {
    "long": {"documents": 40, "most": 160, "marks": {"eos": 0}},
    "short": {"documents": 60, "most": 20, "marks": {}},
    "marked": {"documents": 20, "most": 50, "marks": {"eos": 0, "bos": 1}},
}


def batch_digest(batch: Mapping[str, Any], rows: slice = slice(None)) -> str:
    """The digest of a batch, or of some rows of it."""
    digest = hashlib.sha256()
    for name in ARRAYS:
        array = np.ascontiguousarray(batch[name][rows], dtype="<i8")
        digest.update(f"{name}\n{'x'.join(map(str, array.shape))}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def synthetic_vectors() -> Plain:
    """The digests of the built-in recipe, computed here."""
    with tempfile.TemporaryDirectory(prefix="recipe-vectors-") as folder:
        for name, said in _LENGTHS.items():
            documents = list(_documents(name, said["documents"], said["most"]))
            write_pool(Path(folder) / name, documents, vocab_size=512, **said["marks"])
        recipe = recipe_from_plain({**_SYNTHETIC, "pools_root": folder}, source="test vectors")
        pools = open_pools(recipe)
        try:
            stream = Stream(settle_with(recipe, pools), pools)
            steps = [batch_digest(batch) for _, batch in stream.batches(read_ahead=0)]
            end = stream.snapshot(stream.num_steps).to_plain()
            marks = {name: pool.fingerprint for name, pool in pools.items()}
        finally:
            close_pools(pools.values())
    return {
        "recipe": _SYNTHETIC,
        "documents": {
            name: {**said, "rule": "see recipe.run.handover.vectors"} for name, said in _LENGTHS.items()
        },
        "pools": marks,
        "steps": steps,
        "stream": hashlib.sha256("".join(steps).encode()).hexdigest(),
        "snapshot": hash_of(end),
    }


def _documents(name: str, count: int, most: int) -> Iterator[list[int]]:
    """Documents of ids 2..511 from hashes: no generator whose numbers could change with its version."""
    for number in range(count):
        size = 1 + int.from_bytes(_hash(f"{name} {number}")[:4], "little") % most
        words = np.frombuffer(b"".join(_hash(f"{name} {number} {k}") for k in range(-(-size // 32))), "<u2")
        yield (2 + words[:size] % 510).tolist()


def _hash(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=64).digest()


def pieces_digest(stream: Stream, step: int) -> str:
    """The digest of where the tokens of a step come from: computed from lengths alone."""
    walked = Walker(stream.ground, stream.snapshot(step)).advance(step + 1)
    rows = []
    for pool, number, index in zip(
        walked.pools.tolist(), walked.block_of.tolist(), walked.indices.tolist(), strict=True
    ):
        block = walked.blocks[number]
        pieces = block.rows.pieces.take(np.arange(*block.rows.ends[index : index + 2]))
        documents = block.documents[pieces.document]
        columns = (documents, pieces.start, pieces.stop, pieces.fresh, pieces.flags)
        rows.append([stream.pools[pool], np.stack(columns, axis=1).tolist()])
    return hash_of(rows)


def run_vectors(stream: Stream, steps: Sequence[int]) -> Plain:
    """Digests of some steps of a run; steps that its data cannot serve any more are left out."""
    found: Plain = {}
    for step in steps:
        try:
            batch = stream.batch(step)
        except (RecipeError, ValueError):
            continue
        num_rows = len(batch["pool"])
        found[str(step)] = {
            "arrays": batch_digest(batch),
            "rows": [batch_digest(batch, slice(row, row + 1)) for row in range(min(ROWS, num_rows))],
            "pieces": pieces_digest(stream, step),
        }
    return found


def chosen_steps(stream: Stream, first: int, at: int) -> list[int]:
    """Steps whose opening costs nothing: where snapshots are on record, from ``first`` to ``at``.

    The first that the recipe in force served, the first of each stage, and those round the last checkpoint.
    """
    starts = [stage.first_step for stage in stream.curriculum.stages if first <= stage.first_step <= at]
    steps = {first, *starts[-MOST_STAGES:], at - 1, at}
    return sorted(step for step in steps if first <= step < stream.num_steps)


def vectors_plain(synthetic: Plain, run: Plain) -> Plain:
    """The file of test vectors."""
    return {
        "format": FORMAT,
        "order_version": ORDER_VERSION,
        "digest": DIGEST,
        "synthetic": synthetic,
        "run": run,
    }
