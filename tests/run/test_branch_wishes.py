"""What branches are asked for: words and branch files, one at a time or swept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recipe import RecipeError
from recipe.config.override_text import read_override
from recipe.config.shipped import shipped_conf
from recipe.run.branching.wishes import Wish, override_value, read_branch_file, read_wishes

NONE = Wish(name="")


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    folder = tmp_path / "branch"
    folder.mkdir()
    (folder / "A.yaml").write_text(
        "from: english\nreason: why not\nmax_epochs: 1_000\n"
        "stages:\n  base:\n    quotas: {code: 20%, maths: 1e-1%}\n"
    )
    (folder / "B.yaml").write_text("data: fresh\nend_stage: {tokens: 5B}\nstages.base.quotas.code: 5%\n")
    (folder / "695e0514.yaml").write_text("'+pools.new': {path: 'a b'}\n~stages.long: null\n")
    return tmp_path


def test_a_branch_file_is_a_mapping_of_overrides(conf: Path):
    wish = read_branch_file("A", conf)
    assert wish.overrides == (
        "max_epochs='1_000'",
        "stages.base.quotas.code='20%'",
        "stages.base.quotas.maths='1e-1%'",
    )
    assert (wish.name, wish.from_pool, wish.reason, wish.data) == ("A", "english", "why not", "continue")
    wish = read_branch_file("B", conf)
    assert (wish.data, wish.end_stage) == ("fresh", {"tokens": "5B"})
    assert read_branch_file("695e0514", conf).overrides == ("+pools.new={path:'a b'}", "~stages.long")


def test_G01_a_branch_that_looks_like_a_number_keeps_its_name(conf: Path):
    (wish,) = read_wishes(None, ["branch=695e0514"], NONE, several=False, config_dir=conf)
    assert wish.name == "695e0514"
    two = read_wishes(None, ["branch=695e0514,A"], NONE, several=True, config_dir=conf)
    assert [wish.name for wish in two] == ["695e0514", "A"]


def test_branches_and_seeds_at_once_are_named_after_both(conf: Path):
    wishes = read_wishes(None, ["branch=A,B", "seed=1,2,3"], NONE, several=True, config_dir=conf)
    assert [wish.name for wish in wishes] == [
        "A-seed1",
        "A-seed2",
        "A-seed3",
        "B-seed1",
        "B-seed2",
        "B-seed3",
    ]
    assert [wish.overrides[-1] for wish in wishes] == ["seed=1", "seed=2", "seed=3"] * 2
    assert [wish.data for wish in wishes] == ["continue"] * 3 + ["fresh"] * 3


def test_a_name_goes_in_front_and_swept_values_are_told_apart():
    words = ["stages.a.quotas.code=10%,20%", "stages.b.quotas.code=10%,20%", "seed=5"]
    wishes = read_wishes("try", words, NONE, several=True)
    assert [wish.name for wish in wishes][:2] == ["try-code10%-code10%", "try-code10%-code20%"]
    assert len({wish.name for wish in wishes}) == 4
    twice = ["stages.a.tokens=1,2", "stages.b.tokens=1,2"]
    assert len({wish.name for wish in read_wishes("x", twice, NONE, several=True)}) == 4


def test_what_is_said_goes_before_what_a_file_says(conf: Path):
    said = Wish(name="", from_pool="web", reason="mine", data="continue")
    (wish,) = read_wishes("x", ["branch=A", "seed=3"], said, several=False, config_dir=conf)
    assert (wish.name, wish.from_pool, wish.reason) == ("x-A", "web", "mine")
    assert wish.overrides[-1] == "seed=3"


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("[1, 2]", "list"),
        ("from: 3\ndata: anew\nreason: [x]\nend_stage: 5\nfresh: {}", "from"),
        ("defaults: [A]", "defaults"),
        ("a: 1\na: 2", "a"),
    ],
)
def test_a_file_that_is_no_branch_is_refused(tmp_path: Path, text: str, where: str):
    (tmp_path / "bad.yaml").write_text(text)
    with pytest.raises(RecipeError) as caught:
        read_branch_file(str(tmp_path / "bad.yaml"))
    assert where in str(caught.value)
    if where == "from":
        assert len(caught.value.problems) == 5


def test_a_branch_file_that_is_not_there_names_those_that_are(conf: Path):
    with pytest.raises(RecipeError, match="demo_more_code"):
        read_branch_file("demo_more_coda", conf)
    with pytest.raises(RecipeError, match="one of 695e0514, A, B"):
        read_branch_file("a", conf)
    (conf / "C.yaml").write_text("seed: 3")
    with pytest.raises(RecipeError):
        read_branch_file("../C", conf)


def test_a_branch_needs_a_name():
    with pytest.raises(RecipeError, match="NAME"):
        read_wishes(None, ["seed=1"], NONE, several=False)


@pytest.mark.parametrize(
    "file", sorted((shipped_conf() / "branch").glob("*.yaml")), ids=lambda file: file.stem
)
def test_shipped_branch_files_can_be_read(file: Path):
    wish = read_branch_file(file.stem)
    assert wish.overrides
    assert wish.from_pool
    assert wish.reason


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 10**20)
    | st.text(st.characters(codec="ascii", categories=["L", "N", "P", "S", "Zs"]), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.from_regex(r"[a-z][a-z_]{0,5}", fullmatch=True), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(PLAIN)
def test_a_plain_value_written_as_an_override_reads_back(value: Any):
    assert read_override(f"key={override_value(value)}").value == value
