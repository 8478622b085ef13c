"""How byte-level tokenizers split texts, and where a long text can be taken apart without changing an id."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
    "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
}
"""Patterns by which a match ends at every seam, whatever is before or behind it."""
_KEEPS_MORE = {r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+"}
"""Patterns that do not look across seams, but leave texts whole that have no such characters."""
_LETTER = "A-Za-z\u3041-\u3094\u30a1-\u30fa\u4e00-\u9fa5"
_SEAMS = (
    "(?<=[^\\s\u180e\u200b])(?= )",
    f"(?<=[{_LETTER}0-9])(?=[\t\n\r\u3002\uff0c\u3001])",
    f'(?<=[{_LETTER}0-9])(?=[!"#$%&()*+,./;<=?@\\[\\]{{}}\uff01\uff08\uff09\uff1a\uff1b\uff1f\u201c\u201d])',
    f"(?<=[{_LETTER}])(?=[0-9])",
)
"""A blank behind what is none: it begins a match, or is among blanks; white space, a sign or an ideographic
stop behind a letter or digit; a digit behind a letter. Nothing is composed across these (NFC)."""


def pieces(text: str, characters: int, seam: re.Pattern[str]) -> Iterator[str]:
    """The text in pieces of about so many characters, cut only at seams, such as before a blank.

    A piece is longer where there is no seam.

    >>> list(pieces("one two three", 4, re.compile("(?= )")))
    ['one two', ' three']
    """
    start = 0
    while len(text) - start > characters and (found := seam.search(text, start + characters)):
        yield text[start : found.start()]
        start = found.start()
    yield text[start:]


def seam_of(content: Mapping[str, Any], *, specials: bool) -> re.Pattern[str] | None:
    """Where pieces of a text have the ids of the text, by what a ``tokenizer.json`` says; None: nowhere.

    Args:
        content: the file's.
        specials: special tokens written in a text are found there.
    """
    model = content["model"]
    whole = nfc_or_none(content) and model.get("type") == "BPE" and not model.get("dropout")
    tokens = [token for token in content.get("added_tokens", ()) if specials or not token["special"]]
    if not whole or not _splits_so(content.get("pre_tokenizer") or {}):
        return None
    if any(token["lstrip"] or token["rstrip"] or token["single_word"] for token in tokens):
        return None
    return _outside([token["content"] for token in tokens])


def ranks_seam(pattern: str, marks: Iterable[str]) -> re.Pattern[str] | None:
    """Where pieces of a text have the ids of the text, by the pattern of a file of ranks; None: nowhere.

    Args:
        pattern: by which texts are split.
        marks: special tokens that are found in a text.
    """
    return _outside(list(marks)) if pattern in _KEEPS_SEAMS else None


def _outside(tokens: Sequence[str]) -> re.Pattern[str] | None:
    """The seams that lie inside none of these tokens, which are found before a text is split."""
    kept = [seam for seam in _SEAMS if not any(re.search(seam, token) for token in tokens)]
    return re.compile("|".join(kept)) if kept else None


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
    patterns = {split["pattern"].get("Regex") for split in splits if split["type"] == "Split"}
    return (
        all(split["type"] == "Split" and split["behavior"] == "Isolated" for split in splits)
        and not any(split["invert"] for split in splits)
        and patterns <= _KEEPS_SEAMS | _KEEPS_MORE
        and (last["use_regex"] or bool(patterns & _KEEPS_SEAMS))
    )
