"""Pools and recipes for tests of the stream: real files, real recipes, small enough to check by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import recipe as product
from recipe.config import Recipe, recipe_from_plain
from recipe.mixing.opening import open_pools, settle_with
from recipe.mixing.snapshot import Snapshot
from recipe.mixing.stream import Stream
from recipe.pools import Section
from tests.mixing.reference import Source
from tests.sequences.edges import edges
from tests.sequences.reference import Doc, Need

EOS, BOS, FIRST = 1, 2, 10
"""Ids of the marks, and the first id of text."""


def write(
    path: Path,
    lengths: Sequence[int],
    *,
    eos: bool = False,
    bos: bool = False,
    groups: Sequence[int] | None = None,
    leads: Sequence[Sequence[int]] | None = None,
    needs: Sequence[tuple[list[int], list[Need]]] | None = None,
    first: int = FIRST,
    period: int | None = None,
    **more: Any,
) -> Source:
    """Write a pool whose tokens are all different: ``first``, ``first + 1`` …; or only ``period`` of them."""
    docs, at = [], first
    for length in lengths:
        docs.append([first + (token - first) % (period or at + length) for token in range(at, at + length)])
        at += length
    marks = {"eos": EOS if eos else None, "bos": BOS if bos else None}
    arrays = [np.array(doc, np.int64) for doc in docs]
    if needs is not None:
        more["sections"] = sections_of(needs)
    product.write_pool(path, arrays, vocab_size=max(at, 500), groups=groups, leads=leads, **marks, **more)
    sources = [Doc(doc, marks["bos"], marks["eos"]) for doc in docs]
    for number, doc in enumerate(sources):
        if leads is not None and leads[number]:
            doc.lead, doc.bos = (*([BOS] if bos else []), *leads[number]), None
        if needs is not None:
            doc.sections, doc.needs = map(tuple, needs[number])  # type: ignore[assignment]
    return Source(sources, units_of(len(docs), groups), more.get("repeats"))


def sections_of(needs: Sequence[tuple[list[int], list[Need]]]) -> list[list[Section]]:
    """Sections of documents, of which some need others; first their starts, then the needs."""
    return [
        [
            Section(
                start,
                f"{number}:{start}",
                tuple(f"{number + n.behind}:{n.first}" for n in found if n.start == start),
            )
            for start in starts
        ]
        for number, (starts, found) in enumerate(needs)
    ]


def units_of(num_documents: int, groups: Sequence[int] | None) -> list[list[int]]:
    """Document numbers of every unit: a group, or a document."""
    if groups is None:
        return [[number] for number in range(num_documents)]
    units: list[list[int]] = []
    for number, group in enumerate(groups):
        if number and groups[number - 1] == group:
            units[-1].append(number)
        else:
            units.append([number])
    return units


def stage(context: int, weights: Mapping[str, int], *, batch: int = 1, **more: Any) -> dict[str, Any]:
    """A stage with a constant batch; ``steps: 4`` unless a length is given."""
    plain: dict[str, Any] = {"context": context, "batch": {"sequences": batch}, "weights": dict(weights)}
    if not {"tokens", "steps", "until"} & set(more):
        plain["steps"] = 4
    return plain | more


def make(
    root: Path, pools: Mapping[str, Any], stages: Mapping[str, Any] | Sequence[Any], **keys: Any
) -> Recipe:
    """A recipe as loaded. Pools are folders of ``root``, or mappings of their keys."""
    named = stages if isinstance(stages, Mapping) else {f"s{i}": stage for i, stage in enumerate(stages)}
    plain: dict[str, Any] = {"seed": 1, "pools_root": str(root), "stages": dict(named), **keys}
    plain["pools"] = {
        name: {"path": name} | (dict(pool) if isinstance(pool, Mapping) else {"path": pool})
        for name, pool in pools.items()
    }
    return recipe_from_plain(plain, source="test")


@dataclass
class World:
    """A settled recipe and its opened pools."""

    recipe: Recipe
    pools: dict[str, Any]

    def stream(self, snapshots: Sequence[Snapshot] = ()) -> Stream:
        return Stream(self.recipe, self.pools, snapshots)


def world(
    root: Path, pools: Mapping[str, Any], stages: Mapping[str, Any] | Sequence[Any], **keys: Any
) -> World:
    """A settled recipe over pools that are there; every id spells something."""
    loaded = make(root, pools, stages, **keys)
    opened = open_pools(loaded)
    for pool in opened.values():
        pool.edges = edges
    return World(settle_with(loaded, opened), opened)


def plain_batch(batch: Mapping[str, Any]) -> dict[str, Any]:
    """A batch as lists."""
    return {name: array.tolist() for name, array in batch.items()}


def everything(stream: Stream, start: int = 0, stop: int | None = None) -> list[dict[str, Any]]:
    """All batches of a stream."""
    return [plain_batch(batch) for _, batch in stream.batches(start, stop=stop, read_ahead=0)]


def windows(stream: Stream) -> list[tuple[str, int, int, int]]:
    """Every piece of the stream in order: pool, document, start, stop."""
    found = []
    for step, batch in stream.batches(read_ahead=0):
        for row in range(len(batch["pool"])):
            found += [piece[:4] for piece in stream.provenance(step, row)]
    return found
