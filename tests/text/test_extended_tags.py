"""D4 where a pool grows: what left-out copies of its documents say is kept, and joined in a new pool."""

import json

import numpy as np
import pytest

from recipe.errors import RecipeError
from recipe.pools import open_pool
from recipe.pools.beside import COPIES_NAME
from recipe.pools.dedup import dedup_pools
from recipe.pools.growth import extend_pool, grown_from
from recipe.pools.soundness import check_soundness
from recipe.pools.splits import parse_split
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool, prepare_splits
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import ByteTokenizer
from tests.text.cut import Stop, contents, stopping
from tests.text.stored import write_jsonl

BYTES = ByteTokenizer()
READ = ReadOptions(id_key="id", tag_keys=("lang", "site"))
OLD = [
    {"id": "o0", "text": "a", "lang": "en"},
    {"id": "o1", "text": "b"},
    {"id": "o2", "text": "c", "lang": "de"},
]
NEW = [
    {"id": "n0", "text": "a", "lang": "zh"},
    {"id": "n1", "text": "b", "site": "x"},
    {"id": "n2", "text": "a", "lang": "zh", "site": "y"},
    {"id": "n3", "text": "c", "lang": "de"},
    {"id": "n4", "text": "new", "lang": "fr"},
]


def prepared(folder, name, rows, **more):
    write_jsonl(folder / f"{name}.jsonl", rows)
    options = PrepareOptions(read=READ, duplicates="drop", **more)
    return prepare_pool([folder / f"{name}.jsonl"], folder / name, BYTES, options)


def tags_of(pool):
    return {row.id: dict(row.tags) for row in pool.rows(np.arange(pool.num_documents))}


def noted(pool):
    lines = map(json.loads, (pool.path / COPIES_NAME).read_text().splitlines())
    return {pool.ids([line["document"]])[0]: [copy["tags"] for copy in line["copies"]] for line in lines}


@pytest.fixture
def grown(tmp_path):
    old = prepared(tmp_path, "old", OLD)
    return old, prepared(tmp_path, "grown", NEW, extends=tmp_path / "old")


def test_D4_an_extension_keeps_the_old_tags_and_notes_what_copies_say_more(grown):
    old, new = grown
    assert tags_of(new) == {**tags_of(old), "n4": {"lang": "fr"}}
    assert noted(new)["o1"] == [{"site": "x"}]
    assert {tag for tags in noted(new)["o0"] for tag in tags.items()} == {("lang", "zh"), ("site", "y")}
    assert "o2" not in noted(new)
    assert new.card.dropped["duplicate"] == 4
    assert grown_from(old, new).documents == 3
    assert check_soundness(new, full=True) == ([], [])


def test_D4_a_pool_made_of_it_has_all_tags(tmp_path, grown):
    [found] = dedup_pools([tmp_path / "grown"], tmp_path / "out")
    tags = tags_of(open_pool(found.path, "grown"))
    assert tags["o0"] == {"lang": ["en", "zh"], "site": "y"}
    assert tags["o1"] == {"site": "x"}
    first = prepared(tmp_path, "first", [{"id": "f", "text": "a"}])
    dedup_pools([first.path, tmp_path / "grown"], tmp_path / "both")
    assert tags_of(open_pool(tmp_path / "both" / "first", "first")) == {
        "f": {"lang": ["en", "zh"], "site": "y"}
    }


def test_a_pool_that_grows_again_keeps_what_was_noted(tmp_path, grown):
    again = prepared(
        tmp_path, "again", [{**NEW[1], "id": "m"}, {"id": "k", "text": "d"}], extends=grown[1].path
    )
    assert noted(again) == noted(grown[1])
    by_hand = extend_pool(grown[1].path, tmp_path / "hand", [[1, 2]], ids=["z"])
    assert noted(by_hand) == noted(grown[1])


def test_changed_notes_are_found_and_what_is_no_note_is_refused(tmp_path, grown):
    path = grown[1].path / COPIES_NAME
    path.write_bytes(path.read_bytes().replace(b'"x"', b'"z"'))
    assert [finding.where for finding in check_soundness(grown[1], full=False)[0]] == [str(path)]
    path.write_text("no JSON\n")
    with pytest.raises(RecipeError, match=r"copies\.jsonl"):
        dedup_pools([grown[1].path], tmp_path / "out")


def test_order_and_cuts_change_no_note(tmp_path, grown):
    write_jsonl(tmp_path / "one.jsonl", NEW[3:])
    write_jsonl(tmp_path / "two.jsonl", NEW[2::-1])
    options = PrepareOptions(read=READ, duplicates="drop", extends=tmp_path / "old")
    sources = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    stop, calls = stopping(3)
    with pytest.raises(Stop):
        prepare_pool(sources, tmp_path / "other", BYTES, options, progress=stop)
    assert noted(prepare_pool(sources, tmp_path / "other", BYTES, options)) == noted(grown[1]), calls


def test_in_a_split_the_note_stands_by_the_pool_that_has_the_text(tmp_path):
    split = parse_split("train=1/2,validation=1/2")
    rows = [{"id": i, "text": f"t{i}", "lang": "en"} for i in range(20)]
    write_jsonl(tmp_path / "a.jsonl", rows)
    write_jsonl(tmp_path / "b.jsonl", [{**row, "id": row["id"] + 100, "lang": "de"} for row in rows])
    options = {"read": READ, "duplicates": "drop", "split": split}
    old = prepare_splits([tmp_path / "a.jsonl"], tmp_path / "old", BYTES, PrepareOptions(**options))
    more = PrepareOptions(**options, extends=tmp_path / "old")
    new = prepare_splits([tmp_path / "b.jsonl"], tmp_path / "new", BYTES, more)
    for name, pool in new.items():
        assert noted(pool) == {id: [{"lang": "de"}] for id in tags_of(old[name])}
    assert len(contents(tmp_path / "new")) > 0
