"""Which text pools share: documents and tokens of each that another one holds too, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.pools.contents import RANGE_DOCUMENTS, Contents, Equal
from recipe.pools.pool import Pool
from recipe.pools.same_tokenizer import cannot_tell, check_comparable


@dataclass(frozen=True, slots=True)
class Overlap:
    """Row i, column j: of pool i, what pool j holds too; on the diagonal, what is there a second time."""

    pools: tuple[str, ...]
    documents: NDArray[np.int64]
    """int64[n, n]."""
    tokens: NDArray[np.int64]
    """int64[n, n]: body tokens."""
    total_documents: tuple[int, ...]
    total_tokens: tuple[int, ...]
    unchecked: tuple[str, ...] = ()
    """Sentences on pools that do not say their tokenizer."""

    def to_plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        totals = zip(self.pools, self.total_documents, self.total_tokens, strict=True)
        return {
            "pools": [{"name": name, "documents": d, "tokens": t} for name, d, t in totals],
            "documents": self.documents.tolist(),
            "tokens": self.tokens.tolist(),
            "unchecked": list(self.unchecked),
        }


def find_overlap(pools: Sequence[Pool], folder: Path | None = None) -> Overlap:
    """The overlap of pools, by the hashes of their documents' body tokens, erased ones left out.

    Memory: one range of hashes; the rest is in a temporary file, 24 bytes a document, in ``folder``.

    Args:
        pools: with names of their own; token files without a document table are hashed.
        folder: of the temporary file; default: the machine's own.

    Raises:
        RecipeError: pools of different tokenizers, as far as they say or their ids tell: equal tokens are not
            equal texts then.
    """
    check_comparable(pools)
    size = len(pools)
    documents, tokens = np.zeros((size, size), np.int64), np.zeros((size, size), np.int64)
    with Contents(pools, folder) as contents:
        for equal in contents.equal(RANGE_DOCUMENTS):
            _add(contents, equal, documents, tokens)
    counts = tuple(pool.num_documents - len(pool.erased) for pool in pools)
    return Overlap(
        tuple(pool.name for pool in pools), documents, tokens, counts, tuple(pool.stock for pool in pools),
        cannot_tell({pool.name: pool for pool in pools}),
    )  # fmt: skip


def _add(contents: Contents, equal: Equal, documents: NDArray[np.int64], tokens: NDArray[np.int64]) -> None:
    """Count the texts of one range."""
    numbers, texts = equal.numbers, np.repeat(np.arange(len(equal.edges) - 1), np.diff(equal.edges))
    for index, pool in enumerate(contents.pools):
        if len(pool.erased):
            held = ~np.isin(numbers, contents.bases[index] + pool.erased)
            numbers, texts = numbers[held], texts[held]
    pools, lengths = contents.pool_of(numbers), contents.lengths(numbers)
    present = np.zeros((len(equal.edges) - 1, len(contents.pools)), np.bool_)
    present[texts, pools] = True
    for index in range(len(contents.pools)):
        own = pools == index
        shared = present[texts[own]].astype(np.int64)
        more = np.ones(len(shared), np.bool_)  # rising by text: all but the first of each
        more[np.unique(texts[own], return_index=True)[1]] = False
        shared[:, index] = more
        documents[index] += shared.sum(axis=0)
        tokens[index] += lengths[own] @ shared
