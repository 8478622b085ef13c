"""Pool sets: what a pattern makes is a function of the folders' names, and no recipe keeps a pattern."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe.config import load_recipe, parse_yaml, recipe_from_plain, recipe_schema, recipe_to_plain
from recipe.config.pool_sets import expand_pool_sets, members
from recipe.errors import RecipeError

RECIPE = """\
seed: 1
pools_root: m
pools:
  web: {path: web}
  "lang_*": {path: multilingual/*, max_epochs: 3, slicing: {stride: 48}}
groups: {langs: {pools: ["lang_*"], within: {temperature: 0.3}}}
stages:
  main: {tokens: 1024, context: 64, batch: {sequences: 4}, quotas: {web: rest, langs: 40%}}
"""


@pytest.fixture
def written(in_tmp: Path) -> Path:
    """``r.yaml`` beside folders of three languages, made in no order, and what is no folder of a pool."""
    for name in ("no", "de", "en", ".cache"):
        Path("m/multilingual", name).mkdir(parents=True)
    Path("m/multilingual/README.md").touch()
    Path("r.yaml").write_text(RECIPE)
    return in_tmp


def changed(old: str, new: str) -> None:
    Path("r.yaml").write_text(Path("r.yaml").read_text().replace(old, new))


def refused(*overrides: str) -> list[tuple[str, str, str, str]]:
    with pytest.raises(RecipeError) as error:
        load_recipe("r.yaml", list(overrides))
    return [(p.where, str(p.given), p.expected, p.fix) for p in error.value.problems]


def test_a_set_is_a_pool_a_folder_in_the_order_of_their_names(written):
    """S04, G03: no is a language; what is no folder, or hidden, is no pool."""
    recipe = load_recipe("r.yaml")
    assert list(recipe.pools) == ["web", "lang_de", "lang_en", "lang_no"]
    assert recipe.pools["lang_no"].path == "multilingual/no"
    assert {recipe.pools[name].max_epochs for name in recipe.pools if name != "web"} == {3}
    assert recipe.groups["langs"].pools == ("lang_de", "lang_en", "lang_no")


def test_a_stored_recipe_names_pools_alone_and_reads_back_without_their_folders(written):
    recipe = load_recipe("r.yaml")
    plain = recipe_to_plain(recipe)
    Path("m").rename("elsewhere")
    assert "*" not in str(plain)
    assert recipe_from_plain(plain, source="stored") == recipe


def test_a_folder_that_comes_later_is_another_recipe(written):
    before = load_recipe("r.yaml")
    Path("m/multilingual/fr").mkdir()
    after = load_recipe("r.yaml")
    assert set(after.pools) - set(before.pools) == {"lang_fr"}
    assert after.groups["langs"].pools == ("lang_de", "lang_en", "lang_fr", "lang_no")


def test_overrides_of_one_pool_come_after_the_set_and_those_of_the_set_before(written):
    recipe = load_recipe("r.yaml", ["pools.lang_en.max_epochs=6", "pools.lang_*.max_epochs=2"])
    assert [recipe.pools[f"lang_{name}"].max_epochs for name in ("de", "en", "no")] == [2, 6, 2]
    Path("m").rename("n")
    assert "lang_de" in load_recipe("r.yaml", ["pools_root=n"]).pools
    assert "lang_de" in load_recipe("r.yaml", pools_root=Path("n")).pools


def test_what_is_written_for_a_name_is_laid_over_the_set_and_changes_no_order(written):
    by_override = load_recipe("r.yaml", ["pools.lang_en.max_epochs=6", "pools.lang_en.slicing.tail=drop"])
    changed("groups:", "  lang_en: {max_epochs: 6, slicing: {tail: drop}}\ngroups:")
    by_file = load_recipe("r.yaml")
    assert by_file == by_override
    assert list(by_file.pools) == list(by_override.pools)
    assert by_file.pools["lang_en"].slicing.stride == 48


def test_a_name_with_a_path_of_its_own_has_that_path(written):
    changed("groups:", "  lang_en: {path: elsewhere}\ngroups:")
    recipe = load_recipe("r.yaml")
    assert (recipe.pools["lang_en"].path, recipe.pools["lang_en"].max_epochs) == ("elsewhere", 3)


def test_what_is_said_of_a_pool_that_no_folder_makes_is_told(written):
    changed("groups:", "  lang_fr: {max_epochs: 6}\ngroups:")
    ((where, given, expected, _),) = refused()
    assert (where, given) == ("pools.lang_fr.path", "neither path nor stock, and no folder that makes it")
    assert "lang_de, lang_en, lang_no" in expected


def test_a_quota_of_the_pattern_makes_a_group_of_its_name(written):
    changed("langs: 40%", '"lang_*": 40%')
    changed('groups: {langs: {pools: ["lang_*"], within: {temperature: 0.3}}}\n', "")
    recipe = load_recipe("r.yaml")
    assert recipe.groups["lang_*"].pools == ("lang_de", "lang_en", "lang_no")
    assert recipe.groups["lang_*"].within.plain() == "natural"
    assert recipe_from_plain(recipe_to_plain(recipe), source="stored") == recipe
    changed("stages:", 'groups: {"lang_*": {within: even}}\nstages:')
    assert load_recipe("r.yaml").groups["lang_*"].within.plain() == "even"


def test_a_group_called_as_a_set_has_all_its_pools_or_is_refused(written):
    """A share of lang_* is never one of some languages alone, whatever shares the others have."""
    changed("langs: 40%", '"lang_*": 40%')
    changed(
        'groups: {langs: {pools: ["lang_*"], within: {temperature: 0.3}}}', 'groups: {"lang_*": [lang_no]}'
    )
    told = (
        "groups.lang_*.pools",
        "lang_no, in a group that is called as a pool set",
        "the pools that lang_* fits: lang_de, lang_en, lang_no",
    )
    assert [problem[:3] for problem in refused()] == [told]
    others = ["stages.main.quotas.lang_de=10%", "stages.main.quotas.lang_en=5%"]
    assert told in [problem[:3] for problem in refused(*(f"+{other}" for other in others))]
    with pytest.raises(RecipeError, match="called as a pool set"):
        recipe_from_plain(parse_yaml(Path("r.yaml").read_text(), "r.yaml"), source="python")
    changed("[lang_no]", "{pools: [lang_no, lang_en, lang_de], within: even}")
    assert load_recipe("r.yaml").groups["lang_*"].pools == ("lang_no", "lang_en", "lang_de")


def test_patterns_of_groups_fit_pools_that_are_written_one_by_one(written):
    changed('"lang_*": {path: multilingual/*, max_epochs: 3, slicing: {stride: 48}}', "lang_x: {path: x}")
    assert load_recipe("r.yaml").groups["langs"].pools == ("lang_x",)
    changed('"lang_*"', '"long_*"')
    assert ("groups.langs.pools", "long_*") in [problem[:2] for problem in refused()]


def test_two_stars_stand_for_two_parts(in_tmp):
    """Parts are matched folder by folder."""
    for place in ("b/v1/x", "a/v2/x", "a/v1/y", "a/w1/x"):
        Path(place).mkdir(parents=True)
    expanded, faults = expand_pool_sets({"pools": {"*_*": {"path": "*/v*/x"}}})
    assert not faults
    assert expanded["pools"] == {"a_2": {"path": "a/v2/x"}, "b_1": {"path": "b/v1/x"}}


def test_files_are_meant_where_the_pattern_says_what_they_end_in(in_tmp):
    Path("dumps").mkdir()
    for name in ("b.npy", "a.npy", "a.txt"):
        Path("dumps", name).touch()
    expanded, _ = expand_pool_sets({"pools": {"d_*": {"path": "dumps/*.npy"}}})
    assert [pool["path"] for pool in expanded["pools"].values()] == ["dumps/a.npy", "dumps/b.npy"]


def test_folders_of_a_store_are_matched_like_those_of_this_machine():
    import fsspec

    store = fsspec.filesystem("memory")
    for name in ("no", "en"):
        store.pipe(f"/sets/multilingual/{name}/card.json", b"{}")
    for root, path in (("memory://sets", "multilingual/*"), (None, "memory://sets/multilingual/*")):
        data = {"pools_root": root, "pools": {"lang_*": {"path": path}}}
        expanded, faults = expand_pool_sets(data)
        assert (list(expanded["pools"]), faults) == (["lang_en", "lang_no"], [])
        assert expanded["pools"]["lang_no"]["path"] == path.replace("*", "no")


def test_a_store_that_cannot_be_listed_is_one_message():
    with pytest.raises(RecipeError, match=r"nostore://x[^ ]*\n +given +ValueError: Protocol not known"):
        expand_pool_sets({"pools": {"lang_*": {"path": "nostore://x/*"}}})


def test_nothing_that_matches_is_told_with_what_is_there(written):
    ((where, given, expected, _),) = refused("pools.lang_*.path=multilingual/x*")
    assert (where, given) == ("pools.lang_*.path", "multilingual/x*, which nothing matches")
    assert "m/multilingual has de, en, no" in expected
    ((_, _, expected, _),) = refused("pools_root=nowhere")
    assert "there is no folder nowhere/multilingual" in expected


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("pools.lang_*.path=multilingual", "a path with 1 *"),
        ("pools.lang_*.path=*/*", "a path with 1 *"),
        ("pools.lang_*.path=multilingual/**", "a path with 1 *"),
        ("pools.lang_*.max_epochs=0", "1"),
        ("+pools.*={path: multilingual}", "a path with 1 *"),
        ("+pools.more_*={stock: 7}", "a path with as many *"),
    ],
)
def test_sets_with_a_fault_are_told_where_they_are_written(written, override, told):
    problems = refused(override)
    assert len(problems) == 1
    assert told in problems[0][2]


