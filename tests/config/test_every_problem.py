# ruff: noqa: E501  (tables: a row is a line)
"""Every problem in one error: no fault hides another, whatever else is wrong."""

import copy
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.config import PoolConfig, Recipe, load_recipe, recipe_from_plain, recipe_to_plain
from recipe.config.partial import UnsoundError, read_partly, run_checks
from recipe.config.problems import Fault
from recipe.errors import RecipeError

SOUND = {
    "name": "sound",
    "seed": 1,
    "tokenizer": "bytes",
    "model": {"max_positions": 1024},
    "pools": {
        "web": {"path": "web"},
        "code": {"path": "code", "stock": "1M"},
        "maths": {"stock": "1B", "slicing": {"tail": "drop", "stride": 16}},
    },
    "groups": {
        "g": {"pools": ["code", "maths"], "within": {"shares": {"code": "60%", "maths": "40%"}}},
        "h": {"pools": ["web"]},
        "k": {"pools": ["web"]},
    },
    "stages": {
        "exact": {
            "tokens": "1M",
            "context": 512,
            "batch": {"sequences": 8},
            "quotas_tokens": {"web": "600k", "g": "400k"},
        },
        "short": {
            "tokens": "1M",
            "context": 512,
            "batch": {"tokens": 4096},
            "packing": "concat",
            "quotas": {"web": "60%", "g": "40%"},
        },
        "long": {
            "steps": 100,
            "context": 512,
            "batch": {"sequences": 8},
            "chunk": 8192,
            "slicing": {"window": 256, "stride": 128, "min_tail": 8},
            "weights": {"web": 3, "g": 2},
        },
        "late": {
            "until": "100M",
            "context": 512,
            "batch": {"ramp": {"0": 8, "50M": 16}},
            "quotas": {"web": "60%", "g": "40%"},
        },
        "end": {"steps": 1, "context": 512, "batch": {"sequences": 8}, "weights": {"web": 1, "g": 1}},
    },
}
SHORT, LONG, LATE = "stages.short", "stages.long", "stages.late"
POSITION_OF_LATE = (f"{LATE}.until", f"{LATE}.chunk")


class Row(NamedTuple):
    """A fault that does not depend on the others, unless it says so."""

    changes: dict[str, Any]
    places: list[str]
    """Of its problems, in order."""
    spoils: tuple[str, ...] = ()
    """Places that cannot be judged beside it; of a pool's slicing, with the stage."""
    words: str = ""
    """Rows with the same word here show each other's values in their messages."""


