"""What a rule does to texts, counted by hand; and what is advised of it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import recipe
from recipe.config import recipe_from_plain
from recipe.mixing.diagnosis import diagnose
from recipe.mixing.plan import make_plan
from recipe.mixing.planned import Plan
from recipe.sequences.placing import PLACES


def plan_of(folder, texts, *, tokens=64, slicing=None, tokenizer="bytes") -> Plan:
    """A plan over one pool of byte texts, with contexts of 16."""
    recipe.write_pool(
        folder / "p", [np.frombuffer(text.encode(), np.uint8) for text in texts], vocab_size=257, eos=256
    )
    stage = {
        "tokens": tokens,
        "context": 16,
        "batch": {"sequences": 1},
        "quotas": {"p": "100%"},
        "slicing": slicing or {},
    }
    plain = {
        "seed": 1,
        "tokenizer": tokenizer,
        "max_epochs": 99,
        "pools_root": str(folder),
        "pools": {"p": {"path": "p"}},
        "stages": {"one": stage},
    }
    return make_plan(recipe_from_plain(plain, source="here"))


def found(plan: Plan):
    return diagnose(plan)["one"]["p"]


def test_g6_readings_of_tokens_are_counted_one_by_one(tmp_path):
    """24 tokens in windows 0..16, 8..24: the middle 8 twice."""
    one = found(plan_of(tmp_path, ["x" * 24], slicing={"window": 16, "stride": 8}))
    assert one.readings == (0, 16, 8)
    assert one.mean_readings == Fraction(32, 24) and (one.body, one.overlap) == (32, 8)


@pytest.mark.parametrize("stride", [1, 2, 4])
def test_a8_inner_tokens_are_read_window_over_stride_times(tmp_path, stride):
    one = found(plan_of(tmp_path, ["y" * 200], slicing={"window": 16, "stride": stride}))
    assert len(one.readings) - 1 == 16 // stride
    assert one.readings[-1] > 150


def test_g6_places_of_cuts_are_the_coarsest_that_they_are(tmp_path):
    text = "fourteen byte\n\nabcdef 61.6 gh. Ijklmn"
    one = found(plan_of(tmp_path, [text], slicing={"window": 15, "stride": 15}))
    assert one.places == dict.fromkeys(PLACES, 0) | {"paragraph": 1, "sentence": 1}


def test_without_a_tokenizer_places_are_not_known(tmp_path):
    one = found(plan_of(tmp_path, ["z" * 40], tokenizer=None))
    assert (one.cuts, one.places) == (2, None)


def test_rows_and_pieces_fall_into_eighths(tmp_path):
    one = found(plan_of(tmp_path, ["a" * 16, "b" * 7]))
    assert one.lengths == (0, 0, 0, 1, 0, 0, 0, 1)
    assert one.filling == (0, 0, 0, 1, 0, 0, 0, 1)


def test_neighbours_are_pairs_side_by_side(tmp_path):
    one = found(plan_of(tmp_path, ["a" * 4, "b" * 4, "c" * 3]))
    assert (one.neighbours, one.documents_per_row) == (2, 3)


def test_g6_every_epoch_is_composed_before_training(tmp_path):
    one = found(plan_of(tmp_path, ["d" * 40], tokens=200, slicing={"density": {"middle": 0.5}}))
    assert len(one.epochs) == 5
    assert all(epoch.body + sum(epoch.dropped.values()) == 40 for epoch in one.epochs)


@pytest.mark.parametrize(
    ("texts", "how", "told"),
    [
        (["e" * 40], {"slicing": {"tail": "drop"}}, "tail: drop loses 20 % of its tokens"),
        (["f" * 40], {"slicing": {"stride": 8}}, "inner tokens are read 2 times"),
        (["g" * 4] * 9, {"slicing": {"stride": 8}}, "no effect on p"),
        (["h" * 40], {"tokens": 640}, "p (13.3 times); slicing: {offset: random}"),
    ],
)
def test_advice_names_what_may_be_better(tmp_path, texts, how, told):
    assert any(told in sentence for sentence in plan_of(tmp_path, texts, **how).advice)


@pytest.mark.parametrize("how", [{}, {"tokens": 640, "slicing": {"offset": "random"}}])
def test_nothing_is_advised_where_nothing_may_be_better(tmp_path, how):
    assert plan_of(tmp_path, ["i" * 40], **how).advice == ()
