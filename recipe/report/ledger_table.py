"""A run's ledger as a table for analysis: one row per chunk and pool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from recipe.report.spent import KINDS
from recipe.run.ledger import read_tail, surviving


def ledger_table(run: str | Path) -> pd.DataFrame:
    """What every pool was promised and gave in every chunk that counts, first chunk first.

    Chunks that a rewind discarded are left out, so sums over the table are what the loaded weights
    have seen, up to the last chunk on record.

    Args:
        run: the folder of a run.

    Returns:
        a frame with ``stage``, ``chunk``, ``first_step``, ``stop_step``, ``positions`` and ``pool``, then
        whole tokens of that pool in that chunk: ``planned``, ``owed``, ``spent``, ``body``, ``overlap``,
        ``special``, ``padding``, ``labels``, and ``sequences``, ``documents`` and ``dropped``.

    Raises:
        RecipeError: the folder holds no ledger that can be read.
    """
    ledger = Path(run) / "ledger.jsonl"
    chunks = [row.data for row in surviving(ledger, read_tail(ledger)) if row.kind == "chunk"]
    records = [record for chunk in reversed(chunks) for record in _records(chunk)]
    places = ["stage", "chunk", "first_step", "stop_step", "positions", "pool"]
    return pd.DataFrame(records, columns=[*places, *KINDS, "dropped"])


def _records(chunk: dict[str, Any]) -> list[dict[str, Any]]:
    first, stop = chunk["steps"]
    place = {
        "stage": chunk["stage"],
        "chunk": chunk["chunk"],
        "first_step": first,
        "stop_step": stop,
        "positions": chunk["positions"],
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
