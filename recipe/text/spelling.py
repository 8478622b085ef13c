"""What ids of a pool spell, or that they are another tokenizer's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from recipe.errors import ContentError
from recipe.pools.pool import Pool

if TYPE_CHECKING:
    from recipe.text.tokenizers import Tokenizer


def spelled(pool: Pool, tokenizer: Tokenizer, number: int, ids: NDArray[Any]) -> str:
    """The text of some ids of a document.

    Raises:
        ContentError: ids that the tokenizer does not have: it is not the pool's.
    """
    try:
        if len(ids) and not (int(ids.min()) >= 0 and int(ids.max()) < tokenizer.vocab_size):
            raise ValueError(f"ids {ids.min()}..{ids.max()}")
        return tokenizer.decode(ids)
    except ValueError as error:
        raise ContentError.single(
            f"pool {pool.name}",
            "tokenizer",
            given=f"{tokenizer.spec}, for document {number} of {pool.path} with ids {ids.min()}..{ids.max()}",
            expected=f"the tokenizer of the pool: this one has the ids 0..{tokenizer.vocab_size - 1}",
            fix="name the tokenizer that made these ids: it is another one",
        ) from error
