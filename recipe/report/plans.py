"""What a recipe will draw, for a person: one table a stage, one of the pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from rich.console import Group

from recipe.report.families import family_tables
from recipe.report.figures import amount, percent, ratio, readings, signed
from recipe.report.tables import table

Plain = Mapping[str, Any]
_ESTIMATED = (
    "estimated from whole blocks; a stage that goes on inside a block cuts what is left of it anew, "
    "in shorter pieces: --exact walks the run"
)
_WALKED = "walked exactly: what the stages are shown to read is what the run will read"


def plan_tables(plain: Plain) -> Iterator[Group]:
    """Tables of a plan's plain form, the one that ``recipe plan --json`` prints."""
    for name, stage in plain["stages"].items():
        yield _stage_table(name, stage, plain["pools"])
        if any(row["epoch"] for row in stage["pools"].values()):
            yield _epoch_table(name, stage)
        if any("align_moved" in row["epoch"] for row in stage["pools"].values()):
            yield _alignment_table(name, stage)
        if any("duplicate_pieces" in row["epoch"] for row in stage["pools"].values()):
            yield _duplicates_table(name, stage)
        if stage["packing"]:
            yield _packing_table(name, stage["packing"])
    yield from family_tables(plain)
    estimated = _ESTIMATED if len(plain["stages"]) > 1 else ""
    yield _pool_table(plain["pools"], _WALKED if plain["exact"] else estimated)


def _stage_table(name: str, stage: Plain, pools: Plain) -> Group:
    """Pools that are drawn, then groups in brackets: a group's line repeats what its pools hold."""
    allotment = stage["chunk_allotment"]
    stock_only = [pool for pool in stage["pools"] if pools[pool]["measured_tokens"] is None]
    is_weighted = "effective_share" in stage
    rows = _pool_rows(stage, stock_only)
    rows += [
        (f"[{group}]", percent(Fraction(share)), *[""] * (10 if is_weighted else 8))
        for group, share in stage["groups"].items()
        if Fraction(share) > 0
    ]
    ramp = stage["ramp"]
    columns = (
        *("pool", "share" if ramp is None else "mean share"),
        *(("objective", "loss weight") if is_weighted else ()),
        "of a chunk" if ramp is None else "first chunk",
        *("tokens", "need", "sequences", "epochs", "overlap", "padding", "dropped"),
    )
    return table(
        f"stage {name}: {amount(stage['tokens'])} positions, {amount(stage['positions'])} in "
        f"{stage['steps']:,} whole steps, context {stage['context']:,}, chunk {amount(stage['chunk'])}",
        columns,
        rows,
        total=(
            "all",
            *[""] * (3 if is_weighted else 1),
            f"{sum(allotment.values()):,}",
            amount(sum(row["tokens"] for row in stage["pools"].values())),
            amount(sum(row["need"] for row in stage["pools"].values())),
            *[""] * 5,
        ),
        caption="; ".join(
            [
                *([] if ramp is None else [_ramp_text(ramp)]),
                *_loss_text(stage),
                *_transformed_text(stage),
                *_stock_text(stock_only),
            ]
        ),
    )


def _pool_rows(stage: Plain, stock_only: Sequence[str]) -> list[tuple[str, ...]]:
    """A line for each pool that is drawn; of those with a stock alone nothing is known of sequences."""
    return [
        (
            pool,
            percent(Fraction(row["share"])),
            *(_weight(row) if "effective_share" in stage else ()),
            f"{stage['chunk_allotment'][pool]:,}",
            amount(row["tokens"]),
            amount(row["need"]),
            f"{row['sequences']:,}",
            readings(row["epochs"]),
            *(["–"] * 3 if pool in stock_only else _handling(row, stage["context"])),
        )
        for pool, row in stage["pools"].items()
        if Fraction(row["share"]) > 0
    ]


def _weight(row: Plain) -> tuple[str, str]:
    """What the loss counts of a pool, and what a label of it weighs: over a ramp from what to what."""
    ends = [row[key] for key in ("loss_weight_at_first", "loss_weight") if key in row]
    return percent(Fraction(row["objective"])), " → ".join(f"{float(Fraction(end)):.4g}" for end in ends)


def _loss_text(stage: Plain) -> list[str]:
    if "effective_share" not in stage:
        return []
    worth = f"{stage['effective_share']:.1%}"
    return [f"labels weighted so are worth {worth} as many without weights, if pools vary alike"]


def _transformed_text(stage: Plain) -> list[str]:
    """What transforms are expected to choose."""
    found = []
    for pool, row in stage["pools"].items():
        if "transformed" in row:
            pieces, tokens = row["transformed"]["pieces"], row["transformed"]["tokens"]
            part = ratio(row["epoch"]["transformed_tokens"], row["epoch"]["body"])
            found.append(
                f"filled in the middle: {pool}, about {pieces:,} pieces, {amount(tokens)} tokens ({part})"
            )
    return found


