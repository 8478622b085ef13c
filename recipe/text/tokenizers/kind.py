"""What every tokenizer is: ids of texts and back, its size, its end of a document, its fingerprint."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from recipe.errors import RecipeError

#: Written as the end of a document where nothing else is said; the first one a vocabulary holds.
COMMON_EOS = (
    "<|endoftext|>",
    "</s>",
    "<|end_of_text|>",
    "<｜end▁of▁sentence｜>",
    "<eos>",
    "<|eos|>",
    "[EOS]",
)

#: Texts whose ids are part of a fingerprint: what tokenizers do differently.
PROBES = (
    "",
    " ",
    "Hello world",
    " leading and  double   spaces\t\ttabs\r\n\r\n\n\nlines ",
    "2024-05-01 12345678 3.14159 1,000,000 ¥3,499.00",
    "don't DON'T I'm we'll café cafe\u0301 \u2126 \uf900 ﬁ",
    "def f(x):\n    return sorted(xs)[3, 1, 3]  # комментарий",
    "保留重复元素。中文，标点！「引号」",
    "مرحبا שלום हिन्दी ไทย 한국어 カタカナ",
    "👩‍👩‍👧 🇨🇳 \U0001f600\ufffd\u200b\u00a0",
    "<|endoftext|></s><s>[CLS][UNK]<unk><|im_start|>",
    "".join(map(chr, range(256))),
)

SPECIALS = "#specials"
"""At the end of a path: special tokens written in a text are those tokens."""


class Tokenizer(Protocol):
    """What turns text into ids. No mark is added to a text: `prepare` stores the EOS once a document."""

    name: str
    """What a person calls it; not part of its identity."""
    kind: str
    """``bytes``, ``tokenizer.json``, ``tiktoken`` or ``sentencepiece``."""
    vocab_size: int
    """Rows of the input and output tables: the largest id, added tokens included, plus 1."""
    eos: int
    """Id stored after every document."""
    spec: str
    """What `load_tokenizer` takes to give this one again (with ``eos``)."""
    files: tuple[Path, ...]
    """What it was read from, the file that `load_tokenizer` takes first; none where it is built in."""

    most_whole: int
    """UTF-8 bytes that are encoded together at most where a text cannot be taken apart; 1.3 GiB, at worst."""

    @property
    def normaliser(self) -> str:
        """What is done to a text before it is split, in a word; ``none`` where nothing is."""
        ...

    def pieces(self, text: str) -> Iterator[str]:
        """The text in pieces of about `LONG` characters, whose ids one after another are its own.

        A piece is longer, or all of the text, where that is not known. All but the first are for `later`.
        """
        ...

    @property
    def later(self) -> Tokenizer:
        """What encodes pieces that no text begins with: itself, where nothing is put in front of texts."""
        ...

    def encode_batch(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        """Ids of each text; special tokens written in a text are text, unless it was loaded otherwise."""
        ...

    def offsets(self, text: str) -> NDArray[np.int64]:
        """int64[num_tokens, 2]: half-open character span of each token of the text."""
        ...

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        """The text of some ids; what is no whole character becomes U+FFFD."""
        ...

    def normalise(self, text: str) -> str:
        """The text that ``decode(encode(text))`` gives back."""
        ...

    def fingerprint(self) -> str:
        """Content hash of the vocabulary, the rules, and the ids of probe texts."""
        ...


def fingerprint_of(tokenizer: Tokenizer, content: Mapping[str, Any]) -> str:
    """Hash of what makes ids: its content, and how it treats the probes."""
    probes = [ids.tolist() for ids in tokenizer.encode_batch(PROBES)]
    data = json.dumps(
        {**content, "probes": probes}, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return blake2b(data.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()


def find_eos(vocabulary: Mapping[str, int], added: set[str], eos: str | int | None, declared: str) -> int:
    """The id that ends a document: as asked, as declared beside the file, or the one common name.

    Args:
        vocabulary: ids of all tokens.
        added: those that are no pieces of text.
        eos: a token or an id, as asked.
        declared: the token that is stated beside the file; empty: none is.

    Raises:
        RecipeError: it is not clear.
    """
    if isinstance(eos, str) and eos in vocabulary:
        return vocabulary[eos]
    if isinstance(eos, str) and eos.isdecimal():
        eos = int(eos)
    if isinstance(eos, int) and eos in set(vocabulary.values()):
        return eos
    # a common name among the plain entries may be a piece of text (``</s>`` in HTML): added ones come first
    found = [token for token in COMMON_EOS if token in added]
    found = found or [token for token in COMMON_EOS if token in vocabulary]
    if eos is None and declared in vocabulary and (not found or declared in found):
        return vocabulary[declared]
    if eos is None and len(found) == 1:
        return vocabulary[found[0]]
    raise RecipeError.single(
        "tokenizer",
        "eos",
        given=eos if eos is not None else (" and ".join(found) or "none of the common names"),
        expected="a token of the vocabulary that ends a document",
        fix="name it with --eos TOKEN",
    )


def refused(path: Path, given: str, expected: str, fix: str) -> RecipeError:
    """A path that is no tokenizer, or not a whole one."""
    return RecipeError.single("tokenizer", str(path), given=given, expected=expected, fix=fix)
