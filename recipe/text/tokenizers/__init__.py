"""Text → token ids and back: bytes without any download, and the files that people have.

Nothing is added to a text and nothing is taken away but by the tokenizer's own normalisation.
"""

from recipe.text.tokenizers.builtin import ByteTokenizer
from recipe.text.tokenizers.hugging_face import JsonTokenizer
from recipe.text.tokenizers.kind import COMMON_EOS, PROBES, SPECIALS, Tokenizer
from recipe.text.tokenizers.loading import KINDS, load_tokenizer, tokenizer_path
from recipe.text.tokenizers.ranks import RankTokenizer
from recipe.text.tokenizers.sentence_pieces import SentencePieceTokenizer
from recipe.text.tokenizers.splitting import LONG

__all__ = [
    "COMMON_EOS",
    "KINDS",
    "LONG",
    "PROBES",
    "SPECIALS",
    "ByteTokenizer",
    "JsonTokenizer",
    "RankTokenizer",
    "SentencePieceTokenizer",
    "Tokenizer",
    "load_tokenizer",
    "tokenizer_path",
]
