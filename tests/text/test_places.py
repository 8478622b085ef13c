"""Token spans down to characters and lines (A14)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.text.places import locate
from recipe.text.tokenizers import ByteTokenizer, load_tokenizer

TEXT = "first line\nzweite Zeile: 你好, wörld\n\nlast 🙂 line\n"


def test_A14_a_token_inside_a_character_gives_the_character():
    place = locate(ByteTokenizer(), TEXT, 26, 27)
    assert (place.text, place.line, place.column) == ("你", 2, 15)


def test_A14_a_span_over_lines_names_both():
    place = locate(ByteTokenizer(), "ab\ncd\nef", 1, 7)
    assert (place.line, place.column, place.last_line, place.text) == (1, 2, 3, "b\ncd\ne")


@given(st.data())
@settings(max_examples=30)
def test_A14_the_tokens_of_a_span_decode_to_its_characters(tokenizer_file, data):
    tokenizer = load_tokenizer(tokenizer_file)
    [ids] = tokenizer.encode_batch([TEXT])
    start = data.draw(st.integers(0, len(ids) - 1))
    stop = data.draw(st.integers(start + 1, len(ids)))
    decoded = tokenizer.decode(ids[start:stop]).strip("\ufffd")
    assert decoded in locate(tokenizer, TEXT, start, stop).text


@pytest.mark.parametrize(("start", "stop"), [(0, 0), (-1, 2), (0, 1000), (3, 2)])
def test_a_span_outside_the_text_is_the_callers_fault(start, stop):
    with pytest.raises(ValueError, match="tokens"):
        locate(ByteTokenizer(), TEXT, start, stop)
