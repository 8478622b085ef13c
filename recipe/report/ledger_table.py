"""A run's ledger as a table for analysis: a row per chunk and pool, and one per pool that a turn dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from recipe.report.spent import KINDS
from recipe.run.accounts import dropped
from recipe.run.folder import RunFolder, read_version
from recipe.run.ledger import read_tail
from recipe.run.manifest import read_manifest
from recipe.run.row import CLOSING_KINDS, Row
from recipe.run.surviving import surviving

Dropped = dict[str, Mapping[str, int]]
"""By pool and reason: tokens dropped so far."""


def ledger_table(run: str | Path) -> pd.DataFrame:
    """What every pool was promised and gave in every chunk that counts, first chunk first.

    Chunks that a rewind discarded are left out, so sums over the table are what the loaded weights
    have seen, up to the last chunk on record.

    What a turn of the run dropped (a skip, growth that is read from now on, another seed) is in no chunk:
    it has rows of its own, of kind ``turn``, from a step to the same step, with no tokens but ``dropped``.
    The table of a branch begins where it branched: what the parent gave and dropped is in the parent's.

    Args:
        run: the folder of a run.

    Returns:
        a frame with ``stage``, ``chunk``, ``first_step``, ``stop_step``, ``positions`` and ``pool``, then
        whole tokens of that pool in that chunk: ``planned``, ``owed``, ``spent``, ``body``, ``overlap``,
        ``special``, ``padding``, ``labels``, and ``sequences``, ``documents`` and ``dropped``; at last
        ``kind``, which is ``chunk`` or ``turn``.

    Raises:
        RecipeError: the folder holds no ledger that can be read.
    """
    folder = RunFolder(Path(run))
    rows = list(surviving(folder.ledger, read_tail(folder.ledger)))
    records, before = list[dict[str, Any]](), Dropped()
    names = dict[int, Sequence[str]]()
    for row in reversed(rows):
        if row.kind not in CLOSING_KINDS:
            continue
        after = _dropped(folder, row, names)
        if row.kind == "created":
            before = _inherited(folder, row)
        records += _of_chunk(row.data) if row.kind == "chunk" else _of_turn(row.data, before, after)
        before = after
    places = ["stage", "chunk", "first_step", "stop_step", "positions", "pool"]
    return pd.DataFrame(records, columns=[*places, *KINDS, "dropped", "kind"])


def _dropped(folder: RunFolder, row: Row, names: dict[int, Sequence[str]]) -> Dropped:
    """What a row's snapshot says; ``names``: pools by recipe version, filled as versions are met."""
    version = int(row.data["recipe"])
    if version not in names:
        names[version] = tuple(read_version(folder, version).recipe.pools)
    pools = row.data["snapshot"]["pools"]
    return {name: pool.get("dropped", {}) for name, pool in zip(names[version], pools, strict=False)}


def _inherited(folder: RunFolder, created: Row) -> Dropped:
    """What the pools of a branch had dropped in its parent, by their names in the branch."""
    said = created.data.get("parent")
    if said is None:
        return {}
    parent = read_manifest(folder.parent, said["hash"])
    known = {
        pool.get("renamed_from") or name: parent["pools"][name]["dropped"]
        for name, pool in parent["recipe"]["resolved"]["pools"].items()
    }
    recipe = read_version(folder, int(created.data["recipe"])).recipe
    return {name: known.get(pool.renamed_from or name, {}) for name, pool in recipe.pools.items()}


def _of_chunk(chunk: dict[str, Any]) -> list[dict[str, Any]]:
    first, stop = chunk["steps"]
    place = {
        "stage": chunk["stage"],
        "chunk": chunk["chunk"],
        "first_step": first,
        "stop_step": stop,
        "positions": chunk["positions"],
        "kind": "chunk",
    }
    return [
        {
            **place,
            "pool": name,
            **{kind: counts[kind] for kind in KINDS},
            "dropped": sum(counts["dropped"].values()),
        }
        for name, counts in chunk["pools"].items()
    ]


def _of_turn(turn: dict[str, Any], before: Dropped, after: Dropped) -> list[dict[str, Any]]:
    """Pools of which the turn dropped something."""
    changes = {name: dropped(before.get(name, {}), reasons) for name, reasons in after.items()}
    place = {
        "stage": turn.get("stage"),
        "chunk": turn["snapshot"]["chunk"],
        "first_step": turn["step"],
        "stop_step": turn["step"],
        "positions": 0,
        "kind": "turn",
    }
    return [
        {**place, "pool": name, **dict.fromkeys(KINDS, 0), "dropped": sum(reasons.values())}
        for name, reasons in changes.items()
        if reasons
    ]
