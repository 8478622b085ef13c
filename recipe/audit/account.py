"""What rows and manifests must say, given the states that they lie between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from recipe.audit.layout import StageLayout
from recipe.audit.state import COUNTS, SEPARATORS, PoolState, State
from recipe.audit.weighing import weights_on_record
from recipe.config import Recipe

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
    tokens = layout.planned(stretch.planned_from, stretch.planned_to)
    for name, planned, a, b in zip(names, tokens, start.pools, end.pools, strict=True):
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
    if weights := weights_on_record(recipe, layout, start.step, end.step):
        row["loss_weights"] = weights
    if end.step == layout.stop_step:
        row["overshoot"] = layout.stop_position - layout.first_position - layout.length
    return row


def difference(before: PoolState, after: PoolState) -> Plain:
    """What a pool gave between two states."""
    reasons = sorted({*before.dropped, *after.dropped})
    dropped = {why: after.dropped.get(why, 0) - before.dropped.get(why, 0) for why in reasons}
    left_out = after.counts[SEPARATORS] - before.counts[SEPARATORS]
    return {
        **{kind: after.counts[kind] - before.counts[kind] for kind in COUNTS},
        **({SEPARATORS: left_out} if left_out else {}),
        "dropped": {why: tokens for why, tokens in dropped.items() if tokens},
    }


def cumulative(names: Sequence[str], state: State) -> Plain:
    """By pool and kind, since the run's start."""
    return {
        name: {kind: pool.counts[kind] for kind in COUNTS}
        for name, pool in zip(names, state.pools, strict=True)
    }


def by_name(names: Sequence[str], state: State) -> dict[str, PoolState]:
    """The pools of a state by their names."""
    return dict(zip(names, state.pools, strict=True))


def gained(names: Sequence[str], before: Mapping[str, PoolState], after: Mapping[str, PoolState]) -> Plain:
    """What pools gave between two states, by kind; one that was not there before had given nothing."""
    nothing = PoolState()
    return {
        name: {
            kind: after[name].counts[kind] - before.get(name, nothing).counts[kind] for kind in STAGE_COUNTS
        }
        for name in names
    }


def added(one: Plain, other: Plain) -> Plain:
    """Totals by stage, pool and kind, of both.

    >>> added({"a": {"web": {"body": 1}}}, {"a": {"web": {"body": 2}, "code": {"body": 3}}})
    {'a': {'web': {'body': 3}, 'code': {'body': 3}}}
    """
    if not isinstance(one, dict) or not isinstance(other, dict):
        return one + other
    keys = [*one, *(key for key in other if key not in one)]
    return {
        key: added(one[key], other[key]) if key in one and key in other else one.get(key, other.get(key))
        for key in keys
    }


def warnings(
    recipe: Recipe, step: int, before: Mapping[str, PoolState], after: Mapping[str, PoolState]
) -> list[Plain]:
    """The warning rows at a step of pools that passed their readings between two states."""
    rows = []
    for name in recipe.pools:
        allowed = recipe.epochs_allowed(name)
        if _passed(after[name], allowed) and not _passed(before.get(name, PoolState()), allowed):
            rows.append(
                {
                    "kind": "warning",
                    "step": step,
                    "pool": name,
                    "what": "read more often than max_epochs",
                    "epoch": after[name].cursor.epoch,
                    "max_epochs": allowed,
                }
            )
    return rows


def _passed(pool: PoolState, epochs: int) -> bool:
    at = pool.cursor
    begun = bool(at.cuts) or at.block > 0 or at.sequence > 0
    return at.epoch > epochs or (at.epoch == epochs and begun)


def exchanged(recipe: Recipe, changes: Sequence[Mapping[str, Any]]) -> set[str]:
    """Pools that hold other data than they once did, by the changes on record, under whatever name."""
    named = {name for change in changes for name in change["pools"]}
    found = named & set(recipe.pools)
    for name, pool in recipe.pools.items():
        before = pool.renamed_from
        if before is not None and (before in named or not named <= set(recipe.pools)):
            found.add(name)
    return found


def manifest_pool(
    holding: Mapping[str, Any], pool: PoolState, recipe: Recipe, *, is_exchanged: bool = False
) -> Plain:
    """What a manifest says of one pool; ``holding`` is what identifies it.

    Documents begun in the first epoch are not all distinct ones: those ``recipe audit`` counts exactly.
    """
    counts, fraction = pool.counts, recipe.simulated_fraction
    read = counts["body"] - counts["overlap"] + sum(pool.dropped.values())
    stock = None if is_exchanged else holding.get("stock")
    if stock and fraction is not None:
        stock = -(-stock * fraction.numerator // fraction.denominator)
    return {
        **holding,
        "epoch": pool.cursor.epoch,
        "epoch_seed": recipe.seed + pool.cursor.epoch,
        "epochs_read": f"{read / stock:.4f}" if stock else None,
        "documents_begun": counts["documents"],
        "documents_begun_in_first_epoch": counts["distinct"],
        "tokens": {
            **{kind: counts[kind] for kind in ("spent", "owed", *KINDS)},
            **({SEPARATORS: counts[SEPARATORS]} if counts[SEPARATORS] else {}),
        },
        "sequences": counts["sequences"],
        "dropped": dict(sorted(pool.dropped.items())),
    }
