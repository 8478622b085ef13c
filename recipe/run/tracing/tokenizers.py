"""The tokenizers that a run's pools were made with, as far as they are on this machine."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from recipe.config import Recipe
from recipe.errors import RecipeError
from recipe.pools import Pool
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
