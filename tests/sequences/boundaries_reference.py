"""Where a text may be cut, in plain words: regular expressions over the decoded text, no table, no bytes.

Independent of the product but for Unicode 3.2 as the source of what is a letter, and the numbers in the
rule's own text (64 characters).
"""

from __future__ import annotations

import re
from itertools import accumulate
from unicodedata import ucd_3_2_0

LINE_ENDS = "\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]"
CLOSING = "\"')\\]}”’»›」』】〉》〕）］｝〗〙〛＂＇｣"
STOPS = "!?؟۔।॥።։፧‼⁇⁈⁉‽"
FULL_STOPS = "。！？；｡"
JOINING = "\u200c\u200d"


def category(character: str) -> str:
    return ucd_3_2_0.category(character)


def is_extending(character: str) -> bool:
    """Part of the character before it."""
    code = ord(character)
    return (
        category(character)[0] == "M"
        or character in JOINING
        or 0x1F3FB <= code <= 0x1F3FF
        or 0xFE00 <= code <= 0xFE0F
        or 0xE0020 <= code <= 0xE007F
        or 0x1160 <= code <= 0x11FF
    )


def is_ideograph_or_kana(character: str) -> bool:
    kana = "ぁ-ゖゝ-ゟァ-ヺー-ヿㇰ-ㇿ\uff66-\uff9f"
    ideographs = "々〆〇〡-〩\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    return bool(re.fullmatch(f"[{kana}{ideographs}]", character))


def is_of_word(character: str) -> bool:
    if character == "_":
        return True
    if 0xFE00 <= ord(character) <= 0xFE0F or is_ideograph_or_kana(character) or character == "\u200d":
        return False
    return category(character)[0] in "LMN" or character == "\u200c" or 0x1160 <= ord(character) <= 0x11FF


def is_white(character: str) -> bool:
    return category(character) == "Zs" or character in "\t\n\r\x0b\x0c\x85\u2028\u2029"


def is_blank(text: str) -> bool:
    return all(category(character) == "Zs" or character == "\t" for character in text)


def is_number(text: str) -> bool:
    """Whether two characters or three are inside a number."""
    shape = "".join(
        {"Nd": "0", "Sc": "$"}.get(category(c), "," if c in ".,:-/．：／－٫٬" else "x") for c in text
    )
    return shape in ("00", "$0", "0,0")


def inside_character(before: str, after: str) -> bool:
    if not before or not after:
        return False
    if before[-1] == "\r" and after[0] == "\n":
        return True
    flags = all(0x1F1E6 <= ord(c) <= 0x1F1FF for c in (before[-1], after[0]))
    return is_extending(after[0]) or before[-1] == "\u200d" or flags


def inside_number(before: str, after: str) -> bool:
    near = (before[-1:] + after[:1], before[-2:] + after[:1], before[-1:] + after[:2])
    return bool(after) and any(is_number(text) for text in near)


def inside_word(before: str, after: str) -> bool:
    return bool(before and after) and is_of_word(before[-1]) and is_of_word(after[0])


def ends_sentence(before: str, after: str) -> bool:
    rest = before
    while rest and is_white(rest[-1]) and len(before) - len(rest) < 64:
        rest = rest[:-1]
    white = len(rest) < len(before)
    bare = rest[:-64] + re.sub(f"[{CLOSING}]+$", "", rest[-64:])
    last = bare[-1:]
    if not last or (not white and after and re.match(f"[{CLOSING}{STOPS}{FULL_STOPS}….．]", after)):
        return False
    if last in FULL_STOPS:
        return True
    if not (white or not after or is_white(after[0])):
        return last == "…" and is_ideograph_or_kana(after[0])
    if last in ".．":
        return not stands_alone(bare[:-1])
    return last in STOPS + "…"


def stands_alone(text: str) -> bool:
    """Whether a text ends with one letter or digit that has no other before it."""

    def plain(character: str) -> bool:
        return is_of_word(character) and category(character)[0] != "M" and character != "\u200c"

    return bool(text) and plain(text[-1]) and not (len(text) > 1 and is_of_word(text[-2]))


def line_start(text: str, token: int, cut: int) -> int | None:
    """Where the line begins that is cut: at the cut, or in the token ``token..cut`` with blanks behind."""
    for start in range(cut, max(token, cut - 65), -1):
        if re.fullmatch(LINE_ENDS, text[start - 1 : start]):
            return start if is_blank(text[start:cut]) else None
    return None


def after_blank_line(text: str, start: int) -> bool:
    """Whether the line before the one that begins at ``start`` is blank."""
    near = text[max(0, start - 200) : start]
    line = re.split(LINE_ENDS, near)[-2]
    return len(line) <= 64 and is_blank(line)


def permitted(text: str, token: int, cut: int, kind: str) -> bool:
    """Whether a text may be cut before character ``cut``; the token before it begins at ``token``."""
    before, after = text[:cut], text[cut:]
    if before.endswith("\r") and after.startswith("\n"):
        return False
    start = line_start(text, token, cut)
    if start is not None and (kind != "paragraph" or after_blank_line(text, start)):
        return True
    if kind in ("line", "paragraph") or inside_character(before, after):
        return False
    if kind == "sentence":
        return ends_sentence(before, after)
    return not inside_number(before, after) and not (kind == "word" and inside_word(before, after))


def permitted_cuts(spelt: list[bytes], kind: str) -> list[int]:
    """Cuts between tokens that are permitted, the document's end among them; the bytes joined are UTF-8."""
    data = b"".join(spelt)
    text = data.decode()
    ends = [0]
    for token in spelt:
        ends.append(ends[-1] + len(token))
    sizes = accumulate((len(character.encode()) for character in text), initial=0)
    places = {byte: number for number, byte in enumerate(sizes)}  # byte -> character, where one begins
    found = []
    for cut in range(1, len(spelt) + 1):
        if ends[cut] not in places:
            continue
        token = ends[cut - 1]
        while token not in places:  # the token begins inside a character: that one may end a line in it
            token -= 1
        if permitted(text, places[token], places[ends[cut]], kind):
            found.append(cut)
    return found
