"""Held-out pools: the same sequences at every evaluation, read apart from the run's own stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
import torch

from recipe.config import Recipe, recipe_from_plain, settle
from recipe.config.evaluation import HeldOutConfig
from recipe.errors import Problem, RecipeError
from recipe.mixing.opening import close_pools
from recipe.mixing.stream import Stream
from recipe.pools import Pool
from recipe.run.evaluation import Scoring, open_entry, open_held_out, scored_rows
from recipe.run.holdings import Holdings

ROWS = 8
"""Sequences that are measured at once."""


def read_held_out(
    recipe: Recipe, holdings: Holdings, entries: Mapping[str, HeldOutConfig], where: str, most: int
) -> dict[str, list[dict[str, torch.Tensor]]]:
    """The sequences of held-out pools, in memory.

    They are the windows of the recipe's ``evaluation:``; without it, whole documents as the run's longest
    stage would cut and pack them. No token of the run's is spent, and no evaluation moves another.

    Args:
        recipe: of the run: its longest context, labels and pools root.
        holdings: the run's pools.
        entries: where each is, by area.
        where: dotted key of ``entries``.
        most: sequences of an area.

    Returns:
        By area, batches of at most ``ROWS`` sequences.

    Raises:
        RecipeError: a pool that cannot be opened, is one of the run's, was made with another tokenizer, or
            gives no label.
    """
    opened = open_held_out(recipe, entries, holdings, where=where)
    try:
        found = {area: list(_sequences(recipe, (pool, entries[area]), most)) for area, pool in opened.items()}
    finally:
        close_pools(opened.values())
    fix = "prepare it from text that is there, or leave it out"
    problems = [
        Problem(f"{where}.{area}", "no label", "text with labels to measure", fix)
        for area, batches in found.items()
        if not any(bool((batch["labels"] >= 0).any()) for batch in batches)
    ]
    if problems:
        raise RecipeError("held-out pools", problems)
    return found


def _sequences(
    recipe: Recipe, opened: tuple[Pool, HeldOutConfig], most: int
) -> Iterator[dict[str, torch.Tensor]]:
    (held, entry), rule = opened, recipe.scoring_rule
    if rule is not None:
        for rows in scored_rows(held, Scoring(rule, recipe.labels), at_once=ROWS, most=most):
            yield {name: torch.from_numpy(array) for name, array in rows.items()}
    elif held.stock:
        own = _recipe(recipe, entry.model_copy(update={"path": str(held.path)}), most)
        settled = settle(own, {"held": held.stock}, {"held": held.num_units})
        with open_entry(entry, held.path, "held") as same:  # orders are keyed on names: areas may be renamed
            yield from _batches(Stream(settled, {"held": same}), most)


def _recipe(recipe: Recipe, entry: HeldOutConfig, most: int) -> Recipe:
    stage = {
        "steps": most,
        "context": recipe.longest_context,
        "batch": {"sequences": 1},
        "weights": {"held": 1},
    }
    plain: dict[str, Any] = {
        "seed": 0,
        "labels": recipe.labels,
        "pools": {"held": entry.model_dump(exclude_none=True)},
        "on_exhausted": "stop",
        "max_epochs": 1,
        "stages": {"held": stage},
    }
    return recipe_from_plain(plain, source="held-out pools")


def _batches(stream: Stream, most: int) -> Iterator[dict[str, torch.Tensor]]:
    """Sequences in the stream's order, some at a time."""
    rows = (
        {name: np.array(array) for name, array in batch.items()} for _, batch in stream.batches(read_ahead=0)
    )
    left = islice(rows, most)
    while some := list(islice(left, ROWS)):
        yield {name: torch.from_numpy(np.concatenate([row[name] for row in some])) for name in some[0]}
