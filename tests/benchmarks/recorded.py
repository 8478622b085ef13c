"""A recorded run of ten trillion tokens, made without walking it.

Documents fill sequences exactly and a batch holds each pool's share exactly, so every debt is 0 at every
step and the state of any step can be written down. Rows, hashes, pointers and manifest are made by what
makes them in a run; some checkpoints are rewound on the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from recipe import open_run, start_run
from recipe.config import Recipe, recipe_from_plain
from recipe.mixing.snapshot import Cursor, PoolState, Snapshot
from recipe.mixing.stream import Stream
from recipe.run.accounts import Accounts, Closing, discarded
from recipe.run.canonical import Plain, canonical
from recipe.run.folder import RunFolder
from recipe.run.head import lineage
from recipe.run.holdings import Holding
from recipe.run.ledger import row_at
from recipe.run.manifest import latest_path, manifest_path, seal_of, sealed
from recipe.run.row import Row, chained, now
from recipe.run.statement import Statement, Subject, manifest_plain
from recipe.run.turns import TurnAt
from tests.pools.sparse import sparse_pool

PARTS = {"web": 616, "rewrites": 79, "chinese": 140, "tutorials": 50, "code": 99, "maths": 15, "teacher": 1}
"""Shares in thousandths; a batch holds so many sequences of each pool."""
CONTEXT, EACH, DOCUMENTS = 4096, 1024, 100_000_000
LENGTH, CHUNK = 10**13, 10**8
CHUNKS_A_CHECKPOINT, CHECKPOINTS_A_REWIND = 40, 250


@dataclass(frozen=True)
class Recorded:
    """A run of the benchmark."""

    path: Path
    recipe: Recipe
    documents: int
    """Of every pool."""

    def state(self, step: int, chunk: int = 0) -> Snapshot:
        """The state at a step; ``chunk``: chunks closed."""
        units = self.recipe.pools["web"].block_units
        assert units is not None
        positions = step * sum(PARTS.values()) * CONTEXT
        return Snapshot(
            step=step,
            positions=positions,
            stage_positions=positions,
            sequences=step * sum(PARTS.values()),
            chunk=chunk,
            counted=positions,
            pools=tuple(self._pool(part * step, units) for part in PARTS.values()),
        )

    def _pool(self, sequences: int, block_units: int) -> PoolState:
        per_row = CONTEXT // EACH
        epoch, served = divmod(sequences, self.documents // per_row)
        block, inside = divmod(served, block_units // per_row)
        tokens, documents = sequences * CONTEXT, sequences * per_row
        return PoolState(
            cursor=Cursor(epoch=epoch, block=block, stage=0 if inside else -1, sequence=inside),
            owed=tokens,
            spent=tokens,
            body=tokens,
            labels=documents * (EACH - 1),
            sequences=sequences,
            documents=documents,
            distinct=min(documents, self.documents),
        )


def recorded(
    scratch: Path, *, length: int = LENGTH, chunk: int = CHUNK, documents: int = DOCUMENTS
) -> Recorded:
    """The run, with a row for every chunk up to its last checkpoint; made if it is not there."""
    pool, path = scratch / f"sparse-{documents}", scratch / f"recorded-{length}-{chunk}-{documents}"
    if not pool.is_dir():
        sparse_pool(pool, documents, EACH, num_parts=10).close()
    plain: dict[str, Any] = {
        "seed": 1,
        "max_epochs": 1_000_000,
        "pools": {name: {"path": str(pool)} for name in PARTS},
        "stages": {
            "only": {
                "tokens": length,
                "context": CONTEXT,
                "batch": {"sequences": sum(PARTS.values())},
                "chunk": chunk,
                "weights": PARTS,
            }
        },
    }
    made = path.is_dir()
    with open_run(path) if made else start_run(recipe_from_plain(plain, source="benchmark"), path) as run:
        found = Recorded(path, run.recipe, documents)
        _check(found, run.stream())
        if not made:
            holdings = {pool.name: Holding.of(pool) for pool in run.stream().ground.pools}
            _Scribe(found, holdings).write()
    return found


def _check(found: Recorded, stream: Stream) -> None:
    """The states that were written down are those that a walk meets."""
    for step in (0, 1, stream.num_steps // 3, stream.num_steps - 9):
        stop = min(step + 9, stream.num_steps)
        for at in stream.walk(found.state(step), stop):
            assert replace(at, chunk=0) == found.state(at.step)


class _Scribe:
    """Writes the record of a run up to a checkpoint near its end."""

    def __init__(self, of: Recorded, holdings: dict[str, Holding]) -> None:
        self._of, self._folder = of, RunFolder(of.path)
        self._accounts = Accounts(of.recipe)
        first = row_at(self._folder.ledger, 0)
        version = str(first.data["recipe_hash"])
        self._subject = Subject(
            name=str(first.data["run"]),
            recipe=of.recipe,
            version=1,
            version_hash=version,
            holdings=holdings,
            turn=TurnAt.of(first),
        )
        self._last, self._end = first, self._folder.ledger.stat().st_size
        self._closing, self._at = first, Closing(of.state(0), 0, 0)
        self._parent: Row | None = None
        self._number = 0

    def write(self) -> None:
        """Chunk rows and checkpoints; every now and then the last checkpoints are rewound and come again."""
        marks = list(self._marks())
        for first in range(0, len(marks), CHUNKS_A_CHECKPOINT):
            kept = self._parent, self._closing, self._at
            again = first and first // CHUNKS_A_CHECKPOINT % CHECKPOINTS_A_REWIND == 0
            for _ in range(2 if again else 1):
                self._checkpoint(marks[first : first + CHUNKS_A_CHECKPOINT])
                if again and kept is not None:
                    self._parent, self._closing, self._at = kept
                    self._rewind(marks[first + CHUNKS_A_CHECKPOINT - 1].step)
                    again = False

    def _marks(self) -> Iterator[Snapshot]:
        """The states at which chunks close, up to the last whole gap between checkpoints."""
        curriculum, step, chunk = self._accounts.curriculum, 0, 0
        while step < curriculum.num_steps - CHUNKS_A_CHECKPOINT:
            step, chunk = curriculum.chunk_close(step), chunk + 1
            yield self._of.state(step, chunk)

    def _append(self, bodies: list[Plain]) -> list[Row]:
        rows = []
        with self._folder.ledger.open("ab") as file:
            for data in chained(self._last, bodies, time=now()):
                line = canonical(data) + b"\n"
                rows.append(Row(self._end, data))
                self._end += file.write(line)
        self._last = rows[-1]
        return rows

    def _rewind(self, reached: int) -> None:
        step = 0 if self._parent is None else self._parent.end_step
        manifest = None if self._parent is None else self._parent.data["manifest"]
        gone = discarded(self._accounts.names, self._of.state(reached), self._of.state(step))
        self._append(
            [
                {"kind": "rewind", "from_step": reached, "to_step": step}
                | {"manifest": manifest, "discarded": gone}
            ]
        )

    def _checkpoint(self, marks: list[Snapshot]) -> None:
        rows = self._append(self._accounts.chunk_rows(self._at, marks, 1))
        self._closing = rows[-1]
        self._at = Closing(marks[-1], 0, int(rows[-1].data["grid"][1]))
        self._number += 1
        end = marks[-1]
        rest = {
            "number": self._number,
            "time": now(),
            "previous": None,
            "parent": None,
            "snapshot": end,
            "stages": {},
            "warnings": [],
            "data_changes": [],
            "ledger": {"row": self._last.number, "head": self._last.data["hash"]},
        }
        data = sealed(manifest_plain(self._subject, self._accounts, Statement(), rest))
        for path in (manifest_path(self._of.path, self._number), latest_path(self._of.path)):
            path.write_bytes(data)
        body = {
            "kind": "checkpoint",
            "step": end.step,
            "recipe": 1,
            "manifest": self._number,
            "manifest_hash": seal_of(data),
            "uri": None,
            "gpu_hours": None,
            "positions": end.positions,
            "cumulative": self._accounts.cumulative(end),
            "closing": {"row": self._closing.number, "offset": self._closing.offset},
            "turn": self._subject.turn.pointer,
            "lineage": lineage(self._folder.ledger, self._parent),
            "snapshot": end.to_plain(),
        }
        [self._parent] = self._append([body])
