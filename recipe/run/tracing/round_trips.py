"""Which documents of a pool come back: their tokens as the text they were made from.

Windows are cut on token ids, so what a document's ids spell is what training sees of it.

Source:
    Fact of its own for each tokenizer: see `recipe.text.tokenizers.kind.Tokenizer.normalise`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recipe.pools import Pool
from recipe.pools.blocks import document_hash
from recipe.pools.verify import chosen
from recipe.run.tracing.prepared import Prepared
from recipe.text.spelling import spelled
from recipe.text.tokenizers import Tokenizer

EXACT, NORMALISED, LOST = "exact", "normalised", "lost"
AGAIN, OTHERWISE, CHANGED, ERASED = "again", "otherwise", "changed", "erased"
FATES = {
    EXACT: "the text of the source, to the character",
    NORMALISED: "the tokenizer's own normalisation of the source's text",
    LOST: "another text than the source's: the tokens do not give it back",
    CHANGED: "the source holds another text now",
    AGAIN: "no source here: the text of the tokens gives the same tokens again",
    OTHERWISE: "no source here: the text of the tokens gives other tokens",
    ERASED: "withdrawn: its tokens were taken away",
}
_BATCH = 1024
_SHOWN = 5


@dataclass
class RoundTrips:
    """Documents by what came back of them."""

    looked_at: int = 0
    documents: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[Any]] = field(default_factory=dict)
    """Ids of the first few of each kind that is not as it was."""

    def add(self, fate: str, id: Any) -> None:
        """Count a document."""
        self.looked_at += 1
        self.documents[fate] = self.documents.get(fate, 0) + 1
        if fate not in (EXACT, AGAIN, ERASED) and len(shown := self.examples.setdefault(fate, [])) < _SHOWN:
            shown.append(id)

    def to_plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"looked_at": self.looked_at, "documents": self.documents, "examples": self.examples}


def round_trips(
    pool: Pool, tokenizer: Tokenizer, count: int | None, seed: int, roots: Sequence[str | Path] = ()
) -> RoundTrips:
    """What comes back of documents.

    Args:
        pool: whose.
        tokenizer: that made it.
        count: documents to look at, spread evenly over the pool; None: all.
        seed: of the choice.
        roots: folders that held the sources; without them tokens are compared with those of their own text.
    """
    found = RoundTrips()
    prepared, erased = Prepared(pool.layout.folder), set(pool.erased.tolist())
    for numbers in _chosen(pool, count, seed):
        rows = pool.rows(numbers)
        names = {row.document: prepared.name_of(row.source) for row in rows} if roots else {}
        held = prepared.read([name for name in names.values() if name is not None], roots) if roots else {}
        for row in rows:
            if row.document in erased:
                found.add(ERASED, row.id)
                continue
            name = names.get(row.document)
            source = None if name is None else held.get(name, (None, None))[1]
            text = spelled(pool, tokenizer, row.document, pool.tokens(row.document))
            fate = _fate(tokenizer, text, row.content_hash, None if source is None else source.text)
            if fate == CHANGED and name is not None and not prepared.knows(name):
                # of a pool that this one extends: how that one read its files is not on record here
                fate = _fate(tokenizer, text, row.content_hash, None)
            found.add(fate, row.id)
    return found


def _fate(tokenizer: Tokenizer, text: str, content_hash: str, source: str | None) -> str:
    given = text if source is None else source
    is_same = document_hash(tokenizer.encode_batch([given])[0]) == content_hash
    if source is None:
        return AGAIN if is_same else OTHERWISE
    if not is_same:
        return CHANGED
    if text == source:
        return EXACT
    return NORMALISED if text == tokenizer.normalise(source) else LOST


def _chosen(pool: Pool, count: int | None, seed: int) -> Iterator[list[int]]:
    """Numbers of documents, some at a time: one from each of equal stretches of the pool."""
    total = pool.num_documents
    if count is None or count >= total:
        yield from (list(range(at, min(at + _BATCH, total))) for at in range(0, total, _BATCH))
        return
    picks = chosen(total, count, seed)
    yield from (picks[at : at + _BATCH].tolist() for at in range(0, count, _BATCH))
