"""The texts of a pool again, from its tokens, by the tokenizer that made it."""

from __future__ import annotations

from pathlib import Path

from recipe.errors import RecipeError
from recipe.pools.pool import Pool
from recipe.text.spelling import spelled
from recipe.text.tokenizers import Tokenizer, load_tokenizer


def maker_of(pool: Pool, spec: str | None, option: str = "--tokenizer") -> Tokenizer:
    """The tokenizer that made a pool.

    Args:
        pool: whose.
        spec: what `load_tokenizer` takes; None: the one that needs no file.
        option: what ``spec`` is called where somebody types it.

    Raises:
        RecipeError: there is none, or it is not the pool's.
    """
    named = spec or "bytes"
    if named == "bytes":
        tokenizer = load_tokenizer(named)
    else:
        tokenizer = load_tokenizer(Path(named).expanduser(), eos=pool.eos)
    made_by, found = pool.card.tokenizer, tokenizer.fingerprint()
    if made_by != found and not (made_by is None and spec is not None):
        raise RecipeError.single(
            f"pool {pool.name}",
            "tokenizer",
            given="nothing" if spec is None else f"{spec}: tokenizer {found}",
            expected=f"{pool.card.tokenizer_name or 'the one'} that made it, {made_by or 'not stated'}",
            fix=f"name it with {option}",
        )
    return tokenizer


def text_of(pool: Pool, tokenizer: Tokenizer, number: int) -> str:
    """The text that a document's tokens spell: the tokenizer's own normalisation of what it was made from.

    Of a document that was erased: nothing.

    Raises:
        RecipeError: ids that the tokenizer does not have.
    """
    if len(pool.erased) and number in pool.erased:
        return ""
    return spelled(pool, tokenizer, number, pool.tokens(number))