FAULTS = [
    # types and unknown keys
    Row({"seed": -1}, ["seed"]),
    Row({"sed": 1}, ["sed"]),
    Row({"count": "tokens"}, ["count"]),
    Row({"pools.web.pat": "x"}, ["pools.web.pat"]),
    Row({"pools.maths.max_epochs": 0}, ["pools.maths.max_epochs"]),
    Row({"pools.code.stock": "soon"}, ["pools.code.stock"]),
    Row({"pools.web.min_tokens": 0}, ["pools.web.min_tokens"], ("pools.web.by",)),
    Row({"pools.web.where": {"kind": {"mn": 1}}}, ["pools.web.where.kind.mn"], ("pools.web.by",)),
    Row({"pools.web.by": "group"}, ["pools.web.by"]),
    Row({"pools.code.of": "wep"}, ["pools.code.of", "pools.code.path"]),
    Row({"sink": "parket"}, ["sink.format"]),
    Row({f"{LONG}.quotta": 1}, [f"{LONG}.quotta"]),
    Row({f"{LONG}.slicing.strid": 1}, [f"{LONG}.slicing.strid"]),
    Row({f"{LONG}.slicing.oversize": "route"}, [f"{LONG}.slicing.oversize"]),
    Row({f"{LONG}.packing": {"attention": "groups"}}, [f"{LONG}.packing.attention"]),
    Row({f"{LATE}.slicing.window": "soon"}, [f"{LATE}.slicing.window"], (f"{LATE}.slicing.stride",)),
    Row({f"{LONG}.name": "x"}, [f"{LONG}.name"]),
    # one way of several
    Row({"tokenizer": {"builtin": "bytes", "path": "x"}}, ["tokenizer.path"]),
    Row({"pools.web.path": None}, ["pools.web.path"]),
    Row({f"{LONG}.tokens": "1M"}, [f"{LONG}.steps"], POSITION_OF_LATE),
    Row({f"{LONG}.quotas": {"web": "60%", "g": "40%"}}, [f"{LONG}.weights"]),
    Row({f"{LONG}.batch.tokens": 4096}, [f"{LONG}.batch.tokens"], (f"{LONG}.chunk", *POSITION_OF_LATE)),
    # values of a stage against each other
    Row({f"{SHORT}.batch.tokens": 1000}, [f"{SHORT}.batch.tokens"], POSITION_OF_LATE),
    Row({f"{SHORT}.slicing.tail": "backfill"}, [f"{SHORT}.slicing.tail"]),
    Row({f"{SHORT}.slicing.oversize": "drop"}, [f"{SHORT}.slicing.oversize"]),
    Row({f"{SHORT}.slicing.window": 600}, [f"{SHORT}.slicing.window"]),
    Row({f"{LATE}.slicing.stride": 600}, [f"{LATE}.slicing.stride"]),
    Row({f"{LONG}.slicing.stride": 300}, [f"{LONG}.slicing.stride"]),
    Row({f"{LONG}.slicing.min_tail": 300}, [f"{LONG}.slicing.min_tail"]),
    Row({f"{LONG}.chunk": 100}, [f"{LONG}.chunk"]),
    Row({"stages.exact.quotas_tokens.g": "300k"}, ["stages.exact.quotas_tokens"]),
    # stages in a row
    Row({f"{LATE}.until": "1M"}, [f"{LATE}.until"], (f"{LATE}.chunk",)),
    Row({f"{LATE}.chunk": 5000}, [f"{LATE}.chunk"]),
    Row({"stages.exact.quota_ramp": {"over": 100, "steps": 2}}, ["stages.exact.quota_ramp"]),
    Row({f"{SHORT}.quota_ramp": {"over": "2M", "steps": 2}}, [f"{SHORT}.quota_ramp.over"]),
    Row({f"{LATE}.quota_ramp": {"over": 0, "steps": 0}}, [f"{LATE}.quota_ramp.over", f"{LATE}.quota_ramp.steps"]),
    # stages against the rest of the recipe
    Row({"model.max_positions": 256}, [f"stages.{name}.context" for name in SOUND["stages"]]),
    Row({f"{SHORT}.quotas.web": "70%"}, [f"{SHORT}.quotas"], words="shares of short"),
    Row({f"{SHORT}.quotas.nobody": "0%"}, [f"{SHORT}.quotas.nobody"], words="shares of short"),
    Row({f"{SHORT}.quotas.code": "0%"}, [f"{SHORT}.quotas.code"], words="shares of short"),
    Row({f"{LONG}.weights.web": "60%"}, [f"{LONG}.weights.web"]),
    Row({f"{LONG}.weights.nobody": 1}, [f"{LONG}.weights.nobody"]),
    Row({f"{LATE}.quotas.g": 40}, [f"{LATE}.quotas.g"], ("pools.maths.slicing.window late",)),
    Row({"stages.end.weights": {"web": 1}}, ["stages.end.weights.code", "stages.end.weights.maths"], ("pools.maths.slicing.window end",)),
    Row({"pools.maths.slicing.window": 513}, ["pools.maths.slicing.window"]),
    # groups
    Row({"groups.g.within.shares.code": "80%"}, ["groups.g.within.shares"], words="shares in g"),
    Row({"groups.g.within.shares.web": "0%"}, ["groups.g.within.shares.web"], words="shares in g"),
    Row({"groups.h.pools": ["web", "web"]}, ["groups.h.pools"]),
    Row({"groups.k.pools": ["nobody", 5]}, ["groups.k.pools.1", "groups.k.pools"]),
    # what stands at the top
    Row({"start": {"prior": "soon"}}, ["start.weights", "start.prior"]),
    Row({"policy": {"_target_": "B", "n": {"_target_": "c"}}}, ["policy.every", "policy._target_", "policy.n._target_"]),
    Row({"trainer": {"a": 1j}}, ["trainer.a"]),
    Row({"simulate_budget": 0}, ["simulate_budget"]),
    Row({"pools.web.renamed_from": "maths"}, ["pools.web.renamed_from"]),
    # stages written from others
    Row({"stages.more": {"like": "longer"}}, ["stages.more.like"], words="stages"),
    Row({"stages.no name": {"like": "end", "weights": {"web": 1, "g": 0}}}, ["stages.no name"], words="stages"),
    Row({"curriculum": ["exact", "shrt", "long", "late", "end"]}, ["curriculum"], (*POSITION_OF_LATE, "stages.exact.quota_ramp"), words="stages"),
]  # fmt: skip
IDS = [f"{row.places[0]}-{number}" for number, row in enumerate(FAULTS)]


