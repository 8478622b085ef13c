"""Held-out pools: the same sequences at every evaluation, read apart from the run's own stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np
import torch

from recipe.config import Recipe, recipe_from_plain, settle
from recipe.errors import Problem, RecipeError
from recipe.mixing.opening import close_pools, open_pools
from recipe.mixing.stream import Stream
from recipe.run.holdings import Holdings, tokenizers

ROWS = 8
"""Sequences that are measured at once."""


def read_held_out(
    recipe: Recipe, holdings: Holdings, paths: Mapping[str, str], where: str, most: int
) -> dict[str, list[dict[str, torch.Tensor]]]:
    """The sequences of held-out pools, in memory: whole documents as the run's longest stage would cut them.

    They are read by a stream of their own, so that no token of the run's is spent and no evaluation moves
    another.

    Args:
        recipe: of the run: its longest context, labels and pools root.
        holdings: the run's pools.
        paths: folders by area.
        where: dotted key of ``paths``.
        most: sequences of an area.

    Returns:
        By area, batches of at most ``ROWS`` sequences.

    Raises:
        RecipeError: a pool that cannot be opened, is one of the run's, or was made with another tokenizer.
    """
    found = {}
    for area, path in paths.items():
        own = _recipe(recipe, path, f"{where}.{area}", most)
        pools = open_pools(own)
        try:
            held, place = pools["held"], f"{where}.{area}"
            problems = _problems(held, holdings, place)
            if recipe.model is not None and recipe.model.vocab_size is not None:
                problems += held.check_ids(recipe.model.vocab_size)
            if not problems and held.stock < 2:
                fix = "prepare it from text that is there, or leave it out"
                problems.append(Problem(place, f"{held.stock} tokens", "text with labels to measure", fix))
            if problems:
                raise RecipeError("held-out pools", problems)
            settled = settle(own, {"held": held.stock}, {"held": held.num_units})
            found[area] = list(_batches(Stream(settled, pools), most))
            if not any(bool((batch["labels"] >= 0).any()) for batch in found[area]):
                raise RecipeError.single(
                    "held-out pools",
                    place,
                    given="no label",
                    expected="labels to measure",
                    fix="use longer text",
                )
        finally:
            close_pools(pools.values())
    return found


def _recipe(recipe: Recipe, path: str, where: str, most: int) -> Recipe:
    stage = {
        "steps": most,
        "context": max(stage.context for stage in recipe.stages.values()),
        "batch": {"sequences": 1},
        "weights": {"held": 1},
    }
    plain: dict[str, Any] = {
        "seed": 0,
        "labels": recipe.labels,
        "pools": {"held": {"path": path}},
        "on_exhausted": "stop",
        "max_epochs": 1,
        "stages": {"held": stage},
    }
    if recipe.pools_root is not None:
        plain["pools_root"] = recipe.pools_root
    return recipe_from_plain(plain, source=where)


def _problems(held: Any, holdings: Holdings, where: str) -> list[Problem]:
    problems = []
    for name, pool in holdings.items():
        if pool.fingerprint == held.fingerprint:
            expected, fix = "text that the run does not train on", "split it off before anything else"
            problems.append(Problem(where, f"the content of pool {name!r}", expected, fix))
    known = tokenizers(holdings)
    if held.card.tokenizer is not None and known and held.card.tokenizer not in known:
        fix = "prepare it with the tokenizer of the run's pools"
        problems.append(Problem(where, f"tokenizer {held.card.tokenizer[:12]}", "the run's tokenizer", fix))
    return problems


def _batches(stream: Stream, most: int) -> Iterator[dict[str, torch.Tensor]]:
    """Sequences in the stream's order, some at a time."""
    rows = (
        {name: np.array(array) for name, array in batch.items()} for _, batch in stream.batches(read_ahead=0)
    )
    left = islice(rows, most)
    while some := list(islice(left, ROWS)):
        yield {name: torch.from_numpy(np.concatenate([row[name] for row in some])) for name in some[0]}
