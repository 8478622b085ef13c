"""Byte-level BPE from its ranks, by the `tiktoken` package: the fastest way where ranks exist."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.config.extras import how_to_install
from recipe.errors import RecipeError
from recipe.text.tokenizers.composing import composed, composed_spans
from recipe.text.tokenizers.hugging_face import declared_token, read_config
from recipe.text.tokenizers.kind import SPECIALS, find_eos, fingerprint_of
from recipe.text.tokenizers.rank_files import Ranks, read_ranks
from recipe.text.tokenizers.splitting import LONG, pieces, ranks_seam

_PLAIN_NAMES = ("tokenizer.model", "tiktoken.model", "vocab.bpe", "encoder.json")
"""Files that are called by their folder."""


class RankTokenizer:
    """Tokens and their ranks, a pattern that splits texts, marks, and whether texts are composed first."""

    kind = "tiktoken"
    most_whole = 16 << 20

    def __init__(self, path: Path, *, eos: str | int | None = None, specials: bool = False) -> None:
        """Read a file of ranks, or one of GPT-2's pair.

        Raises:
            RecipeError: the package is not installed, the file is not whole, nothing says how texts are
                split, or no end of document is to be found.
        """
        tiktoken = _package(path)
        self.ranks: Ranks = read_ranks(path)
        self.files = self.ranks.files
        self.spec = f"{path}{SPECIALS if specials else ''}"
        self.name = path.absolute().parent.name if path.name in _PLAIN_NAMES else path.stem
        self.normaliser = "NFC" if self.ranks.nfc else "none"
        self._specials = specials
        marks = dict(self.ranks.special_tokens)
        self._encoding: Any = tiktoken.Encoding(
            self.name,
            pat_str=self.ranks.pattern,
            mergeable_ranks=dict(self.ranks.ranks),
            special_tokens=marks,
        )
        self.vocab_size = max([*self.ranks.ranks.values(), *marks.values()]) + 1
        declared = declared_token(read_config(path), "eos_token") or self.ranks.eos
        self.eos = find_eos(self._names(eos), set(marks), eos, declared)

    def __getstate__(self) -> dict[str, Any]:
        """Without the fingerprint: another process finds out for itself what it has got."""
        return {key: value for key, value in self.__dict__.items() if key != "_fingerprint"}

    def encode_batch(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        """Ids of each text, uint32; a text is held about once beside its ids."""
        return [self._encode(self.normalise(text)) for text in texts]

    def pieces(self, text: str) -> Iterator[str]:
        """Cut where the pattern is known never to reach across; else the text itself."""
        marks = self.ranks.special_tokens if self._specials else ()
        seam = ranks_seam(self.ranks.pattern, marks)
        return iter([text]) if seam is None else pieces(text, LONG, seam)

    @property
    def later(self) -> RankTokenizer:
        """Itself: nothing is put in front of a text."""
        return self

    def offsets(self, text: str) -> NDArray[np.int64]:
        """The smallest span of whole characters, before normalisation, that holds each token's bytes."""
        form = self.normalise(text)
        data = np.frombuffer(form.encode(), np.uint8)
        character = np.cumsum((data & 0xC0) != 0x80) - 1
        lengths = [
            len(self._encoding.decode_single_token_bytes(number)) for number in self._encode(form).tolist()
        ]
        stops = np.cumsum(lengths, dtype=np.int64)
        first, last = character[stops - np.array(lengths, np.int64)], character[stops - 1]
        if form == text:
            return np.stack([first, last + 1], axis=1).astype(np.int64).reshape(-1, 2)
        spans = composed_spans(text, form)
        return np.stack([spans[first, 0], spans[last, 1]], axis=1).reshape(-1, 2)

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        """Text of the ids, marks included.

        Raises:
            ValueError: an id that no token has.
        """
        try:
            data: bytes = self._encoding.decode_bytes(np.asarray(ids).tolist())
        except (KeyError, OverflowError) as error:
            raise ValueError(f"an id that no token of {self.name} has: {error}") from error
        return data.decode("utf-8", "replace")

    def normalise(self, text: str) -> str:
        """The text in NFC where the ranks were made of such texts, else the text itself."""
        return composed(text) if self.ranks.nfc else text

    def token_bytes(self) -> list[bytes]:
        """Bytes of each token by id, marks as they are written; ids that no token has are empty."""
        found = [b""] * self.vocab_size
        for token, number in self.ranks.ranks.items():
            found[number] = token
        for mark, number in self.ranks.special_tokens.items():
            found[number] = mark.encode()
        return found

    def fingerprint(self) -> str:
        """Hash of tokens, ranks, pattern, marks, normalisation: equal for both layouts of a vocabulary."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        content = {
            "kind": "ranks",
            "ranks": self.ranks.digest,
            "pattern": self.ranks.pattern,
            "marks": dict(self.ranks.special_tokens),
            "normaliser": self.normaliser,
            "eos": self.eos,
        }
        return fingerprint_of(self, {**content, **({"special_tokens": "ids"} if self._specials else {})})

    def _encode(self, text: str) -> NDArray[Any]:
        allowed: Any = "all" if self._specials else set()
        try:
            ids: NDArray[Any] = self._encoding.encode_to_numpy(
                text, allowed_special=allowed, disallowed_special=()
            )
        except ValueError:
            if self._specials:
                raise
            # a million blanks in a row are too many for the matcher of patterns; the other one takes them
            return np.array(self._encoding._encode_only_native_bpe(text), np.uint32)
        return ids

    def _names(self, eos: str | int | None) -> dict[str, int]:
        """Marks, and whatever token is asked for as the end of a document."""
        names = dict(self.ranks.special_tokens)
        if isinstance(eos, str) and (number := self.ranks.ranks.get(eos.encode())) is not None:
            names.setdefault(eos, number)
        number = int(eos) if isinstance(eos, int) or (isinstance(eos, str) and eos.isdecimal()) else -1
        if number in set(self.ranks.ranks.values()):
            names.setdefault("", number)
        return names


def _package(path: Path) -> ModuleType:
    try:
        import tiktoken
    except ImportError as error:
        raise RecipeError.single(
            "tokenizer",
            str(path),
            given="a file of ranks, and tiktoken is not installed",
            expected="the package tiktoken",
            fix=f"{how_to_install('tiktoken')}, or name a tokenizer.json of the same vocabulary",
        ) from error
    return tiktoken
