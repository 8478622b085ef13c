"""Views of a pool's folder: what they hold, and what they are to whoever reads them."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.config.view import Filter
from recipe.errors import RecipeError
from recipe.pools import Pool, Section, View, extend_pool, grown_from, open_pool, write_pool
from recipe.pools.selection import Selection
from tests.pools.megatron_files import write_pair

LENGTHS = (5, 9, 30, 4, 50, 7)
TAGS: tuple[Any, ...] = (
    {"lang": "en", "quality": 0.5, "new": True},
    {"lang": "de", "quality": 0.1},
    {"lang": "en", "quality": 1},
    {"lang": "no", "meta": {"kinds": ["a", "b"]}},
    {"lang": "en", "quality": "high"},
    None,
)
GROUPS = ("a", "a", "b", "b", None, None)


def documents(*lengths: int) -> list[np.ndarray]:
    return [np.arange(10 * k, 10 * k + n) % 90 + 5 for k, n in enumerate(lengths)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    marks: dict[str, Any] = {"bos": 1, "eos": 2, "vocab_size": 100}
    ids = [f"doc-{k}" for k in range(len(LENGTHS))]
    write_pool(tmp_path / "web", documents(*LENGTHS), ids=ids, tags=TAGS, groups=GROUPS, **marks)
    return tmp_path / "web"


def view(
    folder: Path, low: int | None = None, high: int | None = None, by: Any = "document", **where: Any
) -> View:
    return View(open_pool(folder, "view"), Filter(where, low, high, by))


def held(pool: Pool) -> list[int]:
    return np.flatnonzero(pool.holds(np.arange(pool.num_numbers))).tolist()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"lang": "en"}, [0, 2, 4]),
        ({"lang": "no"}, [3]),
        ({"lang": ["en", "no"]}, [0, 2, 3, 4]),
        ({"lang": {"not": "en"}}, [1, 3, 5]),
        ({"quality": {"min": "0.5"}}, [0, 2]),
        ({"quality": {"max": "0.1"}}, [1]),
        ({"quality": {"min": "0.10000000000000001"}}, [0, 2]),
        ({"quality": "0.50"}, [0]),
        ({"quality": {"min": "a"}}, [4]),
        ({"quality": 1, "lang": "en"}, [2]),
        ({"new": True}, [0]),
        ({"new": {"not": True}}, [1, 2, 3, 4, 5]),
        ({"meta.kinds": "b"}, [3]),
        ({"meta.kinds": {"not": ["c"]}}, [0, 1, 2, 3, 4, 5]),
        ({"group": "a"}, [0, 1]),
        ({"id": ["doc-1", "doc-5"]}, [1, 5]),
        ({"tags.lang": "de", "id": {"max": "doc-3"}}, [1]),
    ],
)
def test_conditions_on_the_document_table(folder, where, expected):
    assert held(view(folder, **where)) == expected


def test_true_is_no_number_and_a_number_no_text(folder):
    for where in ({"new": 1}, {"lang": 1}, {"quality": {"min": "0.5", "max": "0.4"}}):
        with pytest.raises(RecipeError, match="no document of 6 passes"):
            held(view(folder, **where))


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ((9, None, "document"), [1, 2, 4]),
        ((None, 8, "document"), [0, 3, 5]),
        ((7, 9, "document"), [1, 5]),
        ((15, None, "group"), [2, 3, 4]),
        ((None, 14, "group"), [0, 1, 5]),
    ],
)
def test_body_tokens_of_documents_or_of_their_groups(folder, bounds, expected):
    assert held(view(folder, *bounds)) == expected


def test_a_condition_on_a_group_holds_for_all_its_documents(folder):
    assert held(view(folder, by="group", lang="en")) == [4]
    assert held(view(folder, by="group", group="b")) == [2, 3]


def test_a_view_counts_what_it_holds_and_numbers_as_its_folder_does(folder):
    some = view(folder, 9)
    assert (some.num_documents, some.num_units, some.num_numbers) == (3, 3, 6)
    assert some.members.tolist() == [0, 1, 2]
    assert (some.stock, some.card.special_tokens, some.card.max_document_tokens) == (89, 6, 50)
    assert sum(some.card.length_histogram) == 3
    assert some.ids([4]) == ["doc-4"]
    assert some.find("doc-4") == 4
    with pytest.raises(RecipeError, match="does not pass"):
        some.find("doc-0")


def test_a_view_is_told_apart_by_its_folder_and_its_filter_alone(folder, tmp_path):
    first = view(folder, 9)
    assert first.fingerprint == View(open_pool(folder, "other"), Filter({}, 9, None, "document")).fingerprint
    assert first.fingerprint != view(folder, 10).fingerprint != open_pool(folder, "view").fingerprint
    assert first.path == folder


def test_an_unknown_column_names_the_nearest(folder):
    with pytest.raises(RecipeError) as caught:
        held(view(folder, langs="en", quality=1, colour="red"))
    nearest, unknown = caught.value.problems
    assert (nearest.where, nearest.fix) == ("where.langs", "did you mean 'lang'?")
    assert unknown.where == "where.colour"
    assert "meta.kinds" in unknown.expected


def test_a_view_survives_pickling_with_those_before_it(folder):
    first, second = view(folder, 9), view(folder, 5)
    second.before["first"] = first
    again = pickle.loads(pickle.dumps(second))
    assert (again.fingerprint, held(again)) == (second.fingerprint, held(second))
    assert held(again.before["first"]) == held(first)


def test_what_a_view_holds_is_looked_up_once_for_all_processes(folder):
    """The table that its filter reads is gone before the other process asks."""
    some = view(folder, 9, lang="en")
    chosen = held(some)
    again = pickle.loads(pickle.dumps(some))
    (folder / "documents.parquet").unlink()
    assert held(again) == chosen
    assert again.selection._replace(units=None, mask=None) == some.selection._replace(units=None, mask=None)


@given(st.sets(st.integers(0, 99), min_size=1), st.none() | st.lists(st.booleans(), max_size=40))
def test_a_selection_survives_pickling_at_a_bit_a_unit_and_document(units, mask):
    chosen = Selection(
        np.array(sorted(units)), None if mask is None else np.array(mask, bool), *[7] * 5, (1, 2)
    )
    pickled = pickle.dumps(chosen)
    again = pickle.loads(pickled)
    assert again.units.dtype == np.int64
    np.testing.assert_array_equal(again.units, chosen.units)
    assert (again.mask is None) == (mask is None)
    if mask is not None:
        assert again.mask.tolist() == mask
    assert again[2:] == chosen[2:]


def test_by_needs_a_unit_is_as_large_as_its_largest_section_with_what_it_needs(tmp_path):
    sections = [
        [0, Section(4, "f"), Section(10, "g", ("f",))],
        None,
        [Section(0, "h"), Section(20, "i", ("h",))],
    ]
    texts = documents(16, 40, 30)
    write_pool(tmp_path / "code", texts, sections=sections, bos=1, eos=2, vocab_size=100)
    assert held(view(tmp_path / "code", 1, None, "needs")) == [0, 2]
    assert held(view(tmp_path / "code", 13, None, "needs")) == [2]
    assert held(view(tmp_path / "code", None, 12, "needs")) == [0, 1]
    assert view(tmp_path / "code", 1, None, "needs").selection.longest_unit == 30


def test_imported_pairs_have_lengths_and_numbers_but_no_tags(tmp_path):
    write_pair(tmp_path / "part", [[list(range(1, n + 1))] for n in LENGTHS], 4)
    assert held(view(tmp_path / "part", 9)) == [1, 2, 4]
    assert held(view(tmp_path / "part", id={"min": 2, "max": 3})) == [2, 3]
    with pytest.raises(RecipeError, match=r"where\.lang"):
        held(view(tmp_path / "part", lang="en"))


def test_a_view_grows_with_its_folder(folder, tmp_path):
    extend_pool(
        folder, tmp_path / "more", documents(40, 3, 12), tags=[{"lang": "en"}] * 3, ids=["x", "y", "z"]
    )
    for where in ({}, {"lang": "en"}):
        old, new = view(folder, 9, **where), view(tmp_path / "more", 9, **where)
        prefix = grown_from(old, new)
        assert (prefix.units, prefix.documents) == (old.num_units, old.num_documents)
        assert prefix.extent_units == old.extent_units
        assert grown_from(old.fingerprint, new) == prefix
        assert new.members[: prefix.units].tolist() == old.members.tolist()
    with pytest.raises(RecipeError, match="has not grown"):
        grown_from(view(folder, 10), view(tmp_path / "more", 9))


@settings(max_examples=60)
@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=12),
    low=st.integers(1, 40) | st.none(),
    high=st.integers(1, 40) | st.none(),
    by=st.sampled_from(["document", "group"]),
    groups=st.lists(st.integers(0, 2), min_size=12, max_size=12),
)
def test_a_view_holds_what_a_plain_look_at_every_document_finds(
    tmp_path_factory, lengths, low, high, by, groups
):
    folder = tmp_path_factory.mktemp("views") / "web"
    of = sorted(groups[: len(lengths)])
    write_pool(folder, [np.ones(n, np.int64) + 4 for n in lengths], groups=of, eos=2, vocab_size=9)
    totals = {group: sum(n for n, g in zip(lengths, of, strict=True) if g == group) for group in of}
    sizes = lengths if by == "document" else [totals[group] for group in of]
    expected = [k for k, n in enumerate(sizes) if (low or 0) <= n <= (high or 1 << 40)]
    if not expected:
        with pytest.raises(RecipeError, match=f"no document of {len(lengths)} passes"):
            held(view(folder, low, high, by))
        return
    some = view(folder, low, high, by)
    assert held(some) == expected
    assert some.stock == sum(lengths[k] for k in expected)
    assert some.num_units == len({of[k] for k in expected})
