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
    known: dict[str, Tokenizer] = {}
    named = recipe.tokenizer.builtin or recipe.tokenizer.path if recipe.tokenizer is not None else None

    def tokenizer_of(pool: Pool) -> Tokenizer | None:
        mark = pool.card.tokenizer
        if mark in known:
            return known[mark]
        if spec is not None:
            found = load_tokenizer(spec, eos=pool.eos if spec != "bytes" else None)
            if mark in (None, found.fingerprint()):
                return found
            return None
        for one in dict.fromkeys([*([named] if named else []), "bytes"]):
            with suppress(RecipeError):
                found = load_tokenizer(Path(one).expanduser(), eos=pool.eos if one != "bytes" else None)
                if mark == found.fingerprint():
                    known[mark] = found
                    return found
        return None

    return tokenizer_of
