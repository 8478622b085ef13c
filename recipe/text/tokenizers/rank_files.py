"""Rank files: the tokens of a byte-level BPE in the order in which they are merged, and what goes with them.

Two layouts are read: lines of a token in base64 and its rank (``*.tiktoken``; also a ``tokenizer.model`` of
such lines), and the pair ``vocab.bpe`` + ``encoder.json`` of GPT-2. Neither says how a text is split, which
marks there are, or whether it is normalised first: of the sets that are known by their content this is known,
of any other one a file beside it says so (``NAME.json`` beside ``NAME``).
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from recipe.text.tokenizers.kind import COMMON_EOS, refused

PAIR = ("vocab.bpe", "encoder.json")
_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} [0-9]+\r?\n")
_WORDS = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|NUMBER| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
    r"\s+(?!\S)|\s"
)
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERNS = {
    "gpt2": r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s",
    "cl100k": _WORDS.replace("NUMBER", r"\p{N}{1,3}+"),
    "qwen": _WORDS.replace("NUMBER", r"\p{N}"),
    "o200k": (
        rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}*{_LOWER}+{_ENDING}|[^\r\n\p{{L}}\p{{N}}]?{_UPPER}+{_LOWER}*{_ENDING}"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    ),
}
"""How a text is split before its parts are merged, by the names people give these rules."""


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """What makes ids of texts."""

    ranks: Mapping[bytes, int]
    pattern: str
    special_tokens: Mapping[str, int] = field(default_factory=dict)
    nfc: bool = False
    """Texts are brought into the Unicode form NFC first."""
    eos: str = ""
    """The mark that ends a document, where it is known."""
    files: tuple[Path, ...] = ()
    """What was read, the file that is named first."""

    @property
    def digest(self) -> str:
        """sha256 of the tokens and ranks, in the layout of a ``*.tiktoken`` file."""
        return digest_of(self.ranks)


@dataclass(frozen=True, kw_only=True)
class Known:
    """What goes with a set of ranks that many people use."""

    pattern: str
    special_tokens: Mapping[str, int]
    nfc: bool = False
    eos: str = "<|endoftext|>"


def _llama3() -> dict[str, int]:
    """The marks of Llama 3's first release."""
    named = {0: "begin_of_text", 1: "end_of_text", 6: "start_header_id", 7: "end_header_id", 9: "eot_id"}
    numbers = [*range(6)[2:], 8, *range(10, 256)]
    reserved = {number: f"reserved_special_token_{k}" for k, number in enumerate(numbers)}
    return {f"<|{name}|>": 128_000 + number for number, name in sorted((named | reserved).items())}


_GPT2 = Known(pattern="gpt2", special_tokens={"<|endoftext|>": 50256})
_FIM = ("<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>")
KNOWN = {
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": _GPT2,  # r50k_base
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": _GPT2,  # p50k_base
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": Known(  # cl100k_base
        pattern="cl100k",
        special_tokens={**{mark: 100257 + k for k, mark in enumerate(_FIM)}, "<|endofprompt|>": 100276},
    ),
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": Known(  # o200k_base
        pattern="o200k", special_tokens={"<|endoftext|>": 199999, "<|endofprompt|>": 200018}
    ),
    "b2b1b8dfb5cc5f024bafc373121c6aba3f66f9a5a0269e243470a1de16a33186": Known(  # Qwen
        pattern="qwen",
        special_tokens={"<|endoftext|>": 151643, "<|im_start|>": 151644, "<|im_end|>": 151645},
        nfc=True,
    ),
    "82e9d31979e92ab929cd544440f129d9ecd797b69e327f80f17e1c50d5551b55": Known(  # Llama 3
        pattern="cl100k", special_tokens=_llama3(), eos="<|end_of_text|>"
    ),
}
"""By the sha256 of the file of ranks."""


def is_rank_file(path: Path) -> bool:
    """Whether a file begins with a token in base64 and its rank, or is one of GPT-2's pair."""
    if path.name in PAIR:
        return all(path.with_name(name).is_file() for name in PAIR)
    with path.open("rb") as file:
        return _LINE.match(file.read(4096)) is not None