def changed(rows):
    data = copy.deepcopy(SOUND)
    for row in rows:
        for key, value in row.changes.items():
            *above, last = key.split(".")
            holder = data
            for name in above:
                holder = holder.setdefault(name, {})
            holder[last] = copy.deepcopy(value)
    return data


def problems(data):
    try:
        recipe_from_plain(data, source="r.yaml")
    except RecipeError as error:
        return list(error.problems)
    return []


ALONE = [problems(changed([row])) for row in FAULTS]


def can_be_told(problem, rows):
    stage = problem.expected.rpartition(", in stage ")[2] if ", in stage " in problem.expected else ""
    place = f"{problem.where} {stage}".strip()
    return not any(place in row.spoils for row in rows)


def check(numbers):
    """Each fault is told as if it were alone, as far as it can be judged beside the others; nothing else is."""
    rows = [FAULTS[number] for number in numbers]
    found = problems(changed(rows))
    expected = [
        problem
        for number, row in zip(numbers, rows, strict=True)
        for problem in ALONE[number]
        if can_be_told(problem, [other for other in rows if other is not row])
    ]
    words = [row.words for row in rows if row.words]
    if len(set(words)) < len(words):
        assert sorted(problem.where for problem in found) == sorted(problem.where for problem in expected)
    else:
        assert sorted(map(str, found)) == sorted(map(str, expected))
    assert len(set(map(str, found))) == len(found)


def test_the_recipe_is_sound():
    assert problems(SOUND) == []


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=IDS)
def test_a_fault_alone_is_told_at_its_places_and_nowhere_else(number):
    assert list(dict.fromkeys(problem.where for problem in ALONE[number])) == FAULTS[number].places


@pytest.mark.parametrize("number", range(len(FAULTS)), ids=IDS)
def test_every_pair_of_faults_is_told_in_full(number):
    for other in range(number + 1, len(FAULTS)):
        check([number, other])


@given(st.sets(st.integers(0, len(FAULTS) - 1), min_size=3, max_size=6))
def test_several_faults_are_told_in_full(numbers):
    check(sorted(numbers))


def test_all_faults_together_are_told_in_full():
    found = {problem.where for problem in problems(changed(FAULTS))}
    spoilt = {place.split(" ")[0] for row in FAULTS for place in row.spoils}
    assert found | spoilt >= {place for row in FAULTS for place in row.places}


def told(text, tmp_path):
    file = tmp_path / "r.yaml"
    file.write_text(text)
    with pytest.raises(RecipeError) as caught:
        load_recipe(file)
    return {problem.where for problem in caught.value.problems}


def test_faults_inside_a_stage_do_not_hide_those_of_the_stage(tmp_path):
    text = """
        seed: 1
        pools: {a: {path: a}}
        stages: {s: {steps: 2, tokens: 5k, context: 8, batch: {sequences: 1, tokens: 8}, quotas: {a: 100%},
                     weights: {a: 1}, slicing: {window: 4, stride: 5}}}
    """
    expected = {"stages.s.steps", "stages.s.weights", "stages.s.batch.tokens", "stages.s.slicing.stride"}
    assert told(text, tmp_path) == expected


