"""Megatron blends, as people keep them in files."""

from fractions import Fraction

import pytest

from recipe.config.blend import names_of, read_blend
from recipe.errors import RecipeError

HALVES = {"web": Fraction(1, 2), "code": Fraction(1, 2)}
THIRTY_SEVENTY = {"web": Fraction(30), "code": Fraction(70)}


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("30 d/web_text_document 70 d/code_text_document", THIRTY_SEVENTY),
        ("30 d/web_text_document\n70 d/code_text_document\n", THIRTY_SEVENTY),
        ("30 d/web.bin 70 d/code.bin", THIRTY_SEVENTY),
        ("0.5 web 0.5 code", HALVES),
        ("--data-path 0.5 web \\\n  0.5 code \\\n", HALVES),
        ('DATA_PATH="0.5 web 0.5 code"', HALVES),
        ("DATA_PATH=(\n  0.5 web  # English\n  0.5 'code'\n)\n", HALVES),
        ("# my blend\n5e-1 web .5 code", HALVES),
        ('{"train": ["30", "web", "70", "code"], "valid": null}', THIRTY_SEVENTY),
        ('{"train": [30, "web", 70, "code"]}', THIRTY_SEVENTY),
        ('{"train": "30 web 70 code"}', THIRTY_SEVENTY),
        ("web code", None),
        ("web", None),
    ],
)
def test_a_blend_is_read_in_every_form(text, weights):
    blend = read_blend(text, "blend.txt")
    assert blend.weights == weights
    assert list(blend.prefixes) == ["web", "code"][: len(blend.prefixes)]


def test_weights_are_what_is_written_not_floats():
    blend = read_blend("0.1 a 0.2 b 0.7 c", "b")
    assert sum(blend.weights.values()) == 1


def test_a_prefix_named_twice_is_one_pool_with_both_weights():
    blend = read_blend("1 d/web 2 d/code 3 d/web", "b")
    assert blend.weights == {"web": 4, "code": 2}
    assert blend.repeated == ("web",)


def test_splits_with_blends_of_their_own_are_named():
    assert read_blend('{"train": ["web"], "valid": ["v"], "test": ["t"]}', "b").other_splits == (
        "valid",
        "test",
    )


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "blend.txt"),
        ("30 web 70", "blend.txt"),
        ("30 web code 70", "word 3"),
        ("web 30 code 70", "word 1"),
        ("-1 web 2 code", "web"),
        ("0 web 0 code", "blend.txt"),
        ("30 'web", "blend.txt"),
        ('{"train": ', "blend.txt"),
        ('{"valid": ["web"]}', "train"),
    ],
)
def test_what_is_no_blend_is_told(text, where):
    with pytest.raises(RecipeError) as caught:
        read_blend(text, "blend.txt")
    assert caught.value.problems[0].where == where


@pytest.mark.parametrize(
    ("prefixes", "names"),
    [
        (["a/web_text_document"], ["web"]),
        (["web/part0", "code/part0"], ["web_part0", "code_part0"]),
        (["x/web/part0", "y/web/part0", "z/part1"], ["x_web_part0", "y_web_part0", "part1"]),
        (["a/b", "a_b", "b"], ["a_b_1", "a_b_2", "b"]),
        (["/data/zh wiki.v2_document"], ["zh_wiki_v2"]),
        (["..", "/"], ["pool_1", "pool_2"]),
    ],
)
def test_C04_names_are_short_and_all_different(prefixes, names):
    assert names_of(prefixes) == names
    assert len(set(names)) == len(names)
