"""Where a ``tokenizer.json`` that is not byte-level lets long texts be taken apart: mostly before blanks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

BLANK = "▁"
"""What blanks become."""
STOPS = "\n\u3002\uff0c\u3001"
"""What a piece may begin with where no token has it behind another character."""
BEFORE = (
    "!-~\u00c0-\u024f\u0391-\u03c9\u0410-\u044f\u05d0-\u05ea\u0621-\u064a\u0904-\u0939\u0e01-\u0e30"
    "\u3041-\u3094\u30a1-\u30fa\u4e00-\u9fa5\uac00-\ud7a3\u3001\u3002\u300d\u300f\u2019\u201d"
    "\uff01\uff09\uff0c\uff1a\uff1b\uff1f"
)
"""Signs and letters behind which a blank stays a blank of its own; what a file does to each is looked at."""
_BY_CHARACTER = {
    "BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "Precompiled", "StripAccents"
}  # fmt: skip
"""Normalisers that give a text the forms of its characters, with the marks that follow each."""
_REPLACED = {"type": "Replace", "pattern": {"String": " "}, "content": BLANK}
_FIRST = {"type": "Prepend", "prepend": BLANK}
_REMOVES_BLANKS = {"BertPreTokenizer", "Whitespace", "WhitespaceSplit"}


def blank_seam(
    content: Mapping[str, Any], normalise: Callable[[str], str], *, specials: bool
) -> re.Pattern[str] | None:
    """Where pieces of a text have the ids of the text, later ones without what is put first; None: nowhere.

    Either texts are split into words at blanks; or nothing is split, and pairs are merged of which no token
    of the vocabulary goes on over the seam.

    Args:
        content: of the ``tokenizer.json``.
        normalise: its normaliser.
        specials: special tokens written in a text are found there.
    """
    if content["model"].get("dropout") or any(
        token["lstrip"] or token["rstrip"] or token["single_word"]
        for token in found_tokens(content, specials)
    ):
        return None
    seams = _between_words(content, normalise) or _between_merges(content)
    added = [token["content"] for token in content.get("added_tokens", ())]
    forms = {form.replace(BLANK, " ") for token in added for form in (token, normalise(token))}
    kept = [seam for seam in seams if not any(re.search(seam, form) for form in forms)]
    return re.compile("|".join(kept)) if kept else None


def found_tokens(content: Mapping[str, Any], specials: bool) -> list[Mapping[str, Any]]:
    """Added tokens that are found in texts."""
    return [token for token in content.get("added_tokens", ()) if specials or not token["special"]]


def without_first(content: Mapping[str, Any]) -> dict[str, Any] | None:
    """A ``tokenizer.json`` that puts nothing in front of a text; None: it is as it was."""
    normals = parts(content.get("normalizer"), "normalizers")
    kept = [rule for rule in normals if rule["type"] != "Prepend"]
    rule = {"type": "Sequence", "normalizers": kept}
    return None if len(kept) == len(normals) else {**content, "normalizer": rule}


def parts(rule: Mapping[str, Any] | None, key: str) -> list[Mapping[str, Any]]:
    """A rule, or the rules of a sequence.

    >>> parts({"type": "Sequence", "normalizers": [{"type": "NFC"}]}, "normalizers")
    [{'type': 'NFC'}]
    """
    if not rule:
        return []
    return [one for each in rule[key] for one in parts(each, key)] if rule["type"] == "Sequence" else [rule]


def merge_seams(vocabulary: Iterable[str], characters: str) -> list[str]:
    """Seams before those characters, of which no token has one behind another character.

    Pairs are merged in the same order on either side of such a place: no merge is of both.

    >>> merge_seams(["▁", "▁▁", "▁a", ".\\n", "\\n"], " \\n")
    ['(?<=[^ ▁])(?= )']
    """
    tokens = list(vocabulary)
    seams = []
    for character in characters:
        form = BLANK if character == " " else character
        reaching = re.compile(f"(?s)[^{form}]{form}")
        if not any(form in token and reaching.search(token) for token in tokens):
            seams.append(f"(?<=[^{character}{BLANK if character == ' ' else ''}])(?={character})")
    return seams


def _between_merges(content: Mapping[str, Any]) -> list[str]:
    """Seams of pairs that are merged over whole texts; none where something else is done to texts."""
    model = content["model"]
    own = ("ignore_merges", "continuing_subword_prefix", "end_of_word_suffix")
    if model.get("type") != "BPE" or any(model.get(key) for key in own):
        return []
    normals = parts(content.get("normalizer"), "normalizers")
    rules = parts(content.get("pre_tokenizer"), "pretokenizers")
    if any(rule not in (_REPLACED, _FIRST, {"type": "NFC"}) for rule in normals):
        return []
    if _FIRST in normals and any(
        token["normalized"] and not token["special"] for token in content.get("added_tokens", ())
    ):
        return []
    joins = [rule for rule in rules if rule["type"] == "Metaspace" and rule["replacement"] == BLANK]
    idle = [
        rule
        for rule in rules
        if rule["type"] == "Split" and rule["pattern"] == {"String": " "} and not rule["invert"]
    ]
    if len(joins) + len(idle) != len(rules) or not (_REPLACED in normals or rules == joins != []):
        return []
    vocabulary = model["vocab"]
    known = [one for one in (BLANK if joins else BLANK + STOPS) if one in vocabulary]
    if model.get("byte_fallback") and not joins and _is_byte("\n", vocabulary):
        known.append("\n")
    return merge_seams(vocabulary, "".join(known).replace(BLANK, " "))


def _is_byte(character: str, vocabulary: Iterable[str]) -> bool:
    """Whether an ASCII character is encoded as its byte, and that is merged with nothing."""
    byte = f"<0x{ord(character):02X}>"
    return character not in vocabulary and [token for token in vocabulary if byte in token] == [byte]


def _between_words(content: Mapping[str, Any], normalise: Callable[[str], str]) -> list[str]:
    """Seams of texts that are split at blanks first of all; none where a blank may become something else."""
    normals = parts(content.get("normalizer"), "normalizers")
    rules = parts(content.get("pre_tokenizer"), "pretokenizers")
    if not rules or not all(map(_is_local, normals)):
        return []
    first = rules[0]
    removed = first["type"] in _REMOVES_BLANKS
    if not removed and not (
        first["type"] == "Metaspace" and first["split"] and first["replacement"] == BLANK
    ):
        return []
    if not all(_stays(one, normalise, removed) for one in characters(BEFORE)):
        return []
    spaces = [one for one in " \n\r\t" if _is_blank(normalise(f"b{one}b"), removed)]
    seams = [f"(?<=[{BEFORE}])(?=[{''.join(spaces)}])"] if spaces else []
    if first["type"] in {"BertPreTokenizer", "Whitespace"} and not any(
        rule["type"] in {"Metaspace", "Replace"} for rule in (*rules, *normals)
    ):
        seams.append("(?<=[A-Za-z0-9\u4e00-\u9fa5])(?=[\u3001\u3002\uff01\uff0c\uff1b\uff1f])")
    return seams


def _is_local(rule: Mapping[str, Any]) -> bool:
    """Whether a normaliser gives a text that is cut before a blank the forms of both parts."""
    if rule["type"] == "Strip":
        return not rule["strip_left"]
    if rule["type"] == "Replace" and "String" in rule["pattern"]:
        return bool(re.fullmatch(r"\S+", rule["pattern"]["String"]) and re.fullmatch(r"\S+", rule["content"]))
    if rule["type"] == "Replace":
        return rule["pattern"] == {"Regex": " {2,}"} and rule["content"] in (" ", BLANK)
    return rule["type"] in _BY_CHARACTER


def _is_blank(form: str, removed: bool) -> bool:
    return bool(re.fullmatch("b[ \n\r\t]+b", form)) if removed else form == "b b"


def _stays(character: str, normalise: Callable[[str], str], removed: bool) -> bool:
    """Whether a character remains one before a blank, whatever it becomes."""
    form = normalise(character)
    stays = re.fullmatch(r"\S+", form.strip() if removed else form) is not None
    return stays and normalise(f"{character} b") == form + normalise(" b")


def characters(ranges: str) -> Iterable[str]:
    """All that are in some ranges.

    >>> "".join(characters("a-c"))
    'abc'
    """
    one = re.compile(f"[{ranges}]")
    return (chr(code) for code in range(0x10000) if one.match(chr(code)))
