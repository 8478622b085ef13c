"""Places at which text may be cut: by hand, and against regular expressions over the text (B2–B4, B7)."""

from __future__ import annotations

import hashlib
import tempfile
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from unicodedata import ucd_3_2_0

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.sequences.boundaries import edge_table, first_edge, last_edge, section_table
from recipe.sequences.characters import character_classes
from recipe.sequences.spelling import ALIGN, Edges
from recipe.text.tokenizers import load_tokenizer
from recipe.text.vocabulary import token_bytes
from tests.sequences.boundaries_reference import permitted_cuts
from tests.text.small_tokenizers import DECODED_AS_WRITTEN, LINES, byte_level, composed, fallback

TEXT_KINDS = ALIGN[1:-1]
BYTES = edge_table(token_bytes(load_tokenizer("bytes")))

FRAGMENTS = (
    "a", "word", "tokens", " ", "  ", "\n", "\r\n", "\r", "\t", "\u2028", "\n\n", "    ", "\u3000",
    ".", ",", ":", "-", "/", "!", "?", "…", "。", "！", "？", "；", "，", "」", "「", "”", "“", '"', "'",
    "2024", "61.6", "1.2.3", "2024-05-01", "¥3,499.00", "3", "0", "１２", "．", "٣", "$", "%", "_", ")",
    "保留", "元素", "ひら", "カタ", "ー", "한국", "é", "e\u0301", "ไทย", "\u0301", "\u200d", "👩", "👩‍👩‍👧",
    "👍🏽", "🇨🇳", "❤️", "²", "ﷺ", "ꀀ", "J. Smith", "e.g. ",
    "def f(x):\n    return x\n", "# Heading\n\n",
)  # fmt: skip
NUMBERS = ("2024", "61.6", "1.2.3", "2024-05-01", "¥3,499.00", "10:30", "１２．５", "٣٤")
known = st.characters(exclude_categories=["Cs"]).filter(lambda c: ucd_3_2_0.category(c) != "Cn")
texts = st.lists(st.sampled_from((*FRAGMENTS, *LINES)) | known, max_size=30).map("".join)


def sections(*places: int) -> np.ndarray:
    return np.array(places, np.int64)


def of_bytes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def permitted(tokens: np.ndarray, edges: Edges) -> list[int]:
    """Cuts that are permitted, one asked for at a time."""
    return [cut for cut in range(1, len(tokens) + 1) if last_edge(tokens, cut, cut, edges, 0) == cut]


def parts(text: str, kind: str) -> list[str]:
    """A text cut wherever its bytes may be cut."""
    data = text.encode()
    places = {0, *permitted(of_bytes(text), BYTES.of(kind)), len(data)}
    return [data[start:stop].decode() for start, stop in pairwise(sorted(places))]


@pytest.mark.parametrize(
    "number", ["2024", "61.6", "1.2.3", "2024-05-01", "¥3,499.00", "10:30", "１２．５", "٣٤"]
)
def test_B3_a_number_is_in_one_piece(number):
    assert number in parts(f"In {number}, or {number}.", "number")


def test_B3_marks_that_join_no_digits_belong_to_no_number():
    assert parts("3. x-1 1..2", "number") == ["3", ".", " ", "x", "-", "1", " ", "1", ".", ".", "2"]


def test_B7_characters_are_whole_their_marks_and_joined_emoji_included():
    given = ["é", "e\u0301", "保", "👩‍👩‍👧", "👍🏽", "🇨🇳", "\r\n", "x"]
    assert parts("".join(given), "number") == given


def test_words_are_letters_digits_and_underscores_and_ideographs_stand_alone():
    assert parts("a_1 né保留(x2)", "word") == ["a_1", " ", "né", "保", "留", "(", "x2", ")"]


def test_scripts_younger_than_the_table_are_letters_and_younger_symbols_are_not():
    assert parts("x\U0001e900\U00010d00 y🫠\u2b97\U0002a700z", "word") == [
        "x\U0001e900\U00010d00", " ", "y", "🫠", "\u2b97", "\U0002a700", "z",
    ]  # fmt: skip


def test_sentences_end_with_their_closing_marks():
    text = '"Go." (Now!) 他说：「好。」走吧！？J. Smith, 3. e.g. this…so 他……走'
    assert [part for part in parts(text, "sentence") if part != " "] == [
        '"Go."', "(Now!)", "他说：「好。」", "走吧！？", "J. Smith, 3. e.g. this…so 他……", "走",
    ]  # fmt: skip


