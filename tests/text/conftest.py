"""A small tokenizer of the real kind, trained here."""

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

SENTENCES = [
    "def sorted(xs):\n    return xs",
    "the quick brown fox jumps over the lazy dog",
    "保留重复元素。中文标点，数字 2024。",
    "the number 61.6 % of the tokens",
]


def train_small(vocab_size=400, specials=("<|endoftext|>", "<|im_start|>")):
    """A byte-level BPE with NFC, as today's models have."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(specials),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(SENTENCES * 4, trainer)
    if specials:
        mark = specials[0]
        marks = [(mark, tokenizer.token_to_id(mark))]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{mark} $A {mark}", special_tokens=marks
        )
    return tokenizer


@pytest.fixture(scope="session")
def tokenizer_file(tmp_path_factory):
    """``tokenizer.json`` of a trained tokenizer that truncates, pads and adds marks by itself."""
    tokenizer = train_small()
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=8)
    path = tmp_path_factory.mktemp("small") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


@pytest.fixture(scope="session")
def train():
    """Trains a tokenizer; takes ``vocab_size`` and ``specials``."""
    return train_small
