"""How byte-level tokenizers split texts, and where a long text can be taken apart without changing an id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from recipe.text.tokenizers.rank_files import PATTERNS

LONG = 1 << 18
"""Characters of a piece of a long text."""

_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
SPLITS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "cl100k": rf"{_WORDS}|\p{{N}}{{1,3}}|{_REST}",
    "qwen": rf"{_WORDS}|\p{{N}}|{_REST}",
    "o200k": PATTERNS["o200k"],
}
"""How texts are split before pairs are merged, as ``tokenizer.json`` files have it: digits together (gpt2),
by three (cl100k, o200k), or one by one (qwen)."""

_KEEPS_SEAMS = {
    *SPLITS.values(),
    *PATTERNS.values(),
    r"\p{N}{1,3}",
    "[一-龥\u3040-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
}
"""Patterns none of whose matches goes on across a seam, or looks at what is before or behind one."""
_SEAM = re.compile(
    "(?<=[^\\s\u180e\u200b])(?= )"
    "|(?<=[A-Za-z0-9\u3041-\u3094\u30a1-\u30fa\u4e00-\u9fa5])(?=[\n\u3002\uff0c\u3001])"
)
"""A blank behind what is none: it begins a match, or is among blanks; a line's end, a Chinese stop or comma
behind a letter or digit. Nothing is composed across these (NFC)."""


def pieces(text: str, characters: int) -> Iterator[str]:
    """The text in pieces of about so many characters, cut only at seams, such as before a blank.

    A piece is longer where there is no seam.

    >>> list(pieces("one two three", 4))
    ['one two', ' three']
    """
    start = 0
    while len(text) - start > characters and (found := _SEAM.search(text, start + characters)):
        yield text[start : found.start()]
        start = found.start()
    yield text[start:]


def keeps_seams(content: Mapping[str, Any], *, specials: bool) -> bool:
    """Whether pieces of a text have the ids of the text, by what a ``tokenizer.json`` says.

    Args:
        content: the file's.
        specials: special tokens written in a text are found there.
    """
    model = content["model"]
    whole = nfc_or_none(content) and model.get("type") == "BPE" and not model.get("dropout")
    return whole and _splits_so(content.get("pre_tokenizer") or {}) and not any(
        token["lstrip"] or token["rstrip"] or token["single_word"] or _SEAM.search(token["content"])
        for token in content.get("added_tokens", ())
        if specials or not token["special"]
    )  # fmt: skip


def ranks_keep_seams(pattern: str, marks: Iterable[str]) -> bool:
    """Whether pieces of a text have the ids of the text, by the pattern of a file of ranks.

    Args:
        pattern: by which texts are split.
        marks: special tokens that are found in a text.
    """
    return pattern in _KEEPS_SEAMS and not any(_SEAM.search(mark) for mark in marks)


def nfc_or_none(content: Mapping[str, Any]) -> bool:
    """Whether a file's normaliser is Unicode's NFC, or nothing."""
    normaliser = content.get("normalizer") or {"type": "NFC"}
    is_nothing = normaliser["type"] == "Sequence" and not normaliser["normalizers"]
    return is_nothing or bool(normaliser["type"] == "NFC")


def _splits_so(rule: Mapping[str, Any]) -> bool:
    """Whether a rule that splits texts is one of the known ones, then bytes."""
    *splits, last = rule["pretokenizers"] if rule.get("type") == "Sequence" else [rule]
    if last.get("type") != "ByteLevel" or last["add_prefix_space"] or (not splits and not last["use_regex"]):
        return False
    return all(
        split["type"] == "Split"
        and split["pattern"].get("Regex") in _KEEPS_SEAMS
        and split["behavior"] == "Isolated"
        and not split["invert"]
        for split in splits
    )