def read_ranks(path: Path) -> Ranks:
    """The ranks of a file, with what is known of them or said beside it.

    Raises:
        RecipeError: a damaged file, bytes without a token, or nothing says how texts are split.
    """
    if path.name in PAIR:
        ranks, marks, files = _read_pair(path)
    else:
        ranks, marks, files = _read_lines(path), {}, (path,)
    lacking = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if lacking or len(set(ranks.values())) != len(ranks):
        given = f"no token for the byte {lacking[0]:#04x}" if lacking else "two tokens of one rank"
        raise refused(path, given, "a token for every byte, and one rank each", "fetch the file again")
    known = _said_beside(path, ranks) or KNOWN.get(digest_of(ranks))
    if known is None and path.name in PAIR:
        eos = next((mark for mark in COMMON_EOS if mark in marks), "")
        known = Known(pattern="gpt2", special_tokens=marks, eos=eos)
    if known is None:
        raise refused(
            path,
            "ranks that are not known here",
            f"a file {path.name}.json beside it that says what they do not",
            f'write {{"pattern": "cl100k", "special_tokens": {{"<|endoftext|>": {max(ranks.values()) + 1}}}, '
            f'"normalizer": null}} into it; a pattern is {", ".join(PATTERNS)} or a regular expression',
        )
    if taken := sorted(set(known.special_tokens.values()) & set(ranks.values())):
        raise refused(
            path, f"id {taken[0]} of a mark and of a token", "ids of their own", "correct the marks"
        )
    return Ranks(
        ranks=ranks,
        pattern=PATTERNS.get(known.pattern, known.pattern),
        special_tokens=known.special_tokens,
        nfc=known.nfc,
        eos=known.eos,
        files=(*files, *([beside] if (beside := _beside(path)).is_file() else [])),
    )


def digest_of(ranks: Mapping[bytes, int]) -> str:
    """sha256 of the file that holds these tokens and ranks, in the order of the ranks."""
    lines = (
        b64encode(token) + b" %d\n" % rank for token, rank in sorted(ranks.items(), key=lambda one: one[1])
    )
    return sha256(b"".join(lines)).hexdigest()


def _read_lines(path: Path) -> dict[bytes, int]:
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line:
            continue
        try:
            token, rank = line.split()
            ranks[b64decode(token, validate=True)] = int(rank)
        except (ValueError, Error) as error:
            raise refused(
                path,
                f"line {number}: {line[:60]!r}",
                "a token in base64 and its rank",
                "fetch the file again",
            ) from error
    return ranks


def _read_pair(path: Path) -> tuple[dict[bytes, int], dict[str, int], tuple[Path, ...]]:
    """Ranks, marks and files of GPT-2's pair: merges in one file, ids in the other."""
    merges, ids = (path.with_name(name) for name in PAIR)
    try:
        lines = merges.read_text("utf-8").split("\n")
        stated: dict[str, int] = json.loads(ids.read_text("utf-8"))
        pairs = [line.split(" ") for line in lines if line and not line.startswith("#version")]
        merged = [one + two for one, two in pairs]
        tokens = [*(character for character in CHARACTERS), *merged]
        ranks = {as_bytes(token): stated[token] for token in tokens}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise refused(
            merges, f"{type(error).__name__}: {error}"[:200], f"the merges whose ids {ids.name} has",
            "take both files from the same release",
        ) from error  # fmt: skip
    if [stated[token] for token in merged] != sorted(stated[token] for token in merged):
        raise refused(merges, "merges in another order than the ids", "ids that rise with the merges",
                      "make a tokenizer.json of the two files")  # fmt: skip
    marks = {token: stated[token] for token in stated.keys() - set(tokens)}
    return ranks, marks, (merges, ids)


def _beside(path: Path) -> Path:
    return path.with_name(f"{PAIR[0] if path.name in PAIR else path.name}.json")


def _said_beside(path: Path, ranks: Mapping[bytes, int]) -> Known | None:
    """What the file beside the ranks says, if there is one."""
    place = _beside(path)
    if not place.is_file():
        return None
    try:
        said: Any = json.loads(place.read_text("utf-8"))
        other = sorted(set(said) - {"pattern", "special_tokens", "normalizer", "eos"})
        if other:
            raise ValueError(f"unknown key {other[0]!r}")
        marks = {str(mark): int(number) for mark, number in said.get("special_tokens", {}).items()}
        if said.get("normalizer") not in (None, "NFC"):
            raise ValueError(f"normalizer {said['normalizer']!r}; it is NFC or null")
        eos = str(said.get("eos", ""))
        return Known(
            pattern=str(said["pattern"]), special_tokens=marks, nfc=said.get("normalizer") == "NFC", eos=eos
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise refused(
            place,
            f"{type(error).__name__}: {error}"[:200],
            "an object of pattern, special_tokens, normalizer (NFC or null), eos",
            "correct the file",
        ) from error


def _characters() -> dict[str, int]:
    """The printable characters that stand for the 256 bytes: Latin ones for themselves, else U+0100 on."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in set(shown)]
    return {chr(byte): byte for byte in shown} | {chr(256 + k): byte for k, byte in enumerate(hidden)}


CHARACTERS = _characters()
"""Bytes by the characters that byte-level BPE writes for them."""


def as_bytes(token: str) -> bytes:
    """The bytes of a token that is written in characters for bytes.

    Raises:
        KeyError: another character.

    >>> as_bytes("Ġtoken")
    b' token'
    """
    return bytes(CHARACTERS[character] for character in token)
