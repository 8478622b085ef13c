"""The bytes of every token of a tokenizer: what a row of ids looks like without decoding it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from recipe.errors import RecipeError
from recipe.text.tokenizers import (
    ByteTokenizer,
    JsonTokenizer,
    RankTokenizer,
    SentencePieceTokenizer,
    Tokenizer,
)
from recipe.text.tokenizers.rank_files import CHARACTERS, as_bytes

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
Spelling = Callable[[str], str | bytes]


def token_bytes(tokenizer: Tokenizer) -> list[bytes]:
    """What each id stands for inside a text, as bytes: joined, they are the text that `decode` gives.

    What a decoder does at a text's first token alone (a space taken away) is left out, and so is what it
    tidies up (the space before a full stop). Ids that no token has, and the mark of bytes, are empty.

    Returns:
        ``vocab_size`` entries, by id.

    Raises:
        RecipeError: the tokenizer's file decodes by rules that are not known here.

    >>> token_bytes(ByteTokenizer())[65], token_bytes(ByteTokenizer())[256]
    (b'A', b'')
    """
    if isinstance(tokenizer, ByteTokenizer):
        return [bytes([value]) for value in range(256)] + [b""]
    if isinstance(tokenizer, RankTokenizer | SentencePieceTokenizer):
        return tokenizer.token_bytes()
    if not isinstance(tokenizer, JsonTokenizer):
        raise TypeError(f"a tokenizer of load_tokenizer, not {type(tokenizer).__name__}")
    content, vocabulary = tokenizer.content(), tokenizer.vocabulary()
    steps = list(_steps(content.get("decoder"), tokenizer))
    added = {token["id"] for token in content.get("added_tokens", ())}
    found = [b""] * tokenizer.vocab_size
    for token, number in vocabulary.items():
        found[number] = token.encode("utf-8", "replace") if number in added else _spelt(token, steps)
    return found


def _spelt(token: str, steps: list[Spelling]) -> bytes:
    text: str | bytes = token
    for step in steps:
        if isinstance(text, bytes):
            return text
        text = step(text)
    return text if isinstance(text, bytes) else text.encode("utf-8", "replace")


def _steps(decoder: dict[str, Any] | None, tokenizer: JsonTokenizer) -> Iterator[Spelling]:
    """What a decoder does to each token, one after another."""
    if decoder is None:
        yield lambda token: " " + token  # without a decoder tokens are joined by spaces
        return
    kind = decoder["type"]
    if kind == "Sequence":
        for part in decoder["decoders"]:
            yield from _steps(part, tokenizer)
    elif kind == "WordPiece":
        prefix = decoder["prefix"]
        yield lambda token: token.removeprefix(prefix) if token.startswith(prefix) else " " + token
    elif kind in ("ByteLevel", "ByteFallback"):
        yield _from_byte_level if kind == "ByteLevel" else _from_fallback
    elif (pair := _replaced(decoder)) is not None:
        old, new = pair
        yield lambda token: token.replace(old, new)
    elif kind not in ("Fuse", "Strip"):  # these two change nothing inside a text
        raise RecipeError.single(
            "tokenizer",
            str(tokenizer.path),
            given=f"a decoder of type {kind}",
            expected="ByteLevel, ByteFallback, Metaspace, Replace of a text, WordPiece or BPEDecoder",
            fix="cut without `align`, or at sections: what its tokens spell is not known",
        )


def _replaced(decoder: dict[str, Any]) -> tuple[str, str] | None:
    """What a decoder that replaces one text by another takes and gives."""
    if decoder["type"] == "Metaspace":
        return decoder["replacement"], " "
    if decoder["type"] == "BPEDecoder":
        return decoder["suffix"], " "
    if decoder["type"] == "Replace" and "String" in decoder["pattern"]:
        return decoder["pattern"]["String"], decoder["content"]
    return None


def _from_byte_level(token: str) -> str | bytes:
    """Bytes of a token of byte-level BPE; one with any other character is taken as it is written."""
    return as_bytes(token) if all(character in CHARACTERS for character in token) else token


def _from_fallback(token: str) -> str | bytes:
    found = _BYTE_TOKEN.fullmatch(token)
    return token if found is None else bytes([int(found[1], 16)])
