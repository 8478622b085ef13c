"""Which of the pools in a folder a new recipe trains on, and why not on the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recipe.pools import Pool
from recipe.pools.versions import held_out_side, superseded


@dataclass(frozen=True, slots=True)
class Choice:
    """Pools that are not trained on, by path."""

    left_out: dict[str, str]
    """Why."""
    held_out: Sequence[str]
    """Those of them that can be measured on: sides of the splits whose other sides are trained on."""


def choose_pools(found: Mapping[str, Pool]) -> Choice:
    """Leave out what is empty, an older version of another, held out, or of a tokenizer that few have.

    Args:
        found: pools by path.
    """
    left_out = {path: "empty: no tokens" for path, pool in found.items() if not pool.stock}
    left = {path: pool for path, pool in found.items() if path not in left_out}
    newest = superseded(left)
    left_out |= {path: f"another version of {other}, which is the newest" for path, other in newest.items()}
    sides = {path: held_out_side(pool.card.source) for path, pool in left.items() if path not in newest}
    held = {path: side for path, side in sides.items() if side is not None}
    left_out |= {path: f"held out: the side {side} of a split" for path, side in held.items()}
    left = {path: pool for path, pool in found.items() if path not in left_out}
    common = _common_tokenizer(list(left.values()))
    left_out |= {
        path: f"another tokenizer ({_called(pool)}) than that of most ({_called(common)})"
        for path, pool in left.items()
        if common is not None and pool.card.tokenizer not in (None, common.card.tokenizer)
    }
    fits = None if common is None else common.card.tokenizer
    return Choice(left_out, [p for p in held if fits is None or found[p].card.tokenizer in (None, fits)])


def _common_tokenizer(pools: Sequence[Pool]) -> Pool | None:
    """A pool of the tokenizer that most pools have; of as many, the one with most tokens."""
    known = [pool for pool in pools if pool.card.tokenizer is not None]
    if not known:
        return None
    counts = Counter(pool.card.tokenizer for pool in known)
    tokens = Counter[str | None]()
    for pool in known:
        tokens[pool.card.tokenizer] += pool.stock
    return max(known, key=lambda pool: (counts[pool.card.tokenizer], tokens[pool.card.tokenizer]))


def _called(pool: Pool) -> str:
    return pool.card.tokenizer_name or str(pool.card.tokenizer)[:12]
