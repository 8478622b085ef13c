"""A ``tokenizer.json``, and the folders that hold one, by the `tokenizers` library."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from numpy.typing import NDArray

from recipe.text.tokenizers.blanks import blank_seam, found_tokens, without_first
from recipe.text.tokenizers.equal_ranks import EqualRanks, equal_ranks
from recipe.text.tokenizers.kind import SPECIALS, find_eos, fingerprint_of, refused
from recipe.text.tokenizers.splitting import LONG, pieces, seam_of

QUICK = 1 << 23
"""Characters after which it pays to find out, in some seconds, whether ranks give the same ids."""
MUCH = 1 << 25
"""Characters to come before which it pays to find out once, for all processes."""
CONFIG_NAME = "tokenizer_config.json"
_SHOWN = 3


class JsonTokenizer:
    """A ``tokenizer.json`` as the `tokenizers` library reads it.

    Truncation, padding and the marks of a post-processor are switched off: a text gives its own ids,
    all of them and nothing else.
    """

    kind = "tokenizer.json"
    most_whole = 4 << 20

    def __init__(self, path: Path, *, eos: str | int | None = None, specials: bool = False) -> None:
        """Read the file; ``path`` may be the folder that holds it.

        Args:
            path: of the file or the folder.
            eos: token (or id) of a document's end.
            specials: special tokens written in a text are those tokens.

        Raises:
            RecipeError: no such file, not a tokenizer, not what its folder says, or no end of document
                to be found.
        """
        self.path = path / "tokenizer.json" if path.is_dir() else path
        self.spec = f"{path}{SPECIALS if specials else ''}"
        folder = self.path.absolute().parent.name
        self.name = folder if self.path.name == "tokenizer.json" else self.path.stem
        self._tokenizer = _read(self.path)
        self._specials, self._encoded = specials, 0
        self._tokenizer.encode_special_tokens = not specials
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        vocabulary = self.vocabulary()
        self.vocab_size = max(vocabulary.values(), default=-1) + 1
        config = read_config(self.path)
        _check_added(self.path, config, vocabulary)
        added = {token.content for token in self._tokenizer.get_added_tokens_decoder().values()}
        self.eos = find_eos(vocabulary, added, eos, declared_token(config, "eos_token"))
        beside = self.path.with_name(CONFIG_NAME)
        self.files: tuple[Path, ...] = (self.path, beside) if beside.is_file() else (self.path,)

    def __getstate__(self) -> dict[str, Any]:
        """Without the fingerprint: another process finds out for itself what it has got."""
        return {key: value for key, value in self.__dict__.items() if key not in ("_fingerprint", "later")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """As it was: the library forgets that special tokens of a text are text."""
        self.__dict__.update(state)
        self._tokenizer.encode_special_tokens = not self._specials

    @property
    def normaliser(self) -> str:
        """Types of the file's normaliser, joined by ``+``."""
        return "+".join(_types(self.content().get("normalizer"))) or "none"

    def encode_batch(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        """Ids of each text, int32.

        While it encodes, the library holds about a hundred times the text. A long text is therefore given
        to it in pieces, one after another, where the file's rules have no say across their edges; it is
        given whole else, since cut anywhere it could get other ids at the cut.

        After some millions of characters texts go to `tiktoken` where that is known to give the same ids.
        """
        self._encoded += sum(map(len, texts))
        quick = self._quick if self._encoded > QUICK else None
        if quick is None:
            return self._encode(texts)
        return [self._encode([text])[0] if (ids := quick.encode(text)) is None else ids for text in texts]

    def _encode(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        if any(len(text) > LONG for text in texts) and self._seam is not None:
            return [np.concatenate(list(self._in_pieces(text))) for text in texts]
        return self._ids(texts)

    def pieces(self, text: str) -> Iterator[str]:
        """Cut where the file's rules have no say across; else the text itself."""
        whole = self._seam is None or any(mark in text for mark in self._marks)
        return iter([text]) if whole or self._seam is None else pieces(text, LONG, self._seam)

    def _in_pieces(self, text: str) -> Iterator[NDArray[Any]]:
        first = True
        for part in self.pieces(text):
            yield (self if first else self.later)._ids([part])[0]
            first = False

    @cached_property
    def later(self) -> JsonTokenizer:
        """The same file without what its normaliser puts in front of each text."""
        changed = without_first(self.content())
        if changed is None:
            return self
        later = copy(self)
        later._tokenizer = tokenizers.Tokenizer.from_str(json.dumps(changed))
        later._tokenizer.encode_special_tokens = not self._specials
        return later

    def expect(self, characters: int) -> None:
        """Be told how much will be encoded, here or in processes to which this is sent."""
        if characters > MUCH and self._quick is not None:
            self._encoded = max(self._encoded, QUICK)

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

    def _ids(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [np.array(encoding.ids, dtype=np.int32) for encoding in encodings]

    @cached_property
    def _quick(self) -> EqualRanks | None:
        return equal_ranks(self.content(), specials=self._specials)

    @cached_property
    def _seam(self) -> re.Pattern[str] | None:
        content = self.content()
        by_bytes = seam_of(content, specials=self._specials)
        return by_bytes or blank_seam(content, self.later.normalise, specials=self._specials)

    @cached_property
    def _marks(self) -> list[str]:
        """Behind each of these something is put in front once more: a text that holds one is not cut."""
        marks = [token["content"] for token in found_tokens(self.content(), self._specials)]
        return [] if self.later is self else marks

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
        asked = {"special_tokens": "ids"} if self._specials else {}
        return fingerprint_of(self, {"kind": "json", "content": content, "eos": self.eos, **asked})


def read_config(path: Path) -> dict[str, Any]:
    """The ``tokenizer_config.json`` beside a file; empty where there is none that can be read."""
    try:
        config = json.loads(path.with_name(CONFIG_NAME).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return config if isinstance(config, dict) else {}


def declared_token(config: dict[str, Any], key: str) -> str:
    """A token that a ``tokenizer_config.json`` names, or nothing."""
    token = config.get(key)
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else ""


def _read(path: Path) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare exceptions
        raise refused(
            path,
            str(error)[:200],
            "a tokenizer.json that the tokenizers library can read",
            "save it again with the library, or check that the file is whole",
        ) from error


def _check_added(path: Path, config: dict[str, Any], vocabulary: dict[str, int]) -> None:
    """`AutoTokenizer` adds the tokens that the configuration lists: the file must have them already."""
    listed = config.get("added_tokens_decoder")
    listed = listed if isinstance(listed, dict) else {}
    stated = {number: declared_token(listed, number) for number in listed}
    other = [
        f"{token!r} as {number}" for number, token in stated.items() if str(vocabulary.get(token)) != number
    ]
    if other:
        more = f" and {len(other) - _SHOWN} more" if len(other) > _SHOWN else ""
        raise refused(
            path,
            f"{CONFIG_NAME} beside it has {', '.join(other[:_SHOWN])}{more}, the file has not",
            "the same added tokens in both",
            "write the folder anew: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)",
        )


def _types(normaliser: Any) -> list[str]:
    """Types of a normaliser and of its parts."""
    if not isinstance(normaliser, dict):
        return []
    if normaliser.get("type") == "Sequence":
        return [name for part in normaliser["normalizers"] for name in _types(part)]
    return [str(normaliser.get("type"))]