def test_names_that_two_sets_make_and_names_that_are_none_are_refused(written):
    Path("m/other/en").mkdir(parents=True)
    ((where, given, *_),) = refused("+pools.lan*={path: m/*}", "+pools.lang_e*={path: multilingual/e*}")[-1:]
    assert (where, given) == ("pools.lang_e*", "lang_en, which lang_* makes too")
    Path("m/multilingual/zh.hans").mkdir()
    ((where, given, *_),) = refused()
    assert (where, given) == ("pools.lang_*.path", "multilingual/zh.hans, which makes lang_zh.hans")


def test_a_pool_that_is_being_written_is_not_left_out_silently(written):
    """C05: a source that is unfinished is an error, not a smaller mixture."""
    Path("m/multilingual/fr.partial").mkdir()
    ((_, given, expected, _),) = refused()
    assert given == "multilingual/fr.partial"
    assert "being written" in expected


def test_interpolations_say_where_the_folders_are(written, monkeypatch):
    monkeypatch.setenv("POOLS", "m")
    changed("pools_root: m", "pools_root: ${oc.env:POOLS}")
    changed("path: multilingual/*", 'path: "${name}lingual/*"')
    changed("seed: 1", "seed: 1\nname: multi")
    assert load_recipe("r.yaml").pools["lang_no"].path == "multilingual/no"
    ((where, *_),) = refused("pools_root=${oc.env:NOWHERE_SET}")
    assert where == "pools_root"


