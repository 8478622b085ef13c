"""Where a ``tokenizer.json`` gives the ids that `tiktoken` gives, in a third of the time: shown, not tried.

Three things are shown before a text is given to the other library, and a text of which one of them does not
hold is given to `tokenizers`:

1. *Pairs are merged alike.* `tokenizers` merges the listed pair that stands first in its list; `tiktoken`
   the pair whose bytes are the token of least rank, listed or not. Where ``xy`` are neighbours and their
   bytes are a token ``t``, whatever was merged between the ends of ``t`` is what is merged in ``t`` alone,
   since nothing reached across. So only the last pair of ``t`` alone ever becomes ``t``: where that pair is
   listed, for every token, and the list goes through the tokens in the order of their ids, both do the same.
2. *Texts are split alike*: the rule is one of the known ones, and every character of the text is of the class
   (letter, number, blank, mark, or none of these) that it has had in all versions of Unicode since 3.2.
3. *No added token is in the text*, as it is written or composed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any
from unicodedata import category, ucd_3_2_0

import numpy as np
from numpy.typing import NDArray

from recipe.text.tokenizers.composing import composed
from recipe.text.tokenizers.rank_files import as_bytes
from recipe.text.tokenizers.splitting import SPLITS, nfc_or_none

_LAST = 0x30000
"""Characters from here on are left to `tokenizers`: hardly any is assigned."""
_FOLDED = "\u017f\u212a"
"""Characters that are letters of ASCII in another case: ``'ſ`` may be ``'s``."""


class EqualRanks:
    """The ids of a ``tokenizer.json``, by ranks, of the texts of which that is known."""

    def __init__(self, ranks: Mapping[bytes, int], pattern: str, *, nfc: bool, added: list[str]) -> None:
        """What `equal_ranks` has found."""
        import tiktoken

        self._encoding: Any = tiktoken.Encoding(
            "equal", pat_str=pattern, mergeable_ranks=dict(ranks), special_tokens={}
        )
        self._nfc = nfc
        self._added = re.compile("|".join(map(re.escape, added))) if added else None

    def encode(self, text: str) -> NDArray[Any] | None:
        """Ids of a text, int32; None where they might be others."""
        if not text.isascii() and _unsure().search(text):
            return None
        form = composed(text) if self._nfc else text
        if self._added is not None and (self._added.search(text) or self._added.search(form)):
            return None
        if form is not text and form != text and _unsure().search(form):
            return None
        try:
            ids: NDArray[Any] = self._encoding.encode_to_numpy(form, disallowed_special=())
        except ValueError:  # a million blanks in a row are too many for its matcher
            return None
        return ids.astype(np.int32)


def equal_ranks(content: Mapping[str, Any], *, specials: bool) -> EqualRanks | None:
    """The same ids by ranks, for what a ``tokenizer.json`` says; None where that is not shown.

    Args:
        content: of the file, as the library has read it.
        specials: special tokens written in a text are found there.
    """
    pattern = _pattern(content.get("pre_tokenizer") or {})
    if pattern is None or not nfc_or_none(content) or not _is_plain(content["model"]):
        return None
    added = [
        token["content"] for token in content.get("added_tokens", ()) if specials or not token["special"]
    ]
    if any(composed(token) != token for token in added):
        return None
    ranks = merged_alike(content["model"])
    if ranks is None:
        return None
    try:
        nfc = bool((content.get("normalizer") or {}).get("type") == "NFC")
        return EqualRanks(ranks, pattern, nfc=nfc, added=[token for token in added if token])
    except ImportError:
        return None


def merged_alike(model: Mapping[str, Any]) -> dict[bytes, int] | None:
    """Tokens that texts can have, by their bytes, if ranks merge them as the model does.

    >>> letters = {letter: number for number, letter in enumerate("abc")}
    >>> alike = {"vocab": {**letters, "bc": 3, "abc": 4}, "merges": ["b c", "a bc"]}
    >>> merged_alike(alike) == {b"a": 0, b"b": 1, b"c": 2, b"bc": 3, b"abc": 4}
    True
    >>> merged_alike({"vocab": {**letters, "ab": 4, "bc": 3, "abc": 5}, "merges": ["b c", "a b", "ab c"]})
    """
    try:
        tokens = {as_bytes(token): number for token, number in model["vocab"].items()}
        pairs = (pair.split(" ") if isinstance(pair, str) else pair for pair in model["merges"])
        place = {(as_bytes(one), as_bytes(two)): number for number, (one, two) in enumerate(pairs)}
    except (KeyError, ValueError):
        return None
    if len(tokens) != len(model["vocab"]):
        return None
    found: dict[bytes, int] = {}
    last = -1
    for token, number in sorted(tokens.items(), key=lambda one: one[1]):
        pair = _last_pair(token, tokens)
        if len(token) > 1 and pair is None:
            if model.get("ignore_merges"):
                found[token] = number  # whole parts of a text are looked up before anything is merged
            continue
        if pair is not None:
            if place.get(pair, -1) <= last:
                return None
            last = place[pair]
        found[token] = number
    return found


def _last_pair(token: bytes, ranks: Mapping[bytes, int]) -> tuple[bytes, bytes] | None:
    """What a token is made of when its bytes are merged by rank; None where it is never made."""
    parts = [token[at : at + 1] for at in range(len(token))]
    found = [ranks.get(one + two) for one, two in pairwise(parts)]
    while len(parts) > 2:
        known = [rank for rank in found if rank is not None]
        if not known:
            return None
        at = found.index(min(known))
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        del found[at]
        if at:
            found[at - 1] = ranks.get(parts[at - 1] + parts[at])
        if at < len(found):
            found[at] = ranks.get(parts[at] + parts[at + 1])
    return (parts[0], parts[1]) if len(parts) == 2 else None


def _pattern(rule: Mapping[str, Any]) -> str | None:
    """The known pattern by which a rule splits texts before it takes their bytes."""
    *splits, last = rule["pretokenizers"] if rule.get("type") == "Sequence" else [rule]
    if last.get("type") != "ByteLevel" or last["add_prefix_space"]:
        return None
    if not splits and last["use_regex"]:
        return SPLITS["gpt2"]
    if len(splits) != 1 or last["use_regex"] or splits[0]["type"] != "Split":
        return None
    [split] = splits
    regex: str | None = split["pattern"].get("Regex")
    is_known = regex in SPLITS.values() and split["behavior"] == "Isolated" and not split["invert"]
    return regex if is_known else None


def _is_plain(model: Mapping[str, Any]) -> bool:
    """Whether the model is byte-level BPE that leaves nothing to chance and has a token for every byte."""
    return (
        model.get("type") == "BPE"
        and not any(model.get(key) for key in ("dropout", "continuing_subword_prefix", "end_of_word_suffix"))
        and {as_bytes_or_none(token) for token in model["vocab"]} >= {bytes([byte]) for byte in range(256)}
    )


def as_bytes_or_none(token: str) -> bytes | None:
    """The bytes of a token, or None where it is not written in characters for bytes."""
    try:
        return as_bytes(token)
    except KeyError:
        return None


@cache
def _unsure() -> re.Pattern[str]:
    """Characters whose class is not the same in all versions of Unicode that a library may know."""
    found = [code for code in range(0x80, _LAST) if _kind(code, category) != _kind(code, ucd_3_2_0.category)]
    ranges: list[list[int]] = []
    for code in sorted({*found, *map(ord, _FOLDED)}):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    ranges.append([_LAST, 0x10FFFF])
    shown = "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)
    return re.compile(f"[{shown}]")


def _kind(code: int, look: Any) -> str:
    """Category of a letter, number, blank or mark; else nothing, also where a version does not know it."""
    found: str = look(chr(code))
    if found == "Cn" and look is category:
        return found  # a later version may have a letter there
    return found if found[0] in "LNZM" else ""
