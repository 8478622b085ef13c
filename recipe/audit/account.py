"""What rows and manifests must say, given the states that they lie between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recipe.audit.layout import StageLayout
from recipe.audit.state import COUNTS, PoolState, State
from recipe.config import Recipe
from recipe.maths.rounding import owed

STAGE_COUNTS = ("spent", "body", "overlap", "special", "padding", "labels", "sequences")
KINDS = ("body", "overlap", "special", "padding", "labels")
Plain = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Stretch:
    """What one chunk row covers."""

    start: State
    """Already in the stage of the stretch."""
    end: State
    planned_from: int
    planned_to: int
    version: int
    """Of the recipe."""


def chunk_row(recipe: Recipe, layout: StageLayout, stretch: Stretch) -> Plain:
    """The row of a chunk, without what every row has."""
    start, end, names = stretch.start, stretch.end, tuple(recipe.pools)
    pools = {}
    for name, planned, a, b in zip(names, _planned(layout, stretch), start.pools, end.pools, strict=True):
        pools[name] = {"planned": planned, **difference(a, b), "debt": b.debt}
    row: Plain = {
        "kind": "chunk",
        "recipe": stretch.version,
        "stage": layout.name,
        "chunk": start.chunk,
        "steps": [start.step, end.step],
        "positions": end.positions - start.positions,
        "grid": [stretch.planned_from, stretch.planned_to],
        "counted": sum(pool["spent"] for pool in pools.values()),
        "pools": pools,
        "groups": {
            name: {
                kind: sum(pools[pool][kind] for pool in group.pools) for kind in ("planned", "owed", "spent")
            }
            for name, group in recipe.groups.items()
        },
        "snapshot": end.to_plain(),
    }
    if end.step == layout.stop_step:
        row["overshoot"] = layout.stop_position - layout.first_position - layout.length
    return row


def _planned(layout: StageLayout, stretch: Stretch) -> list[int]:
    before = owed(layout.parts, sum(layout.parts), stretch.planned_from)
    after = owed(layout.parts, sum(layout.parts), stretch.planned_to)
    return [b - a for a, b in zip(before, after, strict=True)]


def difference(before: PoolState, after: PoolState) -> Plain:
    """What a pool gave between two states."""
    reasons = sorted({*before.dropped, *after.dropped})
    dropped = {why: after.dropped.get(why, 0) - before.dropped.get(why, 0) for why in reasons}
    return {
        **{kind: after.counts[kind] - before.counts[kind] for kind in COUNTS},
        "dropped": {why: tokens for why, tokens in dropped.items() if tokens},
    }


def cumulative(names: Sequence[str], state: State) -> Plain:
    """By pool and kind, since the run's start."""
    return {
        name: {kind: pool.counts[kind] for kind in COUNTS}
        for name, pool in zip(names, state.pools, strict=True)
    }


def stage_totals(names: Sequence[str], begins: Sequence[tuple[str, State]], end: State) -> Plain:
    """By stage, pool and kind; ``begins`` are the states at which stages were entered."""
    totals: Plain = {}
    stops = [*(state for _, state in begins[1:]), end]
    for (stage, start), stop in zip(begins, stops, strict=True):
        if stop.step > start.step:
            totals[stage] = {
                name: {kind: b.counts[kind] - a.counts[kind] for kind in STAGE_COUNTS}
                for name, a, b in zip(names, start.pools, stop.pools, strict=True)
            }
    return totals


def warnings(recipe: Recipe, before: State, after: State) -> list[Plain]:
    """The warning rows of pools that were read more often than allowed from some step between on."""
    rows = []
    for name, a, b in zip(recipe.pools, before.pools, after.pools, strict=True):
        allowed = recipe.epochs_allowed(name)
        if _passed(b, allowed) and not _passed(a, allowed):
            rows.append(
                {
                    "kind": "warning",
                    "step": after.step,
                    "pool": name,
                    "what": "read more often than max_epochs",
                    "epoch": b.cursor.epoch,
                    "max_epochs": allowed,
                }
            )
    return rows


def _passed(pool: PoolState, epochs: int) -> bool:
    at = pool.cursor
    begun = bool(at.cuts) or at.block > 0 or at.sequence > 0
    return at.epoch > epochs or (at.epoch == epochs and begun)


def manifest_pool(holding: Mapping[str, Any], pool: PoolState, seed: int) -> Plain:
    """What a manifest says of one pool; ``holding`` is what identifies it."""
    counts, stock = pool.counts, holding.get("stock")
    return {
        **holding,
        "epoch": pool.cursor.epoch,
        "epoch_seed": seed + pool.cursor.epoch,
        "epochs_read": f"{(counts['body'] - counts['overlap']) / stock:.4f}" if stock else None,
        "documents_begun": counts["documents"],
        "distinct_documents": counts["distinct"],
        "tokens": {kind: counts[kind] for kind in ("spent", "owed", *KINDS)},
        "sequences": counts["sequences"],
        "dropped": dict(sorted(pool.dropped.items())),
    }
