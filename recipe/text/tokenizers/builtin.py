"""The tokenizer that needs no file: UTF-8 bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.text.tokenizers.kind import COMMON_EOS, fingerprint_of
from recipe.text.tokenizers.splitting import LONG


class ByteTokenizer:
    """UTF-8 bytes as ids 0..255, and 256 as the end of a document.

    >>> tokenizer = ByteTokenizer()
    >>> tokenizer.encode_batch(["né"])[0].tolist()
    [110, 195, 169]
    >>> tokenizer.decode([110, 195, 169])
    'né'
    """

    name = "bytes"
    kind = "bytes"
    spec = "bytes"
    normaliser = "none"
    files: tuple[Path, ...] = ()
    vocab_size = 257
    eos = 256
    most_whole = 1 << 30

    def encode_batch(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        """The bytes of each text, uint8: nothing is copied beside them."""
        return [np.frombuffer(text.encode(), np.uint8) for text in texts]

    def pieces(self, text: str) -> Iterator[str]:
        """Cut anywhere between two characters."""
        return (text[start : start + LONG] for start in range(0, len(text), LONG))

    @property
    def later(self) -> ByteTokenizer:
        """Itself."""
        return self

    def offsets(self, text: str) -> NDArray[np.int64]:
        """Every byte of a character has the character's span."""
        data = np.frombuffer(text.encode(), np.uint8)
        characters = np.cumsum((data & 0xC0) != 0x80) - 1
        return np.stack([characters, characters + 1], axis=1).astype(np.int64)

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        """Bytes as UTF-8; the end of a document is shown as ``<|endoftext|>``."""
        values = np.asarray(ids, dtype=np.int64)
        if values.size and not (values.min() >= 0 and values.max() < self.vocab_size):
            raise ValueError(f"ids lie in 0..{self.vocab_size - 1}, not {values.min()}..{values.max()}")
        pieces = np.split(values, np.flatnonzero(values == self.eos))
        texts = [piece[piece < 256].astype(np.uint8).tobytes().decode(errors="replace") for piece in pieces]
        return COMMON_EOS[0].join(texts)

    def normalise(self, text: str) -> str:
        """The text itself: bytes lose nothing."""
        return text

    def fingerprint(self) -> str:
        """Constant: there is one such tokenizer."""
        return fingerprint_of(self, {"kind": "bytes", "ids": 257})
