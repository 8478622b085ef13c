"""every_stage, like and curriculum."""

import pytest

from recipe.config import recipe_from_plain
from recipe.config.merging import merge_stages

QUOTAS = {"web": "60%", "code": "40%"}


def stages_of(every=None, curriculum=None, **stages):
    data = {"seed": 1, "pools": {"web": {"path": "w"}, "code": {"path": "c"}}, "stages": stages}
    data |= {
        key: value for key, value in (("every_stage", every), ("curriculum", curriculum)) if value is not None
    }
    return recipe_from_plain(data, source="r.yaml").stages


FIRST = {"tokens": "1M", "context": 512, "batch": {"sequences": 8}, "quotas": QUOTAS}


def test_every_stage_lies_under_each_stage():
    every = {"context": 512, "batch": {"sequences": 8}, "slicing": {"stride": 256, "tail": "drop"}}
    stages = stages_of(
        every,
        a={"tokens": "1M", "quotas": QUOTAS},
        b={"tokens": "1M", "quotas": QUOTAS, "context": 1024, "slicing": {"stride": 512}},
    )
    assert (stages["a"].context, stages["a"].slicing.stride, stages["a"].slicing.tail) == (512, 256, "drop")
    assert (stages["b"].context, stages["b"].slicing.stride, stages["b"].slicing.tail) == (1024, 512, "drop")


def test_like_starts_from_another_stage_over_several_steps():
    stages = stages_of(
        a=FIRST, b={"like": "a", "quotas": {"web": "rest", "code": "10%"}}, c={"like": "b", "context": 1024}
    )
    assert stages["c"].parts == stages["b"].parts != stages["a"].parts
    assert stages["c"].tokens == 1_000_000


def test_a_stage_may_be_like_a_later_one():
    assert stages_of(a={"like": "b"}, b=FIRST)["a"].tokens == 1_000_000


@pytest.mark.parametrize("length", [{"steps": 5}, {"until": "3M"}, {"tokens": "2M"}])
def test_a_length_replaces_the_inherited_one_whole(length):
    stage = stages_of(a=FIRST, b={"like": "a", **length})["b"]
    given = {key for key in ("tokens", "steps", "until") if getattr(stage, key) is not None}
    assert given == set(length)


@pytest.mark.parametrize("batch", [{"tokens": 1024}, {"ramp": {"0": 1, "1M": 2}}, {"sequences": 3}])
def test_a_batch_replaces_the_inherited_one_whole(batch):
    stage = stages_of(a=FIRST, b={"like": "a", "batch": batch})["b"]
    assert set(stage.batch.model_dump(exclude_none=True)) == set(batch)


@pytest.mark.parametrize(
    "shares", [{"weights": {"web": 1, "code": 3}}, {"quotas_tokens": {"web": 1, "code": 999_999}}]
)
def test_shares_replace_the_inherited_ones_whole(shares):
    stage = stages_of(a=FIRST, b={"like": "a", **shares})["b"]
    assert stage.quotas is None
    assert stage.shares_form == next(iter(shares))


def test_alternatives_of_every_stage_give_way_too():
    every = {"quotas": QUOTAS, "batch": {"sequences": 8}, "context": 512, "tokens": "1M"}
    stages = stages_of(every, a={"weights": {"web": 1, "code": 1}, "steps": 3}, b={})
    assert (stages["a"].shares_form, stages["b"].shares_form) == ("weights", "quotas")
    assert (stages["a"].tokens, stages["b"].tokens) == (None, 1_000_000)


def test_a_packing_by_name_merges_with_its_parts():
    every = {**FIRST, "packing": "concat"}
    stage = stages_of(every, a={"packing": {"attention": "sequence"}})["a"]
    assert (stage.packing.method, stage.packing.attention) == ("concat", "sequence")


def test_curriculum_is_the_order_of_the_stages():
    b = {"like": "a"}
    assert list(stages_of(a=FIRST, b=b)) == ["a", "b"]
    assert list(stages_of(curriculum=["b", "a"], a=FIRST, b=b)) == ["b", "a"]


def test_what_was_written_is_not_changed():
    data = {"every_stage": {"batch": {"sequences": 8}}, "stages": {"a": {"batch": {"tokens": 512}}}}
    merge_stages(data)
    assert data == {"every_stage": {"batch": {"sequences": 8}}, "stages": {"a": {"batch": {"tokens": 512}}}}


def test_null_takes_an_inherited_value_away():
    stage = stages_of(a={**FIRST, "chunk": "100k"}, b={"like": "a", "chunk": None})["b"]
    assert stage.chunk is None
