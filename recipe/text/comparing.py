"""Tokenizers held against each other on the same text: counts, digits, what comes back, rows of tables."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError
from recipe.pools.pool import Pool
from recipe.text.recount import Counted, Sampling, recount
from recipe.text.tokenizers import PROBES, Tokenizer
from recipe.text.vocabulary import token_bytes

SAMPLES = ("保留重复元素。", "sorted(xs)", "[3, 1, 3]")
"""Texts that are always compared: what vocabularies differ in most."""
DIGITS = ("2024", " 2024", "12345678", "3.14159", "1,000,000")
_SHOWN = 60
_CHARACTERS = 1 << 20


@dataclass(slots=True)
class _Record:
    """What became of the texts under one tokenizer."""

    texts: int = 0
    exact: int = 0
    """Texts that came back as they were."""
    normalised: int = 0
    """Texts that came back as the tokenizer's own normalisation of them, and not as they were."""
    lost: list[str] = field(default_factory=list)
    """Beginnings of the first texts that came back as neither."""
    num_lost: int = 0
    digest: Any = field(default_factory=lambda: blake2b(digest_size=16))
    """Of all ids."""

    def see(self, tokenizer: Tokenizer, text: str, ids: NDArray[Any]) -> None:
        """Decode and compare."""
        self.texts += 1
        self.digest.update(np.asarray(ids, np.int64).tobytes() + b"|")
        found = tokenizer.decode(ids)
        if found == text:
            self.exact += 1
        elif found == tokenizer.normalise(text):
            self.normalised += 1
        else:
            self.num_lost += 1
            self.lost += [text[:_SHOWN]] if len(self.lost) < 3 else []


class Comparison:
    """Several tokenizers, and what they have been shown so far."""

    def __init__(self, tokenizers: Sequence[Tokenizer]) -> None:
        """At least one."""
        self.tokenizers = tuple(tokenizers)
        self._records = [_Record() for _ in tokenizers]
        self._bytes = [_pieces_of(tokenizer) for tokenizer in tokenizers]
        self.texts: list[dict[str, Any]] = []
        self.files: list[dict[str, Any]] = []
        self.pools: list[Counted] = []
        for text in PROBES:
            self._see(text)

    def add_text(self, text: str) -> None:
        """Compare one text, with its ids."""
        ids = self._see(text)
        self.texts.append({"text": text, "bytes": len(text.encode()), "ids": [one.tolist() for one in ids]})

    def add_file(self, name: str, texts: Iterable[str]) -> None:
        """Compare all texts of a file together."""
        documents, size, tokens = 0, 0, [0] * len(self.tokenizers)
        for batch in _batches(texts):
            documents += len(batch)
            size += sum(len(text.encode()) for text in batch)
            for place, tokenizer in enumerate(self.tokenizers):
                for text, ids in zip(batch, tokenizer.encode_batch(batch), strict=True):
                    tokens[place] += len(ids)
                    self._records[place].see(tokenizer, text, ids)
        self.files.append({"file": name, "documents": documents, "bytes": size, "tokens": tokens})

    def add_pool(self, pool: Pool, made_by: Tokenizer, sampling: Sampling) -> None:
        """Count a pool's text under every tokenizer, or estimate it from the same drawn documents."""

        def see(number: int, text: str, ids: Sequence[Any]) -> None:
            for record, tokenizer, one in zip(self._records, self.tokenizers, ids, strict=True):
                record.see(tokenizer, text, one)

        self.pools.append(recount(pool, made_by, self.tokenizers, sampling, see))

    def to_plain(self) -> dict[str, Any]:
        """All that was found, as plain values; lists of counts are in the order of the tokenizers."""
        return {
            "tokenizers": [self._tokenizer(place) for place in range(len(self.tokenizers))],
            "texts": [{**one, "tokens": [len(ids) for ids in one["ids"]]} for one in self.texts],
            "digits": [
                {"text": text, "pieces": [self._split(place, text) for place in range(len(self.tokenizers))]}
                for text in DIGITS
            ],
            "files": self.files,
            "pools": [one.to_plain() for one in self.pools],
        }

    def _see(self, text: str) -> list[NDArray[Any]]:
        found = [tokenizer.encode_batch([text])[0] for tokenizer in self.tokenizers]
        for record, tokenizer, ids in zip(self._records, self.tokenizers, found, strict=True):
            record.see(tokenizer, text, ids)
        return found

    def _tokenizer(self, place: int) -> dict[str, Any]:
        one, record = self.tokenizers[place], self._records[place]
        digests = [other.digest.hexdigest() for other in self._records]
        twin = digests.index(digests[place])
        return {
            "name": one.name,
            "spec": one.spec,
            "kind": one.kind,
            "rows": one.vocab_size,
            "eos": one.eos,
            "normaliser": one.normaliser,
            "characters_changed": characters_changed(one),
            "fingerprint": one.fingerprint(),
            "round_trip": {
                "texts": record.texts,
                "exact": record.exact,
                "normalised": record.normalised,
                "lost": record.num_lost,
                "first_lost": record.lost,
            },
            "same_ids_as": twin if twin != place else None,
        }

    def _split(self, place: int, text: str) -> str:
        """The tokens of a text side by side, blanks shown as ``▁``."""
        tokenizer, known = self.tokenizers[place], self._bytes[place]
        ids = tokenizer.encode_batch([text])[0].tolist()
        if known is not None:
            pieces = [known[id].decode("utf-8", "replace") for id in ids]
        else:
            pieces = [text[start:stop] for start, stop in tokenizer.offsets(text).tolist()]
        return "|".join(pieces).replace(" ", "▁")


def characters_changed(tokenizer: Tokenizer) -> int:
    """Characters that, alone, are normalised to something else; of all 1,112,064 there are."""
    if tokenizer.normaliser == "none":
        return 0
    codes = (code for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    return sum(tokenizer.normalise(character) != character for character in map(chr, codes))


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """About a million characters at a time."""
    batch: list[str] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= _CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _pieces_of(tokenizer: Tokenizer) -> list[bytes] | None:
    """Bytes of its tokens, or nothing where its decoder is not known."""
    try:
        return token_bytes(tokenizer)
    except RecipeError:
        return None
