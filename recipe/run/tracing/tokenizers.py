"""The tokenizers that a run's pools were made with, as far as they are on this machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.pools import Pool
from recipe.pools.same_tokenizer import Stated, stated_by
from recipe.text.tokenizers import Tokenizer, load_tokenizer

TokenizerOf = Callable[[Pool], Tokenizer | None]


def tokenizers(recipe: Recipe, spec: str | None) -> TokenizerOf:
    """The tokenizer that a pool was made with, if it is on this machine.

    Args:
        recipe: its ``tokenizer`` is looked at where nothing else is said.
        spec: ``bytes`` or a path.

    Raises:
        RecipeError: (when called) ``spec`` is no tokenizer.
    """
    known: dict[tuple[str | None, int | None], Tokenizer | None] = {}
    named = recipe.tokenizer.builtin or recipe.tokenizer.path if recipe.tokenizer is not None else None

    def tokenizer_of(pool: Pool) -> Tokenizer | None:
        key = pool.card.tokenizer, pool.eos
        if key not in known:
            known[key] = _named(pool, named) if spec is None else _asked(pool, spec)
        return known[key]

    return tokenizer_of


def said_for(pools: Mapping[str, Pool], spec: str) -> Stated:
    """The tokenizer that somebody says made the pools that do not say theirs.

    An end mark makes it no other tokenizer: it is taken with the mark of the pool that it made, if any.

    Args:
        pools: of which some state a tokenizer.
        spec: ``bytes`` or a path.

    Raises:
        RecipeError: nothing there, or no tokenizer.
    """
    ends = {pool.eos: one for pool in pools.values() if (one := stated_by(pool)).fingerprint is not None}
    for eos, one in ends.items():
        with suppress(RecipeError):
            if load_tokenizer(spec, eos=eos if spec != "bytes" else None).fingerprint() == one.fingerprint:
                return one
    found = load_tokenizer(spec)
    return Stated(found.fingerprint(), found.vocab_size)


def _asked(pool: Pool, spec: str) -> Tokenizer | None:
    """The tokenizer that was named, unless the pool says that another one made it."""
    found = load_tokenizer(spec, eos=pool.eos if spec != "bytes" else None)
    return found if pool.card.tokenizer in (None, found.fingerprint()) else None


def _named(pool: Pool, named: str | None) -> Tokenizer | None:
    """The recipe's tokenizer, or that of bytes, if the pool says that it was made with it."""
    for one in dict.fromkeys([*([named] if named else []), "bytes"]):
        with suppress(RecipeError):
            found = load_tokenizer(Path(one).expanduser(), eos=pool.eos if one != "bytes" else None)
            if pool.card.tokenizer == found.fingerprint():
                return found
    return None
