"""Keys that no record has: told once with the keys that there are, and never an empty pool."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recipe.errors import RecipeError
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import load_tokenizer

BYTES = load_tokenizer("bytes")


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "a.jsonl"
    rows = [{"name": n, "page": {"body": f"text {n}", "title": "t"}} for n in range(400)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def refused(tmp_path, source, on_bad="error", **read):
    options = PrepareOptions(workers=1, read=ReadOptions(on_bad=on_bad, **read))
    with pytest.raises(RecipeError) as caught:
        prepare_pool([source], tmp_path / "pool", BYTES, options)
    assert sorted(path.name for path in tmp_path.iterdir()) == [source.name], "nothing is left"
    return caught.value


def test_where_every_record_is_left_out_no_pool_is_made(tmp_path, source):
    error = refused(tmp_path, source, on_bad="skip", text_key="txt")
    (problem,) = error.problems
    assert "no pool is made" in error.title
    assert "text missing in 400 of 400 records" in problem.given
    assert problem.expected == "a key 'txt'; keys found: 'name', 'page'"
    assert "--text-key" in problem.fix and "skip" not in problem.fix


@pytest.mark.parametrize("on_bad", ["error", "skip"])
def test_a_wrong_id_key_names_the_keys_and_the_option(tmp_path, source, on_bad):
    error = refused(tmp_path, source, on_bad=on_bad, text_key="page.body", id_key="doc")
    (problem,) = error.problems
    assert problem.expected == "a key 'doc'; keys found: 'name', 'page'"
    assert "--id-key" in problem.fix and "repair" not in problem.fix


def test_D01_a_source_of_empty_texts_alone_is_an_empty_pool(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": ""}\n' * 3)
    pool = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES)
    assert (pool.num_documents, pool.card.dropped) == (0, {"empty": 3})


def test_empty_texts_beside_records_left_out_are_no_pool_either(tmp_path):
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": ""}\n{"body": "x"}\n[]\n')
    error = refused(tmp_path, source, on_bad="skip")
    assert "1 are empty" in error.title
    assert [problem.where for problem in error.problems] == ["a.jsonl:2", "a.jsonl:3"]


def test_the_same_fault_of_all_first_records_is_told_once(tmp_path, source):
    (problem,) = refused(tmp_path, source, text_key="txt").problems
    assert problem.where == "a.jsonl:1 (the same in 399 more records so far)"


def test_one_reason_in_other_words_is_told_once_where_no_record_is_good(tmp_path):
    source = tmp_path / "a.jsonl"
    source.write_text("".join(json.dumps({f"key{n}": "x"}) + "\n" for n in range(30)))
    (problem,) = refused(tmp_path, source).problems
    assert "29 more records" in problem.where


def test_faults_among_good_records_keep_their_places(tmp_path):
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "x"}\n' + '{"text": 1}\n' * 3 + '{"body": 1}\n' * 4)
    wheres = [problem.where for problem in refused(tmp_path, source).problems]
    assert wheres[:3] == ["a.jsonl:2", "a.jsonl:3", "a.jsonl:4"]
    assert wheres[3:] == ["a.jsonl:5 (the same in 3 more records so far)"]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("page.bdy", "a key 'page.bdy'; keys found: 'page.body', 'page.title'"),
        ("page", "text in 'page', not an object; keys found: 'page.body', 'page.title'"),
        ("pag.body", "a key 'pag.body'; keys found: 'name', 'page'"),
        ("name.body", "a key 'name.body'; keys found: 'name', 'page'"),
    ],
)
def test_keys_inside_an_object_are_named_as_the_option_takes_them(tmp_path, source, key, expected):
    error = refused(tmp_path, source, text_key=key)
    assert [problem.expected for problem in error.problems] == [expected]
    assert "--text-key" in error.problems[0].fix
    source.unlink()
    rows = [{"name": "n", "page": {"body": "x", "title": "t"}}] * 400
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    (problem,) = refused(tmp_path, tmp_path / "a.parquet", text_key=key).problems
    assert problem.expected == expected.replace("a key", "a column").replace("keys", "columns")


def test_a_column_of_ids_that_is_not_there_is_one_problem(tmp_path):
    source = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["x"] * 50, "n": range(50)}), source)
    (problem,) = refused(tmp_path, source, id_key="doc").problems
    assert problem.expected == "a column 'doc'; columns found: 'text', 'n'"


def test_ids_that_are_not_unique_leave_no_work_behind(tmp_path):
    source = tmp_path / "a.jsonl"
    source.write_text('{"text": "x", "id": 1}\n' * 2)
    assert "a.jsonl:2" in str(refused(tmp_path, source))


def test_ids_that_the_extended_pool_has_are_named_with_both_places(tmp_path):
    (tmp_path / "in").mkdir()
    for name, ids in (("old", range(400)), ("new", range(390, 500))):
        rows = [{"id": f"d{n}", "text": f"{name} {n}"} for n in ids]
        (tmp_path / "in" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    prepare_pool([tmp_path / "in" / "old.jsonl"], tmp_path / "old", BYTES)
    options = PrepareOptions(workers=1, extends=tmp_path / "old")
    with pytest.raises(RecipeError) as caught:
        prepare_pool([tmp_path / "in" / "new.jsonl"], tmp_path / "new", BYTES, options)
    assert "the first 3 of 10" in caught.value.title
    for problem in caught.value.problems:
        line = int(problem.where.removeprefix("new.jsonl:"))
        assert problem.given == f"id 'd{389 + line}', as old.jsonl:{390 + line} of {tmp_path / 'old'}"
        assert "--place-ids" in problem.fix and "--id-key" in problem.fix
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "old"]
    places = PrepareOptions(workers=1, extends=tmp_path / "old", read=ReadOptions(place_ids=True))
    pool = prepare_pool([tmp_path / "in" / "new.jsonl"], tmp_path / "new", BYTES, places)
    assert pool.num_documents == 510


def test_a_copy_that_is_dropped_may_have_the_id_that_is_there(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"id": 1, "text": "x"}\n')
    (tmp_path / "b.jsonl").write_text('{"id": 1, "text": "x"}\n{"id": 2, "text": "y"}\n')
    prepare_pool([tmp_path / "a.jsonl"], tmp_path / "old", BYTES)
    options = PrepareOptions(extends=tmp_path / "old", duplicates="drop")
    assert prepare_pool([tmp_path / "b.jsonl"], tmp_path / "new", BYTES, options).num_documents == 2
