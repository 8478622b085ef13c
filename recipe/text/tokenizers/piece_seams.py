"""What a SentencePiece model says of itself in a few fields, and where it lets a long text be taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from recipe.text.tokenizers.blanks import BEFORE, BLANK, STOPS, characters, merge_seams

NOTHING_FIRST = b"\x1a\x02\x18\x00"
"""Behind a model: its normaliser (3) puts no blank first (3: false). What comes last counts."""
_NORMALISER, _TRAINER = 3, 2
_MODEL_TYPE, _BPE = 3, 2
_NAME, _CHARSMAP = 1, 2
_FOLDS = {b"nfkc", b"nmt_nfkc", b"nfkc_cf", b"nmt_nfkc_cf"}
"""Normalisers that fold characters; none joins one with a blank behind it."""


def model_seam(processor: Any) -> re.Pattern[str] | None:
    """Where pieces of a text have the ids of the text, later ones without the blank put first; None: nowhere.

    Only of models that merge pairs: others add up numbers, which are rounded over all of a text.

    Args:
        processor: of the `sentencepiece` library.
    """
    model = dict(_fields(processor.serialized_model_proto()))
    trainer, normaliser = dict(_fields(model[_TRAINER])), dict(_fields(model[_NORMALISER]))
    folds = bool(normaliser.get(_CHARSMAP))
    if trainer.get(_MODEL_TYPE) != _BPE or (folds and normaliser.get(_NAME) not in _FOLDS):
        return None
    if processor.normalize("a b") not in ("a▁b", "▁a▁b"):
        return None
    first, joined = processor.normalize("a") != "a", processor.normalize("a  b").count(BLANK * 2) == 0
    numbers = range(processor.get_piece_size())
    pieces = [processor.id_to_piece(number).replace(" ", BLANK) for number in numbers]
    known = [one for one in BLANK + STOPS if one in set(pieces)]
    if any(map(processor.is_byte, numbers)):
        known.append("\n")
    if joined:  # white space in front of a piece goes: it comes back only where a blank is put first
        known = [BLANK] if first and BLANK in known else []
    if folds:
        known = (
            [BLANK] if BLANK in known and all(_stays(one, processor) for one in characters(BEFORE)) else []
        )
    seams = merge_seams(pieces, "".join(dict.fromkeys(known)).replace(BLANK, " "))
    if folds and seams:
        return re.compile(f"(?<=[{BEFORE}])(?= )")
    return re.compile("|".join(seams)) if seams else None


def _stays(character: str, processor: Any) -> bool:
    """Whether a character remains one before a blank, whatever it becomes."""
    form = str(processor.normalize(character))
    return not form.endswith(BLANK) and processor.normalize(f"{character} b") == f"{form}{BLANK}b"


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers and values of a message's fields, as Protocol Buffers write them."""
    place = 0
    while place < len(data):
        key, place = _whole(data, place)
        if key & 7 == 0:
            value, place = _whole(data, place)
            yield key >> 3, value
            continue
        size = {1: 8, 5: 4}.get(key & 7)
        if size is None:
            size, place = _whole(data, place)
        yield key >> 3, data[place : place + size]
        place += size


def _whole(data: bytes, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, the low ones first; and where it ends."""
    value = shift = 0
    while True:
        value |= (data[place] & 127) << shift
        shift, place = shift + 7, place + 1
        if data[place - 1] < 128:
            return value, place