def test_a_recipe_in_python_may_have_sets(written):
    plain = parse_yaml(RECIPE, "r.yaml")
    assert recipe_from_plain({**plain, "name": "r"}, source="python") == load_recipe("r.yaml")


def test_the_schema_says_what_a_set_is():
    assert "lang_*" in recipe_schema()["properties"]["pools"]["description"]


NAMES = st.lists(st.text("abno-_0.", min_size=1, max_size=6), unique=True, max_size=8)


@given(NAMES, st.randoms(use_true_random=False))
def test_what_a_set_makes_is_a_function_of_the_folders_names(names: list[str], dice: random.Random):
    """In whatever order they are listed; and back: a name says which folder it came from."""
    paths = [f"x/{name}" for name in names]
    made = members("lang_*", "x/*", paths)
    assert made == {f"lang_{name}": f"x/{name}" for name in sorted(names)}
    assert list(made) == sorted(made)
    dice.shuffle(paths)
    assert list(members("lang_*", "x/*", paths).items()) == list(made.items())


def test_a_set_that_cannot_be_expanded_is_one_fault_among_the_others(written):
    """lang_no could be one of its pools: nothing is wrong with its having a share."""
    changed("path: multilingual/*", "path: nowhere/*")
    quotas = "stages.main.quotas={web: 50%, wbe: 10%, lang_no: 40%, langs: 0%}"
    found = refused("seed=-1", quotas, "+pools.lang_no.max_epochs=2")
    assert [where for where, *_ in found] == ["pools.lang_*.path", "seed", "stages.main.quotas.wbe"]
