"""Small tokenizers of every kind, trained on a few lines."""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from recipe.text.tokenizers import JsonTokenizer, load_tokenizer

LINES = (
    "The quick brown fox jumps over the lazy dog. It was 2024-05-01, and 61.6 % of 1,000 were ¥3,499.00.",
    "def add(first, second):\n    return first + second\n\n\nclass Tutorial:\n    version = '1.2.3'\n",
    "保留重复元素。中文，标点！「引号」他说：“你好。”然后他走了……天黑了。",
    "# Heading\n\nA paragraph of words.\n\n## Next\n\nMore words, tokens of text.\r\n\r\nDone.\r\n",
    "👩‍👩‍👧 🇨🇳 é e\u0301 naïve café J. Smith, e.g. this.  Two  spaces.",
)


def saved(tokenizer: Tokenizer, folder: Path) -> JsonTokenizer:
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    loaded = load_tokenizer(path)
    assert isinstance(loaded, JsonTokenizer)
    return loaded


def byte_level(folder: Path, *, size: int = 700) -> JsonTokenizer:
    """Byte-level BPE, as GPT-2: tokens may hold parts of characters, and blanks after a line's end."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"], show_progress=False
    )
    tokenizer.train_from_iterator(LINES * 2, trainer)
    return saved(tokenizer, folder)


def unbroken_bytes(folder: Path) -> JsonTokenizer:
    """Byte-level BPE over whole texts: tokens run over words, lines and parts of characters."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=700, initial_alphabet=alphabet, special_tokens=["<|endoftext|>"], show_progress=False
    )
    tokenizer.train_from_iterator(LINES * 2, trainer)
    return saved(tokenizer, folder)


def composed(folder: Path) -> JsonTokenizer:
    """Byte-level BPE that composes characters first (NFC), as Qwen."""
    made = byte_level(folder)
    tokenizer = Tokenizer.from_file(str(made.path))
    tokenizer.normalizer = normalizers.NFC()
    return saved(tokenizer, folder)


def fallback(folder: Path) -> JsonTokenizer:
    """BPE with ``▁`` for spaces and ``<0xE4>`` for what it has no token for, as Llama 2."""
    plain = [*dict.fromkeys("".join(LINES[:2]).replace(" ", "▁"))]
    tokens = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *plain, "▁o", "▁of", "re"]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    merges = [("▁", "o"), ("▁o", "f"), ("r", "e")]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return saved(tokenizer, folder)


def unigram(folder: Path) -> JsonTokenizer:
    """Unigram with ``▁``, as T5; every character of the lines has a token."""
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=400, special_tokens=["<unk>", "</s>"], unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator([*LINES, "In\t¥ é f("] * 2, trainer)
    return saved(tokenizer, folder)


def word_piece(folder: Path, decoder: str = "WordPiece") -> JsonTokenizer:
    """WordPiece, as BERT: white space is not kept."""
    tokens = ["[UNK]", "[EOS]", "token", "##s", "of", "20", "##24", "."]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.CTC() if decoder == "ctc" else decoders.WordPiece()
    return saved(tokenizer, folder)


DECODED_AS_WRITTEN = (byte_level, unbroken_bytes, fallback, unigram)
"""Those whose tokens, joined, are the text itself."""


def change_rule(content, what):
    """Change one rule of a byte-level ``tokenizer.json``, in place."""
    split, last = content["pre_tokenizer"]["pretokenizers"]
    if what == "normaliser":
        content["normalizer"] = {"type": "NFKC"}
    elif what == "dropout":
        content["model"]["dropout"] = 0.5
    elif what == "split":
        split["pattern"]["Regex"] = r"\w+ ?"
    elif what == "digits":
        split["pattern"]["Regex"] = r"\p{N}{1,3}"
    elif what == "blank first":
        last["add_prefix_space"] = True
    elif what == "mark":
        content["added_tokens"][0] |= {"special": False, "lstrip": True}
    elif what == "byte":
        del content["model"]["vocab"]["Ġ"]
    elif what == "prefix":
        content["model"]["continuing_subword_prefix"] = "##"
    else:
        raise AssertionError(what)
