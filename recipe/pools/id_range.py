"""The range of ids that token files hold: the largest, and the first that a model has no row for."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recipe.errors import Problem
from recipe.pools.card import MaxId
from recipe.pools.stored_tokens import StoredTokens


def largest_id(tokens: StoredTokens) -> MaxId | None:
    """The largest id and its first place; None if there are no tokens. Everything is read."""
    largest = -1
    found = None
    for part, start, ids in tokens.stretches():
        at = int(ids.argmax())
        if int(ids[at]) > largest:
            largest = int(ids[at])
            found = MaxId(id=largest, part=tokens.layout.file_name(part), position=start + at)
    return found


def outside(tokens: StoredTokens, limit: int) -> list[MaxId]:
    """The first place of an id at or above ``limit``, and that of a negative one, where there are any."""
    places = (_first_outside(tokens, limit, high) for high in (True, False))
    return [place for place in places if place is not None]


def id_problem(name: str, folder: Path, place: MaxId, limit: int) -> Problem:
    """That the pool ``name`` holds an id which a model of ``limit`` ids has no row for."""
    return Problem(
        f"pools.{name}",
        f"id {place.id} at position {place.position} of {folder / place.part}",
        f"ids in 0..{limit - 1}",
        "check that the pool was tokenised with the model's tokenizer, or correct model.vocab_size",
    )


def _first_outside(tokens: StoredTokens, limit: int, high: bool) -> MaxId | None:
    for part, start, ids in tokens.stretches():
        if int(ids.max()) < limit if high else int(ids.min()) >= 0:
            continue
        at = int(np.argmax(ids >= limit if high else ids < 0))
        return MaxId(id=int(ids[at]), part=tokens.layout.file_name(part), position=start + at)
    return None