def test_a_line_end_is_one_place_whatever_it_is_made_of():
    assert parts("a\nb\r\nc\rd\u2028e", "line") == ["a\n", "b\r\n", "c\r", "d\u2028", "e"]


def test_a_paragraph_begins_after_a_blank_line():
    assert parts("a\nb\n\nc\n \t\r\nd\n", "paragraph") == ["a\nb\n\n", "c\n \t\r\n", "d\n"]


def test_a_line_that_begins_inside_a_token_is_cut_behind_its_indentation():
    tokens = np.arange(4)
    edges = edge_table([b"def f():", b"\n\n   ", b" return", b" x"])
    assert permitted(tokens, edges.of("line")) == [2]
    assert permitted(tokens, edges.of("paragraph")) == [2]


def test_a_token_of_blanks_alone_begins_no_line():
    edges = edge_table([b"a\n", b"   ", b"b"])
    assert permitted(np.arange(3), edges.of("line")) == [1]


def test_a_character_spread_over_tokens_is_not_cut():
    edges = edge_table([b"\xe4\xbf", b"\x9d", b"a"]).of("number")
    assert permitted(np.arange(3), edges) == [2, 3]


def test_bytes_that_are_no_character_may_be_cut():
    edges = edge_table([b"\xe4\xbf", b"a", b"\x9d\x9d", b"\xff"]).of("number")
    assert permitted(np.arange(4), edges) == [1, 2, 3, 4]


def test_ids_outside_the_vocabulary_are_no_letters():
    edges = edge_table([b"a", b"b"]).of("word")
    assert permitted(np.array([0, 7, 1, -1, 0]), edges) == [1, 2, 3, 4, 5]
    assert permitted(np.array([0, 1]), edges) == [2]


def test_B2_chapters_are_found_where_they_begin_in_the_pool():
    edges = edge_table([]).of("section", sections(90, 3100, 6600, 9600, 20000))
    found = [last_edge(np.empty(0, np.int32), end - 1000, end, edges, 100) for end in (4000, 7000, 10500)]
    assert found == [3000, 6500, 9500]
    assert last_edge(np.empty(0, np.int32), 4000, 6000, edges, 100) == -1
    assert first_edge(np.empty(0, np.int32), 3001, 7000, edges, 100) == 6500
    assert first_edge(np.empty(0, np.int32), 6501, 9499, edges, 100) == -1


def test_B4_a_cut_moves_back_to_the_last_place_within_reach_or_there_is_none():
    text = "One. Two three.\nFour\n\nFive, six seven eight"
    tokens, end = of_bytes(text), len(text) - 2
    reach = {"sentence": text.index("Five"), "line": text.index("Five"), "paragraph": text.index("Five")}
    assert {kind: last_edge(tokens, 1, end, BYTES.of(kind), 0) for kind in reach} == reach
    assert last_edge(tokens, end - 10, end, BYTES.of("line"), 0) == -1
    assert last_edge(tokens, 1, 20, BYTES.of("line"), 0) == text.index("Four")
    assert last_edge(tokens, 1, 20, BYTES.of("sentence"), 0) == text.index("Four")
    assert last_edge(tokens, 1, 15, BYTES.of("sentence"), 0) == len("One. Two three.")
    assert last_edge(tokens, 1, 20, BYTES.of("paragraph"), 0) == -1


def test_B8_a_start_moves_forward_to_the_first_place_of_an_overlap():
    text = "One. Two three.\nFour\n\nFive, six seven eight"
    tokens = of_bytes(text)
    assert first_edge(tokens, 1, 30, BYTES.of("line"), 0) == text.index("Four")
    assert first_edge(tokens, 1, 30, BYTES.of("paragraph"), 0) == text.index("Five")
    assert first_edge(tokens, 1, 14, BYTES.of("line"), 0) == -1


def test_every_kind_may_cut_where_a_section_begins():
    tokens = of_bytes("12345 678")
    for kind in ALIGN[1:]:
        assert last_edge(tokens, 1, 4, BYTES.of(kind, sections(12)), 10) == 2
        assert first_edge(tokens, 1, 4, BYTES.of(kind, sections(12)), 10) == 2


