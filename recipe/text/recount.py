"""How many tokens a pool's text has under other tokenizers: counted, or estimated from drawn documents.

A token quota means nothing without its tokenizer: after another one is chosen, every pool is counted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from hashlib import blake2b
from typing import Any

import numpy as np

from recipe.maths.intervals import estimate
from recipe.pools.pool import Pool
from recipe.text.pool_texts import text_of
from recipe.text.tokenizers import Tokenizer

DRAWS = 1000
"""Draws of a sample, unless somebody says otherwise."""
_CHARACTERS = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Recount:
    """Tokens of a pool's text under one tokenizer; end marks are not counted."""

    tokens: int
    low: int
    high: int
    """The 95 % interval; both are ``tokens`` where all was counted."""
    bytes: int
    """Of the text, in UTF-8; estimated like the tokens."""

    def to_plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True, slots=True)
class Counted:
    """One pool under several tokenizers."""

    pool: str
    documents: int
    stock: int
    """Tokens as the pool has them, without marks."""
    draws: int | None
    """Draws of the sample; None: every document was counted."""
    looked_at: int
    """Documents that were tokenised."""
    recounts: tuple[Recount, ...]

    def to_plain(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "recounts": [one.to_plain() for one in self.recounts]}


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """Which documents are looked at."""

    draws: int | None = DRAWS
    """At least 3; None: every document."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse a sample that says nothing of its own spread."""
        if self.draws is not None and self.draws < 3:
            raise ValueError(f"draws is at least 3, not {self.draws}")


See = Callable[[int, str, Sequence[Any]], None]
"""Called with every document that is looked at: its number, its text, its ids under each tokenizer."""


def recount(
    pool: Pool,
    made_by: Tokenizer,
    others: Sequence[Tokenizer],
    sampling: Sampling,
    see: See = lambda number, text, ids: None,
) -> Counted:
    """Tokens of the pool's text under each of the tokenizers.

    Documents are drawn with replacement, each as often as it has stored tokens: every draw estimates the
    total by the document's ratio of new to stored tokens, whose mean is without bias; its interval is
    Student's, over the draws. A pool with no more documents than draws is counted whole.

    Args:
        pool: whose text is counted.
        made_by: the tokenizer that made it.
        others: those to count under.
        sampling: how many draws, and their seed.
        see: told of every document that is looked at.

    Source:
        M. H. Hansen and W. N. Hurwitz, "On the theory of sampling from finite populations", Annals of
        Mathematical Statistics 14, 1943.
    """
    draws = sampling.draws
    if draws is None or pool.num_documents <= draws or not pool.num_tokens:
        return _exact(pool, made_by, others, see)
    numbers = _drawn(pool, draws, sampling.seed)
    looked_at = sorted(set(numbers))
    found = dict(zip(looked_at, _counts(pool, made_by, others, looked_at, see), strict=True))
    stored = {number: int(pool.offsets[number + 1] - pool.offsets[number]) for number in looked_at}
    totals = [  # what each draw says of the whole, for bytes and for each tokenizer
        [Fraction(found[number][k] * pool.num_tokens // stored[number]) for number in numbers]
        for k in range(1 + len(others))
    ]
    size, *means = [estimate(values) for values in totals]
    recounts = []
    for mean in means:
        half = round(mean.half_width or 0)
        tokens = round(mean.mean)
        limits = {"low": max(tokens - half, 0), "high": tokens + half}
        recounts.append(Recount(tokens=tokens, bytes=round(size.mean), **limits))
    return _counted(pool, draws, len(looked_at), recounts)


def _exact(pool: Pool, made_by: Tokenizer, others: Sequence[Tokenizer], see: See) -> Counted:
    sums = [0] * (1 + len(others))
    for counts in _counts(pool, made_by, others, range(pool.num_documents), see):
        sums = [a + b for a, b in zip(sums, counts, strict=True)]
    recounts = [Recount(tokens=tokens, low=tokens, high=tokens, bytes=sums[0]) for tokens in sums[1:]]
    return _counted(pool, None, pool.num_documents, recounts)


def _counted(pool: Pool, draws: int | None, looked_at: int, recounts: list[Recount]) -> Counted:
    return Counted(
        pool=pool.name,
        documents=pool.num_documents,
        stock=pool.stock,
        draws=draws,
        looked_at=looked_at,
        recounts=tuple(recounts),
    )


def _drawn(pool: Pool, draws: int, seed: int) -> list[int]:
    """Documents of so many stored tokens, drawn evenly from all of the pool."""
    digests = (blake2b(f"recount {seed} {draw}".encode(), digest_size=8).digest() for draw in range(draws))
    positions = [int.from_bytes(digest) * pool.num_tokens >> 64 for digest in digests]
    found: list[int] = (np.searchsorted(pool.offsets, positions, side="right") - 1).tolist()
    return found


def _counts(
    pool: Pool, made_by: Tokenizer, others: Sequence[Tokenizer], numbers: Sequence[int], see: See
) -> Iterator[list[int]]:
    """Bytes, then tokens under each tokenizer, of each document; about a million characters at once."""
    batch: list[tuple[int, str]] = []
    size = 0
    for number in numbers:
        text = text_of(pool, made_by, number)
        batch.append((number, text))
        size += len(text)
        if size >= _CHARACTERS:
            yield from _counted_batch(batch, others, see)
            batch, size = [], 0
    yield from _counted_batch(batch, others, see)


def _counted_batch(
    batch: Sequence[tuple[int, str]], others: Sequence[Tokenizer], see: See
) -> Iterator[list[int]]:
    texts = [text for _, text in batch]
    encoded = [tokenizer.encode_batch(texts) for tokenizer in others]
    for (number, text), *ids in zip(batch, *encoded, strict=True):
        see(number, text, ids)
        yield [len(text.encode()), *map(len, ids)]
