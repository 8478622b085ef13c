"""The figures of a trial: what became of every document, how fast, in how much memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from recipe.integrations.corpora.folders import TextGroup
from recipe.integrations.corpora.measured import Measured

Row = Sequence[str]


def pool_figures(groups: Sequence[TextGroup], done: Mapping[str, Measured]) -> list[dict[str, Any]]:
    """One row a group: documents and bytes that were read, and where each document is now."""
    rows = []
    for group in groups:
        step = done[f"prepare {group.name}"]
        splits = step.answer.get("splits") or {group.name: step.answer}
        read = next(iter(splits.values()))["read"]
        kept = [split["documents"] for split in splits.values()]
        tokens = sum(split["tokens"] for split in splits.values())
        rows.append(
            {
                "pool": group.name,
                "files": len(group.files),
                "documents": read["read"],
                "text MB": group.text_bytes / 1e6,
                "trained": 0 if group.is_held_out else kept[0],
                "held out": kept[-1],
                "duplicate": read["duplicate"],
                "empty": read["empty"],
                "quarantined": sum(read["quarantined"].values()),
                "tokens": tokens,
                "bytes/token": group.distinct_text_bytes / max(1, tokens),
                "bytes/document": disk_bytes(splits) / max(1, read["kept"]),
                "seconds": step.seconds,
                "CPU s": step.cpu_seconds,
                "tokens/s": tokens / step.seconds,
                "MB/s": group.text_bytes / 1e6 / step.seconds,
                "MB/CPU s": group.text_bytes / 1e6 / step.cpu_seconds,
                "peak MiB": step.peak_bytes / 2**20,
            }
        )
    return rows


def disk_bytes(splits: Mapping[str, Any]) -> int:
    """What the pools take beside their token files (``.bin`` and ``.idx``) and the record of their making."""
    return sum(
        path.stat().st_size
        for split in splits.values()
        for path in Path(split["path"]).iterdir()
        if path.suffix in (".npy", ".parquet")
    )


def step_figures(done: Mapping[str, Measured]) -> list[dict[str, Any]]:
    """One row a step: seconds, memory, whether its check passed."""
    return [
        {
            "step": name,
            "seconds": one.seconds,
            "CPU s": one.cpu_seconds,
            "peak MiB": one.peak_bytes / 2**20,
            "passed": one.passed,
        }
        for name, one in done.items()
    ]


def overlap_figures(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row for two pools that share a text: documents and tokens of the first."""
    names = [pool["name"] for pool in answer["pools"]]
    return [
        {"pool": one, "holds too": two, "documents": documents, "tokens": answer["tokens"][row][column]}
        for row, one in enumerate(names)
        for column, two in enumerate(names)
        if row < column and (documents := answer["documents"][row][column])
    ]


def unique_figures(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row a pool: what stays of it, and which pools before it have the rest."""
    return [
        {
            "pool": pool["name"],
            "documents": pool["documents"],
            "kept": pool["kept"]["documents"],
            "tokens": pool["kept"]["tokens"],
            "copies of": ", ".join(f"{name} {count}" for name, count in pool["duplicates_of"].items()),
        }
        for pool in answer["pools"]
    ]


def leak_figures(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row a held-out pool: documents and tokens that training reads too."""
    return [
        {
            "held out": name,
            "documents": held["documents"],
            "with a stretch in training": held["leaked_documents"],
            "tokens": held["tokens"],
            "of such stretches": held["leaked_tokens"],
            "found in": ", ".join(f"{pool} {count}" for pool, count in held["found_in"].items() if count),
        }
        for name, held in answer["held"].items()
    ]


def spent_figures(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One row a stage and pool: its share, what that is of the tokens served, and what it got."""
    return [
        {"stage": stage, "pool": pool, "share": one["share"], "owed": one["owed"], "spent": one["spent"]}
        for stage, pools in answer["stages"].items()
        for pool, one in pools.items()
    ]


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as text in columns."""
    if not rows:
        return ""
    shown: list[Row] = [list(rows[0]), *([_text(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    right = [not isinstance(value, str | bool) for value in rows[0].values()]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in shown
    )


def totals(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All groups together."""
    seconds, cpu = sum(row["seconds"] for row in rows), sum(row["CPU s"] for row in rows)
    documents = sum(row["documents"] for row in rows)
    tokens, size = sum(row["tokens"] for row in rows), sum(row["text MB"] for row in rows)
    return {
        "documents": documents, "text MB": size, "tokens": tokens,
        "duplicates": sum(row["duplicate"] for row in rows), "seconds": seconds, "CPU s": cpu,
        "tokens/s": tokens / seconds, "MB/s": size / seconds, "MB/CPU s": size / cpu,
        "peak MiB": max(row["peak MiB"] for row in rows),
    }  # fmt: skip


def page(groups: Sequence[TextGroup], done: Mapping[str, Measured]) -> Iterator[str]:
    """All tables, one after another."""
    pools = pool_figures(groups, done)
    yield f"pools\n{table(pools)}\n\n{table([totals(pools)])}"
    shared = table(overlap_figures(done["overlap"].answer))
    yield f"texts of two pools\n{shared or 'no two pools share one'}"
    yield f"each text once\n{table(unique_figures(done['dedup'].answer))}"
    for when in ("leakage before", "leakage"):
        yield f"held-out text in training: {when}\n{table(leak_figures(done[when].answer))}"
    yield f"spent\n{table(spent_figures(done['run'].answer))}"
    yield f"steps\n{table(step_figures(done))}"


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