def test_a_document_is_never_cut_at_its_start():
    assert last_edge(of_bytes("a b"), 0, 0, BYTES.of("number", sections(7)), 7) == -1


@lru_cache
def table(make):
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = make(Path(folder))
    vocabulary = token_bytes(tokenizer)
    return tokenizer, vocabulary, edge_table(vocabulary)


def check(text, tokenizer, vocabulary, edges):
    tokens = tokenizer.encode_batch([text])[0]
    spelt = [vocabulary[number] for number in tokens.tolist()]
    for kind in TEXT_KINDS:
        assert permitted(tokens, edges.of(kind)) == permitted_cuts(spelt, kind), kind


@settings(max_examples=200)
@given(texts)
def test_the_table_says_of_bytes_what_regular_expressions_say_of_the_text(text):
    check(text, load_tokenizer("bytes"), token_bytes(load_tokenizer("bytes")), BYTES)


@pytest.mark.parametrize("make", DECODED_AS_WRITTEN, ids=lambda make: make.__name__)
@settings(max_examples=100)
@given(text=texts)
def test_the_table_says_of_tokens_what_regular_expressions_say_of_the_text(make, text):
    check(text, *table(make))


@pytest.mark.parametrize("make", [byte_level, composed, fallback], ids=lambda make: make.__name__)
@settings(max_examples=100)
@given(text=texts, kind=st.sampled_from(TEXT_KINDS))
def test_B7_every_piece_decodes_and_together_they_are_the_text_as_the_tokenizer_has_it(make, text, kind):
    tokenizer, _, edges = table(make)
    tokens = tokenizer.encode_batch([text])[0]
    places = sorted({0, *permitted(tokens, edges.of(kind)), len(tokens)})
    spelt = [table(make)[1][number] for number in tokens.tolist()]
    pieces = [b"".join(spelt[start:stop]).decode() for start, stop in pairwise(places)]
    if make is fallback:  # it strips a space that it has put before the text
        assert "".join(pieces).removeprefix(" ") == tokenizer.decode(tokens)
    else:
        assert [tokenizer.decode(tokens[start:stop]) for start, stop in pairwise(places)] == pieces
        assert "".join(pieces) == tokenizer.normalise(text)


@settings(max_examples=200)
@given(texts, st.integers(0, 60), st.integers(0, 60), st.sampled_from(ALIGN[1:]), st.sets(st.integers(1, 60)))
def test_the_last_and_the_first_permitted_place_of_a_stretch(text, low, size, kind, begins):
    tokens = of_bytes(text)
    low, high = min(low, len(tokens)), min(low + size, len(tokens))
    edges = BYTES.of(kind, sections(*sorted(place + 5 for place in begins)))
    plain = set() if kind == "section" else set(permitted(tokens, BYTES.of(kind)))
    inside = [cut for cut in plain | begins if max(low, 1) <= cut <= high]
    assert last_edge(tokens, low, high, edges, 5) == max(inside, default=-1)
    assert first_edge(tokens, low, high, edges, 5) == min(inside, default=-1)


@settings(max_examples=100)
@given(st.lists(st.binary(min_size=1, max_size=5), max_size=12), st.lists(st.integers(0, 11), max_size=30))
def test_a_coarser_kind_permits_less(vocabulary, ids):
    tokens = np.array(ids, np.int32)
    edges = edge_table(vocabulary)
    found = {kind: set(permitted(tokens, edges.of(kind))) for kind in TEXT_KINDS}
    assert found["paragraph"] <= found["line"] <= found["sentence"] <= found["word"] <= found["number"]


def test_sections_are_found_alike_with_and_without_a_vocabulary():
    where = sections(90, 3100, 6600, 9600, 20000)
    alone, with_texts = section_table(where), BYTES.of("section", where)
    tokens = np.zeros(1, np.int32)
    for low, high in ((3000, 4000), (1, 99), (2999, 2999), (6501, 9499), (6500, 20000)):
        for look in (last_edge, first_edge):
            assert look(tokens, low, high, alone, 100) == look(tokens, low, high, with_texts, 100)


def test_the_classes_of_characters_are_pinned():
    digest = hashlib.sha256(character_classes().tobytes()).hexdigest()
    assert digest == "e0ff58d8a6fd7ef11f165963add91c07a6812121a64b3b0b92b47b3f1b3fcb74"
