import pytest

from recipe.config import difference, fingerprint
from recipe.config.identity import in_short

PINNED = "3553182c196ccb9c60bb8ddccfba5ccfd86f15ae7714e16b3b1f826644eda97e"
LONG = {"stages.long": {"like": "short", "context": 1024}}


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "other"},
        {"pools_root": "/data"},
        {"pools.web.path": "elsewhere"},
        {"stages.short.tokens": "1_000_000"},
        {"stages.short.packing": "best_fit"},
        {"stages.short.quotas": {"web": "61.60%", "code": "rest"}},
    ],
)
def test_names_places_and_spelling_are_no_part_of_the_identity(small, changes):
    assert fingerprint(small(changes)) == fingerprint(small())


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 2},
        {"stages.short.tokens": "2M"},
        {"stages.short.slicing.stride": 100},
        {"stages.short.quotas": {"web": "61.7%", "code": "rest"}},
        {"pools.web.max_epochs": 3},
        {"pools": {"code": {"path": "pools/code"}, "web": {"path": "pools/web"}}},
        LONG,
        {"stages.long": {"like": "short", "quota_ramp": {"over": "100k", "steps": 64}}},
        {"labels": "inputs"},
        {"trainer": {}},
        {"start": {"weights": "w"}},
        {"pools.web.renamed_from": "old"},
        {"policy": {"_target_": "a.B", "every": 1}},
        {"simulate_budget": "1T"},
    ],
)
def test_whatever_can_change_the_stream_changes_the_identity(small, changes):
    assert fingerprint(small(changes)) != fingerprint(small())


def test_settings_of_the_trainer_are_told_apart_whatever_their_shape(small):
    shapes = [
        {"a": 1},
        {"a": "1"},
        {"a": [["b", 1]]},
        {"a": {"b": 1}},
        {"a": True},
        {"a": None},
        {"a": []},
        {"a": {}},
    ]
    assert len({fingerprint(small({"trainer": shape})) for shape in shapes}) == len(shapes)
    assert fingerprint(small({"trainer": {"a": 1, "b": 2}})) == fingerprint(
        small({"trainer": {"b": 2, "a": 1}})
    )


def test_the_order_of_stages_counts(small):
    assert fingerprint(small(LONG)) != fingerprint(small({**LONG, "curriculum": ["long", "short"]}))


def test_a_fingerprint_is_64_hex_digits_and_does_not_drift(small):
    assert fingerprint(small()) == PINNED


def test_a_difference_names_the_key_and_both_values(small):
    changed = small(
        {"seed": 2, "stages.short.quotas": {"web": "60%", "code": "40%"}, "pools.web.max_epochs": 3}
    )
    assert difference(small(), changed) == [
        "seed: 1 → 2",
        "stages.short.quotas.web: 61.6% → 60%",
        "stages.short.quotas.code: 38.4% → 40%",
        "pools.web.max_epochs: (nothing) → 3",
    ]


def test_a_ramp_is_shown_key_by_key(small):
    ramps = [{"over": "100k", "steps": 64}, {"over": "100k", "steps": 32}]
    old, new = (small({"stages.long": {"like": "short", "quota_ramp": ramp}}) for ramp in ramps)
    assert fingerprint(old) != fingerprint(new)
    assert difference(old, new) == ["stages.long.quota_ramp.steps: 64 → 32"]


def test_a_difference_in_free_parts_names_the_key(small):
    old, new = (
        {"trainer": {"lr": lr, "a": [1]}, "policy": {"_target_": "a.B", "every": 1, "lr": lr}}
        for lr in (1, 2)
    )
    assert difference(small(old), small(new)) == ["policy.lr: 1 → 2", "trainer.lr: 1 → 2"]


def test_equal_recipes_have_no_difference(small):
    assert difference(small(), small()) == []


def test_a_new_order_is_a_difference(small):
    swapped = {"pools": {"code": {"path": "pools/code"}, "web": {"path": "pools/web"}}}
    assert difference(small(), small(swapped)) == ["pools: order web, code → code, web"]


def test_a_stage_that_is_gone_is_told_in_a_line_and_a_key_that_is_gone_as_it_is(small):
    lines = difference(small(LONG), small())
    assert len(lines) > 1 and in_short(lines) == ["stage long left out"]
    key = ["stages.long.quota_ramp.steps: 4 → (nothing)"]
    assert in_short(key) == key


def test_a_stage_that_is_gone_is_a_difference(small):
    assert "stages.long.context: 1024 → (nothing)" in difference(small(LONG), small())
