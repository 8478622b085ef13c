"""The JSON Schema describes what people write."""

import jsonschema
import pytest

from recipe.config import read_yaml, recipe_schema, recipe_to_plain
from recipe.config.shipped import shipped_conf
from recipe.config.stage import Stage
from recipe.config.vocabulary import VOCABULARY, keys_of

SCHEMA = recipe_schema()
FILES = sorted((shipped_conf() / "recipe").glob("*.yaml"))


def faults(data):
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(data)]


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_shipped_recipes_satisfy_it(file):
    assert faults(read_yaml(file)) == []


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"groups.g": ["web"], "tokenizer": "bytes", "sink": "parquet"},
        {"groups.g": {"pools": ["web"], "within": {"temperature": 0.3}}},
        {"stages.short.weights": {"web": 0.5, "code": "1/3"}, "stages.short.quotas": None},
        {"stages.short.batch": {"ramp": {"0": 1, "100B": 2}}, "stages.short.packing": "concat"},
        {"stages.long": {"like": "short"}, "curriculum": ["long", "short"], "every_stage": {"chunk": "1M"}},
        {"stages.long": {"like": "short", "quota_ramp": {"over": "200k", "steps": 64}}},
        {
            "stages.short.objective": {"web": "rest", "code": "10%"},
            "stages.long": {"like": "short", "objective": None},
        },
        {
            "stages.short.transform": {
                "web": {"fim": {"rate": "50%", "prefix": 4, "middle": "<m>", "suffix": 6}}
            }
        },
        {"start": {"weights": "w", "prior": "15T"}, "trainer": {"lr": "3e-4", "betas": [1, None]}},
        {"start": {"weights": "w", "prior": {"code": "15T"}}, "pools.web.renamed_from": "old"},
        {"stages.short.slicing": {"align": "word", "offset": "random", "density": {"middle": "1/3"}}},
        {"stages.short.slicing": {"stride": {"head": 8, "tail": "4Ki"}, "specials": "window", "density": 1}},
        {"stages.short.slicing": {"duplicates": "80%"}, "pools.web.slicing": {"duplicates": "drop"}},
        {"policy": {"_target_": "a.B", "every": "1M", "reference": {"web": 2}}, "simulate_budget": "1T"},
    ],
)
def test_what_loads_satisfies_it(plain, changes):
    data = plain(changes)
    data["stages"]["short"] = {
        key: value for key, value in data["stages"]["short"].items() if value is not None
    }
    assert faults(data) == []


def test_the_stored_form_satisfies_it(small):
    assert faults(recipe_to_plain(small())) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"sed": 1},
        {"seed": "soon"},
        {"stages.short.quotta": {}},
        {"stages.short.quotas": {"web": 1}},
        {"stages.short.slicing": {"tail": "kept"}},
        {"stages.short.batch": 8},
        {"stages.long": {"like": "short", "quota_ramp": {"over": "200k", "steps": 0}}},
        {"start": {"prior": "15T"}},
        {"policy": {"_target_": "a.B"}},
        {"trainer": 5},
        {"stages.short.objective": {"web": 90, "code": 10}},
        {"every_stage": {"quota_ramp": {"over": "200k", "steps": 4}}},
        {"stages.short.tokens": "10G"},
        {"every_stage": {"like": "short"}},
    ],
)
def test_what_does_not_load_does_not_satisfy_it(plain, changes):
    assert faults(plain(changes))


@pytest.mark.parametrize("model", ["QuotaRamp", "StartConfig", "PolicyConfig"])
def test_every_key_of_what_a_run_does_later_is_described(model):
    assert all(key.get("description") for key in SCHEMA["$defs"][model]["properties"].values())
    assert SCHEMA["$defs"][model]["description"]


def test_every_key_is_described_or_plain():
    assert set(SCHEMA["$defs"]["Stage"]["properties"]) == {*keys_of(Stage), "like"}
    assert set(SCHEMA["properties"]) == {*VOCABULARY.keys_at(()), "defaults"}