def _ramp_text(ramp: Plain) -> str:
    """From which shares a stage goes over to its own, and how."""
    ends = {pool: [Fraction(share) for share in both] for pool, both in ramp["pools"].items()}
    told = [f"{pool} {percent(was)} → {percent(own)}" for pool, (was, own) in ends.items() if was != own]
    what = ", ".join(told) or "the shares stay as they are"
    return f"ramps over {amount(ramp['over'])} positions in {ramp['steps']:,} steps: {what}"


def _stock_text(pools: Sequence[str]) -> list[str]:
    return [f"planned from stock alone, as full sequences: {', '.join(pools)}"] if pools else []


def _handling(row: Plain, context: int) -> list[str]:
    return [
        amount(row["overlap"]),
        ratio(row["padding"], row["sequences"] * context),
        amount(sum(row["dropped"].values())),
    ]


def _epoch_table(name: str, stage: Plain) -> Group:
    """What one whole reading of every pool is made of."""
    rows, leaves_out = [], any("separators" in planned["epoch"] for planned in stage["pools"].values())
    for pool, planned in stage["pools"].items():
        epoch = planned["epoch"]
        if not epoch:
            continue
        fresh = epoch["body"] - epoch["overlap"]
        dropped = sum(tokens for kind, tokens in epoch.items() if kind.startswith("dropped_"))
        rows.append(
            (
                pool,
                f"{epoch['sequences']:,}",
                amount(epoch["body"]),
                amount(epoch["overlap"]),
                f"{epoch['body'] / fresh:.3f}" if fresh else "–",
                amount(epoch["special"]),
                amount(epoch["padding"]),
                amount(dropped),
                *([amount(epoch.get("separators", 0))] if leaves_out else []),
            )
        )
    usual = ("pool", "sequences", "body", "overlap", "reads a token", "special", "padding", "dropped")
    columns = (*usual, *(("end marks left out",) if leaves_out else ()))
    return table(f"stage {name}: one epoch of each pool", columns, rows)


def _alignment_table(name: str, stage: Plain) -> Group:
    """What alignment does to one whole reading of every pool that has it."""
    counted, more = ("moved", "unaligned", "starts"), ("pieces", "sequences", "padding")
    rows = []
    for pool, row in stage["pools"].items():
        epoch = row["epoch"]
        if "align_moved" in epoch:
            cuts = [f"{epoch[f'align_{key}']:,}" for key in counted]
            rows.append((pool, *cuts, *(f"{epoch[f'align_{key}']:+,}" for key in more)))
    columns = ("pool", "cuts moved back", "left unaligned", "starts moved", "pieces", "sequences", "padding")
    caption = "one epoch; pieces, sequences and padding against the same rule without alignment"
    return table(f"stage {name}: what alignment costs", columns, rows, caption=caption)


def _duplicates_table(name: str, stage: Plain) -> Group:
    """What repeats in one whole reading of every pool that leaves it out."""
    rows = []
    for pool, row in stage["pools"].items():
        epoch = row["epoch"]
        if "duplicate_pieces" in epoch:
            tokens = epoch.get("dropped_duplicate", 0)
            fresh = epoch["body"] - epoch["overlap"]
            part = ratio(tokens, fresh + tokens) if tokens else "–"
            rows.append((pool, f"{epoch['duplicate_pieces']:,}", f"{tokens:,}", part))
    columns = ("pool", "windows dropped", "tokens dropped", "of what would be read")
    caption = "one epoch; windows that repeat what stands earlier in their document or group"
    return table(f"stage {name}: duplicates", columns, rows, caption=caption)


def _packing_table(name: str, methods: Plain) -> Group:
    return table(
        f"stage {name}: packing, this method first",
        ("method", "padding", "documents cut"),
        (
            (method, f"{row['padding']:.3%}", f"{row['cut_documents']:,.0f}")
            for method, row in methods.items()
        ),
    )


def _pool_table(pools: Plain, caption: str) -> Group:
    rows = []
    for name, row in pools.items():
        gap = row["gap_tokens"]
        rows.append(
            (
                name,
                amount(row["stock_tokens"]),
                _known(row["declared_tokens"]),
                _known(row["measured_tokens"]),
                "–" if gap is None else signed(gap),
                amount(row["tokens"]),
                readings(row["epochs"]),
                readings(row["max_epochs"]),
                "never" if row["exhausted_at"] is None else f"at {amount(row['exhausted_at'])}",
            )
        )
    columns = ("pool", "stock", "declared", "measured", "gap", "tokens", "epochs", "allowed", "runs out")
    return table("pools over the whole run", columns, rows, caption=caption)


def _known(tokens: int | None) -> str:
    return "–" if tokens is None else amount(tokens)
