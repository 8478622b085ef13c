import pytest

from recipe.config import parse_yaml
from recipe.errors import RecipeError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x: 1", 1),
        ("x: -3", -3),
        ("x: true", True),
        ("x: False", False),
        ("x: null", None),
        ("x: ~", None),
        ("x:", None),
        # everything else keeps its text
        ("x: no", "no"),
        ("x: yes", "yes"),
        ("x: on", "on"),
        ("x: n", "n"),
        ("x: 1e5", "1e5"),
        ("x: 1e9", "1e9"),
        ("x: 695e0514", "695e0514"),
        ("x: 1E234", "1E234"),
        ("x: 1_000_000", "1_000_000"),
        ("x: 2024_01", "2024_01"),
        ("x: 2024-05-01", "2024-05-01"),
        ("x: 12:30", "12:30"),
        ("x: 0x10", "0x10"),
        ("x: 010", "010"),
        ("x: 0.1", "0.1"),
        ("x: .inf", ".inf"),
        ("x: .nan", ".nan"),
        ("x: '7'", "7"),
        ("x: 61.6%", "61.6%"),
        ("x: =", "="),
    ],
)
def test_G01_G03_only_plain_values_are_converted(text, value):
    parsed = parse_yaml(text, "r.yaml")["x"]
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    "name", ["no", "yes", "on", "null", "true", "1e5", "2024_01", "695e0514", "1", "~", "0x10"]
)
def test_G03_keys_keep_their_text(name):
    assert list(parse_yaml(f"{name}: 1", "r.yaml")) == [name]


def test_G05_a_key_given_twice_is_told_with_both_lines():
    text = "a:\n  window: 1024\n  stride: 4\n  window: 262144\npools:\n  web: {path: x}\n  web: {path: y}\n"
    with pytest.raises(RecipeError) as caught:
        parse_yaml(text, "r.yaml")
    assert [(problem.where, problem.given) for problem in caught.value.problems] == [
        ("a.window", "1024 (line 2) and 262144 (line 4)"),
        ("pools.web", "a mapping (line 6) and a mapping (line 7)"),
    ]
    assert caught.value.problems[0].fix == "remove line 2 or line 4"


def test_G05_a_merge_key_with_an_own_value_is_legal():
    assert parse_yaml("a: &a {x: 1, y: 2}\nb: {<<: *a, x: 3}\n", "r.yaml")["b"] == {"x": 3, "y": 2}
    assert parse_yaml("a: &a {x: 1}\nb: &b {y: 2}\nc: {<<: [*a, *b], y: 3}\n", "r.yaml")["c"] == {
        "x": 1,
        "y": 3,
    }


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a: [1\nb: 2", "r.yaml:2"),
        ("a:\n\t- 3", "r.yaml:2"),
        ("a: !!python/name:os.system x", "r.yaml:1"),
        ("a: *x", "r.yaml:1"),
        ("a: &a [*a]", "r.yaml:1"),
        ("? [a, b]\n: 1", "r.yaml:1"),
        ("a: 1\n---\nb: 2", "r.yaml:2"),
        ("a: \x00", "r.yaml"),
    ],
)
def test_what_is_no_yaml_is_told_with_its_line(text, where):
    with pytest.raises(RecipeError) as caught:
        parse_yaml(text, "r.yaml")
    assert caught.value.problems[0].where == where


_BOMB = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10))])
_CHAIN = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 200))])
_MERGES = "\n".join(
    ["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 10))]
)


@pytest.mark.parametrize(
    ("text", "where", "fix"),
    [
        ("a: " + "[" * 5000 + "]" * 5000, "r.yaml:1", "more than 50 levels"),
        ("a: " + "{b: " * 5000 + "1" + "}" * 5000, "r.yaml:1", "more than 50 levels"),
        (_CHAIN, "r.yaml:50", "more than 50 levels"),
        (_BOMB, "r.yaml:6", "more than 50000 values"),
        (_MERGES, "r.yaml:6", "more than 50000 values"),
        ("a: &a [*a]", "r.yaml:1", "a value refers to itself: remove"),
        ("x: 1\nseed: !!int foo", "r.yaml:2", "no int: remove the tag"),
        ("x: 1\nseed: !!int ''", "r.yaml:2", "no int: remove the tag"),
        ("x: 1\nseed: !!timestamp foo", "r.yaml:2", "no timestamp: remove the tag"),
        ("x: 1\nseed: !!bool foo", "r.yaml:2", "no bool: remove the tag"),
        ("x: 1\nseed: !!float foo", "r.yaml:2", "no float: remove the tag"),
        ("x: 1\nseed: " + "7" * 5000, "r.yaml:2", "a number of 5000 digits"),
    ],
    ids=str.split("lists mappings chain bomb merges circle int empty time bool float digits"),
)
def test_yaml_that_runs_away_or_breaks_its_own_tag_is_refused_with_its_line(text, where, fix):
    with pytest.raises(RecipeError) as caught:
        parse_yaml(text, "r.yaml")
    [problem] = caught.value.problems
    assert problem.where == where
    assert problem.fix.startswith(fix)


def test_an_empty_file_has_no_keys():
    assert parse_yaml("# nothing\n", "r.yaml") == {}


def test_order_is_kept():
    assert list(parse_yaml("b: 1\na: 2\nc: 3", "r.yaml")) == ["b", "a", "c"]
