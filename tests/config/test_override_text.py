import pytest
from pydantic_core import PydanticCustomError

from recipe.config import expand_sweep, sweep_labels
from recipe.config.override_text import read_override
from recipe.errors import RecipeError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("k=1", 1),
        ("k=-1", -1),
        ("k=true", True),
        ("k=null", None),
        ("k=", ""),
        ("k=1e9", "1e9"),
        ("k=1_000_000", "1_000_000"),
        ("k=695e0514", "695e0514"),
        ("k=0.1", "0.1"),
        ("k=10B", "10B"),
        ("k=no", "no"),
        ("k=2024_01", "2024_01"),
        ("k=2024-05-01", "2024-05-01"),
        ("k=007", "007"),
        ("k=inf", "inf"),
        ("k=nan", "nan"),
        ("k='7'", "7"),
        ("k=61.6%", "61.6%"),
        ("k=pools/web", "pools/web"),
        ("k=[en,no,1e5,1]", ["en", "no", "1e5", 1]),
        ("k={no: 1e5, 1e5: rest, true: 2}", {"no": "1e5", "1e5": "rest", "true": 2}),
        ("k={0: 256, 100B: 512}", {"0": 256, "100B": 512}),
        ("k={a:50%,b:rest}", {"a": "50%", "b": "rest"}),
        ("k={中文: 14%, en: rest}", {"中文": "14%", "en": "rest"}),
        ("k=数据/中文", "数据/中文"),
        ("k=${oc.env:HOME}", "${oc.env:HOME}"),
    ],
)
def test_G01_G03_overrides_read_as_yaml_does(text, value):
    assert read_override(text).value == value


@pytest.mark.parametrize(
    ("text", "kind", "key"),
    [
        ("a.b=1", "set", "a.b"),
        ("+a.b=1", "add", "a.b"),
        ("++a.b=1", "force", "a.b"),
        ("~a.b", "delete", "a.b"),
        ("~a.b=1", "delete", "a.b"),
        ("pools.中文.path=x", "set", "pools.中文.path"),
        ("pools.2024_01.path=x", "set", "pools.2024_01.path"),
        ("pool@pools.a=web", "set", "pool@pools.a"),
    ],
)
def test_an_override_is_a_kind_and_a_key(text, kind, key):
    change = read_override(text)
    assert (change.kind, change.key) == (kind, key)


@pytest.mark.parametrize(
    "text",
    ["a", "=1", "a..b=1", "a b=1", "+a", "a=[1", "a={x: 1", "a=$(", "a='x", "a.=1", "", "~"],
)
def test_what_is_no_override_is_refused(text):
    with pytest.raises(PydanticCustomError) as caught:
        read_override(text)
    assert caught.value.context["faults"][0].fix


@pytest.mark.parametrize("value", ["[" * 400 + "]" * 400, "7" * 5000, f"[1,{'7' * 5000}]"])
def test_a_value_that_runs_away_is_refused(value):
    with pytest.raises(PydanticCustomError):
        read_override(f"a={value}")


@pytest.mark.parametrize("text", ["seed=1,2", "seed=range(1,3)", "seed=choice(1,2)", "seed=glob(*)"])
def test_a_sweep_needs_m(text):
    with pytest.raises(PydanticCustomError) as caught:
        read_override(text)
    assert (
        "-m" in caught.value.context["faults"][0].fix
        or "listed" in caught.value.context["faults"][0].expected
    )


@pytest.mark.parametrize(
    ("overrides", "jobs"),
    [
        ([], [[]]),
        (["seed=1"], [["seed=1"]]),
        (["seed=1,2"], [["seed=1"], ["seed=2"]]),
        (["seed=range(1,4)"], [["seed=1"], ["seed=2"], ["seed=3"]]),
        (["seed=choice(5,7)"], [["seed=5"], ["seed=7"]]),
        (["s=1e6,2e6"], [["s=1e6"], ["s=2e6"]]),
        (["a=[1,2]", "~b"], [["a=[1,2]", "~b"]]),
        (["a='1,2'"], [["a='1,2'"]]),
        (["a=x,y", "b=1,2"], [["a=x", "b=1"], ["a=x", "b=2"], ["a=y", "b=1"], ["a=y", "b=2"]]),
        (["q={a: 50%, b: rest},{a: 10%, b: rest}"], [["q={a:50%,b:rest}"], ["q={a:10%,b:rest}"]]),
    ],
)
def test_a_sweep_stands_for_one_list_of_overrides_per_job(overrides, jobs):
    assert expand_sweep(overrides) == jobs


