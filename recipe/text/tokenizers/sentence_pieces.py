"""SentencePiece models (``tokenizer.model``, ``spiece.model``), by the `sentencepiece` package."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import copy
from functools import cached_property
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recipe.config.extras import how_to_install
from recipe.errors import RecipeError
from recipe.text.tokenizers.hugging_face import declared_token, read_config
from recipe.text.tokenizers.kind import SPECIALS, find_eos, fingerprint_of, refused
from recipe.text.tokenizers.piece_seams import NOTHING_FIRST, model_seam
from recipe.text.tokenizers.splitting import LONG, pieces

_BLANK = "▁"
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class SentencePieceTokenizer:
    """A model as the `sentencepiece` library reads it; nothing is sampled, no mark is added."""

    kind = "sentencepiece"
    _is_later = False
    most_whole = 24 << 20

    def __init__(self, path: Path, *, eos: str | int | None = None, specials: bool = False) -> None:
        """Read the model.

        Raises:
            RecipeError: the package is not installed, the file is no model, marks in texts are asked
                for, or no end of document is to be found.
        """
        if specials:
            fix = f"leave {SPECIALS} out, or make a tokenizer.json of the model"
            raise refused(path, SPECIALS, "marks as text: a model never finds its own ones there", fix)
        self.path = path
        self.files: tuple[Path, ...] = (path,)
        self.spec = str(path)
        self.name = path.absolute().parent.name if path.name == "tokenizer.model" else path.stem
        self._processor = _load(path)
        self.vocab_size = int(self._processor.get_piece_size())
        names = [self._processor.id_to_piece(number) for number in range(self.vocab_size)]
        self._control = {
            number: piece for number, piece in enumerate(names) if self._processor.is_control(number)
        }
        own = names[ends] if (ends := self._processor.eos_id()) >= 0 else ""
        declared = declared_token(read_config(path), "eos_token") or own
        vocabulary = {piece: number for number, piece in enumerate(names)}
        self.eos = find_eos(
            vocabulary, set(self._control.values()), own if eos is None and own else eos, declared
        )

    @property
    def normaliser(self) -> str:
        """What the model does to a text, by two examples: ``NFKC`` composes and folds compatible forms."""
        folded = self.normalise("ﬁ e\u0301")
        words = [{"fi é": "NFKC", "ﬁ é": "NFC"}.get(folded, "" if folded == "ﬁ e\u0301" else "own")]
        words += ["blanks joined"] if self.normalise("a  b") == "a b" else []
        return "+".join(word for word in words if word) or "none"

    def __getstate__(self) -> dict[str, Any]:
        """Without the fingerprint: another process finds out for itself what it has got."""
        return {key: value for key, value in self.__dict__.items() if key not in ("_fingerprint", "later")}

    def encode_batch(self, texts: Sequence[str]) -> list[NDArray[Any]]:
        """Ids of each text, int32; a mark written in a text is text."""
        found: list[NDArray[Any]] = self._processor.encode(list(texts), return_type="numpy", num_threads=1)
        return found

    def pieces(self, text: str) -> Iterator[str]:
        """Cut where a model that merges pairs has none that goes across; else the text itself."""
        return iter([text]) if self._seam is None else pieces(text, LONG, self._seam)

    @cached_property
    def later(self) -> SentencePieceTokenizer:
        """The same model without the blank that it puts first, where that is no blank of the text's own."""
        if not self._puts_blank:
            return self
        later = copy(self)
        later._is_later = True
        if str(self._processor.normalize(" a")) != f"{_BLANK}a":
            later._processor = _loaded(self._processor.serialized_model_proto() + NOTHING_FIRST)
        return later

    @cached_property
    def _seam(self) -> re.Pattern[str] | None:
        return model_seam(self._processor)

    def offsets(self, text: str) -> NDArray[np.int64]:
        """Spans of characters before normalisation; the bytes of a character have the character's."""
        found = self._processor.encode(text, return_type="offset_mapping")
        spans = np.array(found["offsets"], np.int64).reshape(-1, 2)
        for place in range(len(spans) - 2, -1, -1):  # all bytes of a character but its last have no width
            number = found["ids"][place]
            if spans[place, 0] == spans[place, 1] and self._processor.is_byte(number):
                spans[place] = spans[place + 1]
        if self._is_later and len(spans):
            spans[0, 0] = 0  # a blank that the text has, where it was taken away and put first again
        return spans

    def decode(self, ids: Sequence[int] | NDArray[Any]) -> str:
        """Text of the ids; marks are shown as they are called.

        Raises:
            ValueError: an id that no piece has.
        """
        values = np.asarray(ids, dtype=np.int64)
        if values.size and not (values.min() >= 0 and values.max() < self.vocab_size):
            raise ValueError(f"ids lie in 0..{self.vocab_size - 1}, not {values.min()}..{values.max()}")
        runs = [list(run) for _, run in groupby(values.tolist(), self._control.__contains__)]
        marks = self._control
        return "".join(
            "".join(marks[one] for one in run) if run[0] in marks else self._text(run) for run in runs
        )

    def normalise(self, text: str) -> str:
        """The text after the model's own normaliser; the blank it puts first is taken away again."""
        form = str(self._processor.normalize(text)).replace(_BLANK, " ")
        return form[1:] if self._puts_blank and form.startswith(" ") else form

    def token_bytes(self) -> list[bytes]:
        """Bytes of each piece by id inside a text; the unknown piece is what it decodes to."""
        found = []
        for number in range(self.vocab_size):
            piece = self._processor.id_to_piece(number)
            byte = _BYTE_PIECE.fullmatch(piece) if self._processor.is_byte(number) else None
            if byte is not None:
                found.append(bytes([int(byte[1], 16)]))
            elif self._processor.is_unknown(number):
                found.append(self._text([number]).encode())
            else:
                found.append(piece.replace(_BLANK, " ").encode())
        return found

    def fingerprint(self) -> str:
        """Hash of the model's file and of how it treats the probes."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        model = sha256(self._processor.serialized_model_proto()).hexdigest()
        return fingerprint_of(self, {"kind": "sentencepiece", "model": model, "eos": self.eos})

    @cached_property
    def _puts_blank(self) -> bool:
        return str(self._processor.normalize("a")).startswith(_BLANK)

    def _text(self, ids: list[int]) -> str:
        return str(self._processor.decode(ids))


def _loaded(model: bytes) -> Any:
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    return processor


def _load(path: Path) -> Any:
    try:
        import sentencepiece  # noqa: F401
    except ImportError as error:
        raise RecipeError.single(
            "tokenizer",
            str(path),
            given="a SentencePiece model, and sentencepiece is not installed",
            expected="the package sentencepiece",
            fix=f"{how_to_install('sentencepiece')}, or name a tokenizer.json made of the model",
        ) from error
    try:
        processor = _loaded(path.read_bytes())
    except (RuntimeError, OSError) as error:
        raise refused(
            path,
            str(error)[:200],
            "a SentencePiece model",
            "fetch the file again: it is damaged, or another one",
        ) from error
    if processor.get_piece_size() == 0:
        raise refused(path, "a model without pieces", "a SentencePiece model", "fetch the file again")
    return processor
