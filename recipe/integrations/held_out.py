"""Held-out pools as data sets for the evaluation of a trainer, counted apart from the run's own tokens.

They are read by themselves: no token of the run's is spent, and its stream does not move.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset

from recipe.config.held_out import held_out_entries
from recipe.integrations.training.heldout import read_held_out
from recipe.run.run import Run
from recipe.run.state import State

Row = dict[str, torch.Tensor]
_COLUMNS = ("input_ids", "labels", "position_ids", "segment_ids", "attention_mask")


class HeldOutRows(Dataset[Row]):
    """Rows of a held-out pool, one an item: the same ones at every evaluation."""

    def __init__(self, batches: Sequence[Mapping[str, torch.Tensor]]) -> None:
        """Of batches in memory, as the stream gives them."""
        self._rows: Row = {name: torch.cat([batch[name] for batch in batches]) for name in _COLUMNS}

    def __len__(self) -> int:
        """Rows."""
        return len(self._rows["input_ids"])

    def __getitem__(self, row: int) -> Row:
        """``input_ids, labels`` int64[context]; ``position_ids, segment_ids`` int32; the mask int8."""
        return {name: array[row] for name, array in self._rows.items()}

    @property
    def num_tokens(self) -> int:
        """Positions that are no padding."""
        return int((self._rows["segment_ids"] >= 0).sum())

    @property
    def num_labels(self) -> int:
        """Positions that carry a label."""
        return int((self._rows["labels"] >= 0).sum())


def held_out_rows(
    run: Run, pools: Mapping[str, str | Path | Mapping[str, Any]], *, most: int = 64
) -> dict[str, HeldOutRows]:
    """Rows of held-out pools by area: windows of the recipe's ``evaluation:``, else of its longest stage.

    Args:
        run: whose labels, context and pools root they have.
        pools: folders by area, such as ``{"news": "pools/news_held_out"}``, or entries as in a recipe's
            ``evaluation.pools``: ``{"news": {"path": "news.bin", "dtype": "uint16", "eos": 0}}``.
        most: rows of an area.

    Raises:
        RecipeError: a pool that cannot be opened, is one of the run's, was made with another tokenizer, or
            gives no label.
    """
    entries = held_out_entries(pools, "held_out")
    holdings = State.from_bytes(run.state()).holdings
    found = read_held_out(run.recipe, holdings, entries, "held_out", most)
    return {area: HeldOutRows(batches) for area, batches in found.items()}