def test_faults_of_a_stage_do_not_hide_those_of_the_recipe(tmp_path):
    text = """
        seed: 1
        model: {max_positions: 4}
        pools: {a: {path: a}}
        stages: {s: {steps: 2, context: 8, batch: {sequences: 1}, quotas: {a: 100%}, slicing: {window: 9},
                     chunk: 2}}
    """
    assert told(text, tmp_path) == {"stages.s.slicing.window", "stages.s.context", "stages.s.chunk"}


def test_a_value_that_leads_nowhere_hides_nothing(tmp_path):
    text = """
        seed: "${nope}"
        max_epochs: "???"
        model: {max_positions: 4}
        pools: {a: {path: "${oc.env:NO_SUCH_VARIABLE_HERE}"}, b: {path: "b", stok: "${nope}"}}
        every_stage: {batch: {sequences: "${seed}"}}
        stages:
          s: {steps: 2, context: 8, quotas: {a: "${nope}", b: 10%, c: rest}, slicing: "${pools.b}"}
          t: {like: "${nope}", tokens: 1k, chunk: 2}
    """
    lost = {"seed", "max_epochs", "pools.a.path", "pools.b.stok", "every_stage.batch.sequences"}
    lost |= {"stages.s.quotas.a", "stages.t.like"}
    unknown = {"stages.s.quotas.c", "stages.s.slicing.path", "stages.s.slicing.stok"}
    assert told(text, tmp_path) == lost | unknown | {"stages.s.context"}


def test_a_ramp_tells_all_its_faults():
    data = changed([Row({f"{LATE}.batch.ramp": {"5k": 0, "soon": 4, "4k": "many"}}, [])])
    found = [(problem.where, problem.expected) for problem in problems(data)]
    assert found == [
        (f"{LATE}.batch.ramp.5k", "1 sequence or more"),
        (f"{LATE}.batch.ramp.soon", "a position of the run, then sequences"),
        (f"{LATE}.batch.ramp.4k", "a position of the run, then sequences"),
        (f"{LATE}.batch.ramp.4k", "a position after 5000"),
    ]


def test_every_stage_is_judged_without_a_stage():
    every = {"slicing": {"strid": 1}, "context": 0, "quotas": {"web": "50%"}}
    found = problems({**SOUND, "stages": {}, "every_stage": every})
    assert {problem.where for problem in found} == {
        "stages",
        "every_stage.slicing.strid",
        "every_stage.context",
    }


# --- reading what is sound


def test_of_a_sound_recipe_everything_is_read():
    plain = recipe_to_plain(recipe_from_plain(SOUND, source="r.yaml"))
    plain["stages"] = {name: {**stage, "name": name} for name, stage in plain["stages"].items()}
    assert read_partly(Recipe, plain) == recipe_from_plain(SOUND, source="r.yaml")


def test_a_check_ends_where_it_touches_what_is_unsound():
    pool = read_partly(PoolConfig, {"path": 5, "stock": "1k"})
    assert pool.stock == 1000
    with pytest.raises(UnsoundError):
        _ = pool.path

    def look(pool):
        yield Fault(("stock",), pool.stock, "another", "change it")
        yield Fault(("path",), pool.path, "another", "change it")

    assert [fault.place for fault in run_checks([look, look], pool)] == [("stock",), ("stock",)]


JUNK = [None, True, 5, -1, 1.5, "x", "", "rest", "5%", [], [1], ["web"], {}, {"a": 1}, {"web": None}, {1: 2}]


def places(value, above=()):
    """Every place of plain values."""
    for key, below in value.items():
        yield (*above, key)
        if isinstance(below, dict):
            yield from places(below, (*above, key))


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.sampled_from(list(places(SOUND))), st.sampled_from(JUNK)), min_size=1, max_size=5)
)
def test_whatever_stands_anywhere_is_read_or_refused(junk):
    data = copy.deepcopy(SOUND)
    for (*above, last), value in junk:
        holder = data
        for key in above:
            holder = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(holder, dict):
            holder[last] = copy.deepcopy(value)
    found = list(map(str, problems(data)))
    assert len(set(found)) == len(found)