def test_values_of_a_sweep_read_as_if_written_alone():
    jobs = expand_sweep(["k=1e9,695e0514,no,'7',10B"])
    assert [read_override(job[0]).value for job in jobs] == ["1e9", "695e0514", "no", "7", "10B"]


@pytest.mark.parametrize("text", ["seed=interval(0,1)", "seed=glob(*)", "seed=[1"])
def test_a_sweep_without_an_end_is_refused(text):
    with pytest.raises(RecipeError):
        expand_sweep([text])


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("q={p: 40%, p: 55%, q: 45%}", ["p: 40% and 55%"]),
        ("stages.s={tokens: 1000, tokens: 2000}", ["tokens: 1000 and 2000"]),
        ("++q={ p : 1e3,p: true}", ["p: 1e3 and true"]),
        ("k={a: {b: 1, c: {d: [1], d: {}}}}", ["a.c.d: a list and a mapping"]),
        ("k={a: 1, a: 2, a: 3, b: {c: 1, c: null}}", ["a: 1 and 2", "a: 1 and 3", "b.c: 1 and null"]),
        ("k=[1, {a: 1, a: 'x'}, [{b: 1, b: 2}]]", ["1.a: 1 and x", "2.0.b: 1 and 2"]),
        ("k={a: {b: 1, b: 2}, a: 3}", ["a: a mapping and 3", "a.b: 1 and 2"]),
        ("k={null: 1, null: 2}", ["null: 1 and 2"]),
        ("k={中文: 14%, '中文': 15%, p: 1}", ["中文: 14% (line 1) and 15% (line 1)"]),
        ("k={p: 中, 'p': 1}", ["p: 中 (line 1) and 1 (line 1)"]),
    ],
)
def test_G05_a_key_given_twice_is_refused_as_in_a_file(text, given):
    with pytest.raises(PydanticCustomError) as caught:
        read_override(text)
    found = caught.value.context["faults"]
    assert [fault.given for fault in found] == given
    assert {fault.expected for fault in found} == {"each key once"}


@pytest.mark.parametrize("text", ["k={a: 1, b: {a: 1}}", "k=[{a: 1}, {a: 2}]", "k={1: 1, 01: 2}"])
def test_a_key_may_stand_in_several_mappings(text):
    assert read_override(text).kind == "set"


@pytest.mark.parametrize("text", ["q={p: 1, p: 2},{p: 3}", "q={p: 1},{p: 3, p: 2}", "q={p: 3, p: 2}"])
def test_G05_a_key_given_twice_in_a_sweep(text):
    with pytest.raises(RecipeError, match="each key once"):
        expand_sweep([text])


@pytest.mark.parametrize(
    ("overrides", "given"),
    [
        (["seed=1,1"], "seed=1 more than once"),
        (["seed=3,2,3,2,1"], "seed=3, seed=2 more than once"),
        (["seed=1,2", "seed=3"], "seed=3 after a sweep"),
        (["seed=1,2", "+seed=1,2"], "+seed=1,2 after a sweep"),
    ],
)
def test_a_sweep_of_equal_jobs_is_refused(overrides, given):
    with pytest.raises(RecipeError) as caught:
        expand_sweep(overrides)
    assert [(problem.where, problem.given) for problem in caught.value.problems] == [("seed", given)]


def test_labels_name_what_differs_and_are_safe_in_a_path():
    assert sweep_labels(expand_sweep(["seed=1,2", "count=body"])) == ["seed=1", "seed=2"]
    assert sweep_labels(expand_sweep(["seed=1"])) == [""]
    labels = sweep_labels(expand_sweep(["pools_root=/a/b,/a/c", "seed=1,2"]))
    assert len(set(labels)) == 4
    assert not any(set(label) & set("/\\ :'\"{}") for label in labels)


def test_labels_that_would_collide_are_numbered():
    labels = sweep_labels(expand_sweep(["pools_root=a/b,a:b"]))
    assert labels == ["0,pools_root=a_b", "1,pools_root=a_b"]


@pytest.mark.parametrize(
    "overrides",
    [
        ["seed=range(0,100000000)"],
        ["seed=shuffle(range(0,100000000))"],
        ["seed=range(0.0,1.0,1e-12)"],
        ["seed=range(0,11)", "pools.a.max_epochs=range(0,100)"],
    ],
)
def test_a_sweep_over_too_many_values_is_refused_before_it_is_expanded(overrides):
    with pytest.raises(RecipeError, match="at most 1,000 jobs"):
        expand_sweep(overrides)
