"""Text → token ids and back: bytes without any download, or any ``tokenizer.json``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tokenizers
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


class Tokenizer(Protocol):
    """What turns text into ids. No mark is added to a text: `prepare` stores the EOS once a document."""

    name: str
    """What a person calls it; not part of its identity."""
    vocab_size: int
    """Rows of the input and output tables: the largest id, added tokens included, plus 1."""
    eos: int
    """Id stored after every document."""
    spec: str
    """What `load_tokenizer` takes to give this one again (with ``eos``)."""

    def encode_batch(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        """Ids of each text; special tokens written in a text are text."""
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


class ByteTokenizer:
    """UTF-8 bytes as ids 0..255, and 256 as the end of a document.

    >>> tokenizer = ByteTokenizer()
    >>> tokenizer.encode_batch(["né"])[0].tolist()
    [110, 195, 169]
    >>> tokenizer.decode([110, 195, 169])
    'né'
    """

    name = "bytes"
    spec = "bytes"
    vocab_size = 257
    eos = 256

    def encode_batch(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        """The bytes of each text, uint8: nothing is copied beside them."""
        return [np.frombuffer(text.encode(), np.uint8) for text in texts]

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
        return _hash({"kind": "bytes", "ids": 257, "probes": _probe(self)})


class JsonTokenizer:
    """A ``tokenizer.json`` as the `tokenizers` library reads it.

    Truncation, padding and the marks of a post-processor are switched off: a text gives its own ids,
    all of them and nothing else.
    """

    def __init__(self, path: Path, *, eos: str | int | None = None) -> None:
        """Read the file; ``path`` may be the folder that holds it.

        Raises:
            RecipeError: no such file, not a tokenizer, or no end of document to be found.
        """
        self.path = path / "tokenizer.json" if path.is_dir() else path
        self.spec = str(path)
        self.name = self.path.parent.name if self.path.name == "tokenizer.json" else self.path.stem
        self._tokenizer = _read(self.path)
        self._tokenizer.encode_special_tokens = True
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        vocabulary = self.vocabulary()
        self.vocab_size = max(vocabulary.values(), default=-1) + 1
        added = {token.content for token in self._tokenizer.get_added_tokens_decoder().values()}
        self.eos = _find_eos(vocabulary, added, eos, self.path)

    def encode_batch(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        """Ids of each text, int32.

        A text is given to the library whole, since cut in two it could get other ids at the cut; while
        it encodes, the library holds about a hundred times the text.
        """
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(encoding.ids, dtype=np.int32) for encoding in encodings]

    def offsets(self, text: str) -> NDArray[np.int64]:
        """Spans as the library gives them: characters of the text before normalisation."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        """Text of the ids, special tokens included."""
        return self._tokenizer.decode(np.asarray(ids).tolist(), skip_special_tokens=False)

    def normalise(self, text: str) -> str:
        """The text after the file's own normaliser (NFC, lower case, …)."""
        normaliser = self._tokenizer.normalizer
        return text if normaliser is None else normaliser.normalize_str(text)

    def content(self) -> dict[str, Any]:
        """What the file says, as the library has read it."""
        content: dict[str, Any] = json.loads(self._tokenizer.to_str())
        return content

    def vocabulary(self) -> dict[str, int]:
        """Ids of all tokens, added ones included."""
        return self._tokenizer.get_vocab(with_added_tokens=True)

    def fingerprint(self) -> str:
        """Hash of all that makes ids, whatever the file's layout, name or place."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        content = self.content()
        for key in ("version", "truncation", "padding", "post_processor"):
            content.pop(key, None)  # what is switched off changes no id
        return _hash({"kind": "json", "content": content, "eos": self.eos, "probes": _probe(self)})


def load_tokenizer(spec: str | Path, *, eos: str | int | None = None) -> Tokenizer:
    """``bytes``, a ``tokenizer.json``, or a folder that holds one.

    Args:
        spec: the word ``bytes`` or a path.
        eos: token (or id) of a document's end; by default the common name the vocabulary holds, or
            what ``tokenizer_config.json`` beside the file says.

    Raises:
        RecipeError: nothing there, not a tokenizer, or the end of a document is not clear.
    """
    if str(spec) == "bytes":
        if eos not in (None, ByteTokenizer.eos):
            raise RecipeError.single(
                "tokenizer", "eos", given=eos, expected="256, or nothing", fix="leave it out for bytes"
            )
        return ByteTokenizer()
    return JsonTokenizer(Path(spec), eos=eos)


def _read(path: Path) -> tokenizers.Tokenizer:
    if not path.is_file():
        raise RecipeError.single(
            "tokenizer",
            str(path),
            given="no such file",
            expected="bytes, a tokenizer.json, or a folder that holds one",
            fix="check the path, or use the built-in tokenizer: bytes",
        )
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare exceptions
        raise RecipeError.single(
            "tokenizer",
            str(path),
            given=str(error)[:200],
            expected="a tokenizer.json that the tokenizers library can read",
            fix="save it again with the library, or check that the file is whole",
        ) from error


def _find_eos(vocabulary: dict[str, int], added: set[str], eos: str | int | None, path: Path) -> int:
    """The id that ends a document: as asked, as declared beside the file, or the one common name."""
    if isinstance(eos, str) and eos in vocabulary:
        return vocabulary[eos]
    if isinstance(eos, str) and eos.isdecimal():
        eos = int(eos)
    if isinstance(eos, int) and eos in set(vocabulary.values()):
        return eos
    # a common name among the plain entries may be a piece of text (``</s>`` in HTML): added ones come first
    found = [token for token in COMMON_EOS if token in added]
    found = found or [token for token in COMMON_EOS if token in vocabulary]
    declared = _declared_eos(path)
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


def _declared_eos(path: Path) -> str:
    """``eos_token`` of the ``tokenizer_config.json`` beside the file, or nothing."""
    try:
        config = json.loads(path.with_name("tokenizer_config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return ""
    token = config.get("eos_token") if isinstance(config, dict) else None
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""


def _probe(tokenizer: Tokenizer) -> list[list[int]]:
    return [ids.tolist() for ids in tokenizer.encode_batch(PROBES)]


def _hash(content: dict[str, Any]) -> str:
    data = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return blake2b(data.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()
