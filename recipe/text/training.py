"""Train a byte-level BPE tokenizer: a folder with ``tokenizer.json`` and a record of what it is made from."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from fractions import Fraction
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from recipe.errors import RecipeError
from recipe.pools.workplace import write_durably
from recipe.text.tokenizers import load_tokenizer
from recipe.text.tokenizers.hugging_face import CONFIG_NAME
from recipe.text.tokenizers.splitting import SPLITS

RECORD_NAME = "training.json"
FORMAT = 1
LEAST_COUNT = 2
"""A pair that stands once is never merged."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainOptions:
    """What decides a tokenizer, beside the texts."""

    vocab_size: int
    """Rows of the input and output tables: 256 bytes, merges and marks together."""
    split: str = "qwen"
    nfc: bool = False
    """Texts are brought into Unicode form NFC first: what was not composed does not come back as it was."""
    eos: str = "<|endoftext|>"
    marks: tuple[str, ...] = ()
    """More special tokens, with the ids behind the end mark's."""
    sample: Fraction = Fraction(1)
    """Share of the texts that is taken, by a keyed hash of each text."""
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        least = 256 + len({self.eos, *self.marks})
        if self.split not in SPLITS:
            raise ValueError(f"split is {', '.join(SPLITS)}, not {self.split!r}")
        if self.vocab_size < least:
            raise RecipeError.single(
                "recipe tokenizer train", "--vocab-size", given=self.vocab_size,
                expected=f"at least {least}: 256 bytes and the marks", fix=f"ask for more than {least}",
            )  # fmt: skip
        if not 0 < self.sample <= 1:
            raise ValueError(f"sample is a share above 0 and at most 1, not {self.sample}")


@dataclass(slots=True)
class _Seen:
    """What went into a training, whatever its order."""

    documents: int = 0
    bytes: int = 0
    digest: int = 0

    def take(self, texts: Iterable[str], options: TrainOptions) -> Iterator[str]:
        """The texts of the sample, counted."""
        limit = options.sample * 2**64
        key = f"train {options.seed}".encode()
        for text in texts:
            data = text.encode()
            if options.sample < 1 and int.from_bytes(blake2b(data, digest_size=8, key=key).digest()) >= limit:
                continue
            self.documents += 1
            self.bytes += len(data)
            self.digest = (self.digest + int.from_bytes(blake2b(data, digest_size=32).digest())) % 2**256
            yield text


def train_tokenizer(
    texts: Iterable[str], out: Path, options: TrainOptions, *, made_from: Mapping[str, Any]
) -> dict[str, Any]:
    """Train on the texts and write the folder: ``tokenizer.json``, ``tokenizer_config.json``, the record.

    The files depend on the texts, not on their order, and on the options; not on cores or names.

    Args:
        texts: read once.
        out: a new folder.
        options: size, splitting, marks, sample.
        made_from: what the record says of the texts' origin.

    Returns:
        The record.

    Raises:
        RecipeError: something is there, no text, or too little for so many tokens. Nothing is left then.
    """
    if out.exists():
        raise RecipeError.single(
            "recipe tokenizer train", str(out), given="something is there already", expected="a new folder",
            fix="choose another name, or remove it",
        )  # fmt: skip
    seen = _Seen()
    made = _trained(seen.take(texts, options), options)
    marks = list(dict.fromkeys([options.eos, *options.marks]))
    _check(made.get_vocab_size(), len(marks), seen, options)
    made.add_special_tokens(marks)
    new = out.with_name(f".{out.name}.new")
    try:
        record = _write(new, made, seen, options, made_from)
        new.rename(out)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return record


def _trained(texts: Iterator[str], options: TrainOptions) -> Tokenizer:
    made = Tokenizer(models.BPE())
    if options.nfc:
        made.normalizer = normalizers.NFC()
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLITS[options.split]), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=options.vocab_size - len({options.eos, *options.marks}),
        min_frequency=LEAST_COUNT,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    return made


def _check(tokens: int, marks: int, seen: _Seen, options: TrainOptions) -> None:
    if not seen.bytes or tokens + marks < options.vocab_size:
        raise RecipeError.single(
            "recipe tokenizer train",
            "--vocab-size",
            given=f"{options.vocab_size}; {seen.bytes:,} bytes of text give {tokens + marks}",
            expected="text with pairs enough for so many tokens",
            fix=f"take more text, or --vocab-size {tokens + marks}"
            if seen.bytes
            else "name sources that hold text",
        )


def _write(
    folder: Path, made: Tokenizer, seen: _Seen, options: TrainOptions, made_from: Mapping[str, Any]
) -> dict[str, Any]:
    if folder.exists():
        shutil.rmtree(folder)  # what a killed training left
    folder.mkdir(parents=True)
    write_durably(folder / "tokenizer.json", made.to_str(pretty=True).encode())
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": options.eos}
    write_durably(folder / CONFIG_NAME, (json.dumps(config, indent=1, ensure_ascii=False) + "\n").encode())
    loaded = load_tokenizer(folder)
    settings = {
        key: str(value) if isinstance(value, Fraction) else value for key, value in asdict(options).items()
    }
    record = {
        "format": FORMAT,
        "fingerprint": loaded.fingerprint(),
        "vocab_size": loaded.vocab_size,
        "eos": loaded.eos,
        "settings": {**settings, "marks": list(options.marks), "least_count": LEAST_COUNT},
        "texts": {"documents": seen.documents, "bytes": seen.bytes, "digest": f"{seen.digest:064x}"},
        "made_from": dict(made_from),
        "library": {"tokenizers": version("tokenizers")},
    }
    write_durably(folder / RECORD_NAME, (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())
    return record
