"""Keys of positions by a tag of their document, for :func:`recipe.integrations.torch.losses_by`."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from recipe.integrations.torch.losses import PoolLosses, losses_by
from recipe.mixing.dealing import dealt_rows
from recipe.pools import Pool
from recipe.pools.table import DocumentTable
from recipe.run.row_documents import segment_documents
from recipe.run.stream import RunStream

UNTAGGED = "(untagged)"
"""What stands for documents without the tag; key 0."""


class TagKeys:
    """Values of one tag (language, licence, source ...), numbered as they are met in this process.

    Ranks meet them in other orders: let all be given the same ``values`` where losses are reduced over ranks.
    """

    def __init__(self, stream: RunStream, tag: str, values: tuple[str, ...] = ()) -> None:
        """Look up a tag of the documents of a stream; ``values`` are numbered first, in their order."""
        self.tag = tag
        self._stream = stream
        self._numbers = {value: number for number, value in enumerate(dict.fromkeys((UNTAGGED, *values)))}
        self._texts: dict[str | None, int] = {None: 0}
        self._tables = [_table(pool) for pool in stream.ground.pools]

    @property
    def values(self) -> tuple[str, ...]:
        """The values met, by their keys."""
        return tuple(self._numbers)

    def keys(
        self, step: int, batch: Mapping[str, torch.Tensor], deal: tuple[int, int, int | None] = (0, 1, None)
    ) -> torch.Tensor:
        """int64[rows, context]: the key of every position's document; -1 in padding.

        Args:
            step: of the batch.
            batch: ``pool`` and ``segment_ids`` of a rank's rows in that step, as dealt, and ``rows``
                where it has them.
            deal: the batch's dp_rank, dp_size, micro_batch; not used where it has ``rows``.

        Raises:
            ValueError: the rows are not those of a batch dealt so, or are one segment each.
        """
        rows = batch["rows"].cpu().numpy() if "rows" in batch else self._dealt(step, deal)
        pools, device = batch["pool"].cpu().numpy(), batch["segment_ids"].device
        if len(rows) != len(pools):
            raise ValueError(f"a batch of {len(pools)} rows, and {len(rows)} of step {step} are dealt")
        table = torch.from_numpy(self._of(pools, segment_documents(self._stream, step, rows))).to(device)
        segments = batch["segment_ids"].to(torch.int64)
        return torch.where(segments >= 0, table.gather(1, segments.clamp(min=0)), -1)

    def losses(
        self,
        token_losses: torch.Tensor,
        batch: Mapping[str, torch.Tensor],
        step: int,
        deal: tuple[int, int, int | None] = (0, 1, None),
    ) -> PoolLosses:
        """Losses of a batch by the value of the tag: entry k is of ``values[k]``."""
        keys = self.keys(step, batch, deal)
        return losses_by(token_losses, batch["labels"], keys, len(self._numbers))

    def _dealt(self, step: int, deal: tuple[int, int, int | None]) -> NDArray[np.int64]:
        order = self._stream.order(step, deal[1], deal[2])
        dealt: NDArray[np.int64] = order[dealt_rows(len(order), *deal)]
        return dealt

    def _of(self, pools: NDArray[np.int64], documents: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64[rows, segments]: keys of documents of the rows' pools."""
        keys = np.zeros(documents.shape, np.int64)
        for pool in np.unique(pools).tolist():
            table, held = self._tables[pool], (pools == pool)[:, None] & (documents >= 0)
            if table is None:
                continue
            distinct, back = np.unique(documents[held], return_inverse=True)
            texts = table.read(distinct, ("tags",))["tags"].combine_chunks().dictionary_encode()
            of_text = np.array([self._number(text) for text in texts.dictionary.to_pylist()] + [0], np.int64)
            codes = texts.indices.fill_null(len(of_text) - 1).to_numpy()
            keys[held] = of_text[codes][back]
        return keys

    def _number(self, text: str | None) -> int:
        """The key of a document's tags, as its table has them."""
        if text not in self._texts:
            value = json.loads(str(text)).get(self.tag)
            name = UNTAGGED if value is None else value if isinstance(value, str) else json.dumps(value)
            self._texts[text] = self._numbers.setdefault(name, len(self._numbers))
        return self._texts[text]


def _table(pool: Pool) -> DocumentTable | None:
    path = pool.layout.table
    return None if path is None else DocumentTable(path)
