"""The bytes of tokens, held against what the tokenizers library decodes; small tokenizers made here."""

from __future__ import annotations

import pytest

from recipe.errors import RecipeError
from recipe.text.tokenizers import load_tokenizer
from recipe.text.vocabulary import token_bytes
from tests.text.small_tokenizers import DECODED_AS_WRITTEN, LINES, word_piece

TEXT = "In 2024-05-01 保留 ¥3,499.00，é👩‍👩‍👧\r\n\r\n\tdef f():\n  return 1.2.3\n"


def spelt(tokenizer, text):
    vocabulary = token_bytes(tokenizer)
    return b"".join(vocabulary[number] for number in tokenizer.encode_batch([text])[0])


@pytest.mark.parametrize("make", DECODED_AS_WRITTEN, ids=lambda make: make.__name__)
def test_the_bytes_of_tokens_joined_are_the_text(make, tmp_path):
    tokenizer = make(tmp_path)
    for text in (TEXT, *LINES):
        assert spelt(tokenizer, text).decode().removeprefix(" ") == text.removeprefix(" ")


def test_bytes_stand_for_themselves_and_their_mark_for_nothing():
    vocabulary = token_bytes(load_tokenizer("bytes"))
    assert len(vocabulary) == 257
    assert vocabulary[0xE4] == b"\xe4"
    assert vocabulary[256] == b""


def test_word_pieces_begin_with_a_space_and_their_continuations_do_not(tmp_path):
    assert spelt(word_piece(tmp_path), "tokens of 2024") == b" tokens of 2024"


def test_a_decoder_that_is_not_known_is_refused_by_name(tmp_path):
    tokenizer = word_piece(tmp_path, decoder="ctc")
    with pytest.raises(RecipeError, match="a decoder of type CTC"):
        token_bytes(tokenizer)
