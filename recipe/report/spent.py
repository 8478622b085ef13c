"""What was spent against what was promised, from a run's ledger rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from rich.console import Group

from recipe.config import Recipe
from recipe.mixing.epochs import PASSED_OVER, epochs_read
from recipe.report.figures import amount, percent, ratio, readings, signed
from recipe.report.tables import table

Counts = Counter[str]
KINDS = (
    "planned",
    "owed",
    "spent",
    "body",
    "overlap",
    "special",
    "padding",
    "labels",
    "sequences",
    "documents",
)

BEGUN = (
    "begun: documents whose first token was served, in every epoch anew; "
    "recipe audit counts those of which any was read"
)
"""What the tables of ``recipe run`` and ``recipe status`` mean by documents."""
EPOCHS = (
    "epochs: tokens served fresh, or dropped while they were read, over the stock of the pool as it is now; "
    "what a skip\nor a change of the pool passed over is not among them"
)


def spent_by_stage(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Counts]]:
    """Sums of the chunk rows: ``{stage: {pool: {kind: tokens}}}``, stages in the order of their steps.

    Tokens that were dropped are counted under ``dropped``, all reasons together.
    """
    chunks = sorted((row for row in rows if row["kind"] == "chunk"), key=lambda row: int(row["steps"][0]))
    stages: dict[str, dict[str, Counts]] = {}
    for row in chunks:
        pools = stages.setdefault(row["stage"], {})
        for name, values in row["pools"].items():
            counts = pools.setdefault(name, Counter())
            counts.update({kind: int(values[kind]) for kind in KINDS if kind in values})
            counts["dropped"] += sum(values.get("dropped", {}).values())
            counts["passed over"] += sum(values.get("dropped", {}).get(why, 0) for why in PASSED_OVER)
    return stages


def spent_to_plain(recipe: Recipe, rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """By stage and pool: the share as an exact fraction, and whole tokens promised and spent."""
    return {
        stage: {
            pool: {"share": str(share), "owed": pools[pool]["owed"], "spent": pools[pool]["spent"]}
            for pool, share in recipe.shares(stage).items()
            if pool in pools
        }
        for stage, pools in spent_by_stage(rows).items()
    }


def bound(context: int, num_pools: int) -> int:
    """The most tokens that a pool can be away from its share at any moment of a stage.

    >>> bound(2048, 5), bound(2048, 1)
    (1792, 0)
    """
    return context * (2 * num_pools - 3) // (2 * num_pools - 2) if num_pools > 1 else 0


def spent_tables(
    recipe: Recipe, rows: Iterable[Mapping[str, Any]], stock: Mapping[str, int]
) -> Iterator[Group]:
    """One table a stage, and one of the whole run."""
    rows = list(rows)
    stages = spent_by_stage(rows)
    for name, pools in stages.items():
        versions = {row.get("recipe") for row in rows if row["kind"] == "chunk" and row["stage"] == name}
        changed = len(versions) > 1 or len(recipe.legs(name)) > 1
        yield _changed_table(recipe, name, pools) if changed else _stage_table(recipe, name, pools)
    yield _run_table(recipe, stages, stock)


def _stage_table(recipe: Recipe, name: str, pools: Mapping[str, Counts]) -> Group:
    shares = recipe.shares(name)
    context = recipe.stages[name].context
    drawn = [pool for pool in recipe.pools if shares[pool] > 0]
    total = _sum(pools.get(pool, Counter()) for pool in drawn)
    rows = []
    for pool in drawn:
        counts = pools.get(pool, Counter())
        rows.append(
            (
                pool,
                percent(shares[pool]),
                ratio(counts["spent"], total["spent"]),
                amount(counts["owed"]),
                amount(counts["spent"]),
                signed(counts["spent"] - counts["owed"]),
            )
        )
    return table(
        f"stage {name}: context {context:,}",
        ("pool", "share promised", "share reached", "tokens promised", "tokens spent", "difference"),
        rows,
        total=("all", "", "", amount(total["owed"]), amount(total["spent"]), "0"),
        caption=(
            f"at no moment is a pool more than {bound(context, len(drawn)):,} tokens (under one context) "
            f"from its share (counted: {recipe.count})"
        ),
    )


def _changed_table(recipe: Recipe, name: str, pools: Mapping[str, Counts]) -> Group:
    """A stage whose shares changed on the way: what was promised is what all its shares came to."""
    context = recipe.stages[name].context
    drawn = [pool for pool in recipe.pools if recipe.shares(name)[pool] or pools.get(pool, Counter())["owed"]]
    total = _sum(pools.get(pool, Counter()) for pool in drawn)
    rows = []
    for pool in drawn:
        counts = pools.get(pool, Counter())
        rows.append(
            (
                pool,
                ratio(counts["owed"], total["owed"]),
                ratio(counts["spent"], total["spent"]),
                percent(recipe.shares(name)[pool]),
                amount(counts["owed"]),
                amount(counts["spent"]),
                signed(counts["spent"] - counts["owed"]),
            )
        )
    return table(
        f"stage {name}: context {context:,}; its shares changed on the way",
        ("pool", "promised", "reached", "share at the end", "tokens promised", "tokens spent", "difference"),
        rows,
        total=("all", "", "", "", amount(total["owed"]), amount(total["spent"]), "0"),
        caption=(
            "promised is what the shares in force came to; at no moment is a pool "
            f"{2 * context:,} tokens (two contexts) from it (counted: {recipe.count})"
        ),
    )


def _run_table(recipe: Recipe, stages: Mapping[str, Mapping[str, Counts]], stock: Mapping[str, int]) -> Group:
    rows = []
    total: Counts = Counter()
    for pool in recipe.pools:
        counts = _sum(pools[pool] for pools in stages.values() if pool in pools)
        total.update(counts)
        dropped = {"read": counts["dropped"] - counts["passed over"]}
        epochs = epochs_read(recipe, stock.get(pool, 0), counts["body"] - counts["overlap"], dropped)
        rows.append((pool, *_kinds(counts), readings(epochs)))
    columns = (
        "pool",
        "sequences",
        "documents\nbegun",
        "body",
        "of it overlap",
        "special",
        "padding",
        "dropped",
        "epochs",
    )
    return table(
        "the whole run", columns, rows, total=("all", *_kinds(total), ""), caption=f"{BEGUN}\n{EPOCHS}"
    )


def _sum(parts: Iterable[Counts]) -> Counts:
    """Counters added up, negative numbers kept (a chunk's owed can be -1)."""
    total: Counts = Counter()
    for part in parts:
        total.update(part)
    return total


def _kinds(counts: Counts) -> tuple[str, ...]:
    positions = counts["body"] + counts["special"] + counts["padding"]
    return (
        f"{counts['sequences']:,}",
        f"{counts['documents']:,}",
        amount(counts["body"]),
        ratio(counts["overlap"], counts["body"]),
        amount(counts["special"]),
        ratio(counts["padding"], positions),
        amount(counts["dropped"]),
    )
