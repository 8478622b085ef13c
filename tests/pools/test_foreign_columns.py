"""Columns of token ids in Parquet files and in folders that ``datasets`` saved."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recipe.errors import RecipeError
from recipe.pools import Pool, open_pool
from recipe.pools.foreign.form import Form

ROWS = [[1, 2, 3], [], [4, 5], [6], [7, 8, 9, 10]]


def bodies(pool: Pool) -> list[list[int]]:
    return [pool.tokens(number).tolist() for number in range(pool.num_documents)]


def table(path: Path, kind: pa.DataType, rows: list[object] | None = None, name: str = "input_ids") -> Path:
    """A Parquet file in groups of two rows, or an Arrow file in batches of two."""
    made = pa.table({name: pa.array(ROWS if rows is None else rows, kind), "n": range(len(rows or ROWS))})
    if path.suffix == ".parquet":
        pq.write_table(made, path, row_group_size=2)
        return path
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, made.schema) as writer:
        writer.write_table(made, max_chunksize=2)
    return path


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("value", ["int32", "int64", "uint16", "uint8", "uint32", "int16"])
@pytest.mark.parametrize("make", [pa.list_, pa.large_list])
def test_each_row_of_any_list_of_numbers_is_a_document(tmp_path, ending, value, make):
    table(tmp_path / f"a.{ending}", make(pa.type_for_alias(value)))
    pool = open_pool(tmp_path, "p")
    assert bodies(pool) == ROWS
    assert pool.token_dtype.name == ("int32" if (value, ending) == ("int64", "parquet") else value)
    assert pool.verify(full=True) == []


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.int16()])
def test_N07_a_negative_id_in_a_column_is_refused_where_it_stands(tmp_path, kind):
    table(tmp_path / "a.parquet", pa.list_(kind), [[1, 2], [3, -100]])
    with pytest.raises(RecipeError, match=r"id -100 at token 3\n    expected  ids from 0 on"):
        open_pool(tmp_path / "a.parquet", "p")


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_rows_of_fixed_length_are_documents_unless_marks_are(tmp_path, ending):
    rows = [[1, 0, 2], [3, 4, 0], [0, 5, 0]]
    path = table(tmp_path / f"a.{ending}", pa.list_(pa.int32(), 3), rows)
    assert bodies(open_pool(path, "p")) == rows
    packed = open_pool(path, "p", eos=0, form=Form(documents="eos"))
    assert bodies(packed) == [[1], [2, 3, 4], [], [5]]
    assert packed.fingerprint != open_pool(path, "p").fingerprint


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.large_list(pa.int32()), pa.list_(pa.int32(), 2)])
def test_batches_of_more_rows_than_are_read_at_once_are_read_whole(tmp_path, kind):
    rows = [[number, number + 1] for number in range(2500)]
    made = pa.table({"input_ids": pa.array(rows, kind)})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, made.schema) as writer:
        writer.write_table(made)
    assert bodies(open_pool(tmp_path, "p")) == rows


def test_arrow_that_is_not_compressed_is_mapped_and_nothing_is_copied(tmp_path):
    table(tmp_path / "a.arrow", pa.list_(pa.int64()), [[1, 2], [3], [4], [5, 600]])
    pool = open_pool(tmp_path, "p")
    assert pool.layout.part_names == ("a.arrow batch 0", "a.arrow batch 1")
    assert not (tmp_path / ".recipe").exists() and pool.layout.notes == ()
    assert "decoded_bytes" not in pool.card.source
    assert pool.check_ids(600)[0].given == f"id 600 at position 2 of {tmp_path / 'a.arrow batch 1'}"
    assert bodies(pickle.loads(pickle.dumps(pool))) == [[1, 2], [3], [4], [5, 600]]
    table(tmp_path / "a.arrow", pa.list_(pa.int64()), [[1, 2], [3], [4], [5, 601]])
    assert open_pool(tmp_path, "p").fingerprint != pool.fingerprint
    assert [finding.check for finding in pool.verify()] == ["contents"]


def test_arrow_that_cannot_be_mapped_is_decoded_into_the_same_type(tmp_path):
    """A compressed file, and one with a batch of empty rows, beside one that is mapped."""
    kind = pa.list_(pa.int64())
    table(tmp_path / "a.arrow", kind, [[1], [2]])
    table(tmp_path / "b.arrow", kind, [[], [], [3]])
    made = pa.table({"input_ids": pa.array([[4], [5]], kind)})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with (
        pa.OSFile(str(tmp_path / "c.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, made.schema, options=options) as writer,
    ):
        writer.write_table(made)
    pool = open_pool(tmp_path, "p")
    assert bodies(pool) == [[1], [2], [], [], [3], [4], [5]]
    assert pool.token_dtype.name == "int64"
    assert {path.name[:7] for path in (tmp_path / ".recipe").iterdir()} == {"b.arrow", "c.arrow"}
    assert open_pool(tmp_path, "p", form=Form(dtype="uint16")).token_dtype.name == "uint16"


def test_a_folder_that_datasets_saved_is_read_by_its_state(tmp_path):
    """Files that ``map`` left in it are not the dataset."""
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict({"input_ids": ROWS})
    made.save_to_disk(tmp_path / "saved", num_shards=2)
    table(tmp_path / "saved" / "cache-0123.arrow", pa.list_(pa.int32()))
    pool = open_pool(tmp_path / "saved", "p")
    assert bodies(pool) == ROWS and pool.num_parts == 2


def test_a_state_that_lists_nothing_is_refused(tmp_path):
    table(tmp_path / "a.arrow", pa.list_(pa.int32()))
    (tmp_path / "state.json").write_text("[1]")
    with pytest.raises(RecipeError, match="a state that lists no files"):
        open_pool(tmp_path, "p")


def test_a_parquet_file_of_another_name_is_known_by_its_head(tmp_path):
    path = table(tmp_path / "a.parquet", pa.list_(pa.int32())).rename(tmp_path / "ids.pq")
    assert bodies(open_pool(path, "p")) == ROWS


def test_splits_and_selections_of_datasets_are_refused_with_the_way_out(tmp_path):
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_dict({"input_ids": ROWS})
    datasets.DatasetDict({"train": made, "test": made}).save_to_disk(tmp_path / "both")
    with pytest.raises(RecipeError, match=r"name one: .*/both/train"):
        open_pool(tmp_path / "both", "p")
    assert bodies(open_pool(tmp_path / "both" / "train", "p")) == ROWS


def test_splits_in_one_folder_are_refused_unless_a_pattern_names_them(tmp_path):
    """As hubs lay a dataset out: its test split would be trained on."""
    for name, first in (("train-00000-of-00002", 1), ("train-00001-of-00002", 2), ("test-00000-of-00001", 3)):
        table(tmp_path / f"{name}.parquet", pa.list_(pa.int32()), [[first]])
    with pytest.raises(RecipeError, match=r"splits test, train\n[\s\S]*train-\*"):
        open_pool(tmp_path, "p")
    assert bodies(open_pool(tmp_path / "**" / "train-*", "p")) == [[1], [2]]
    assert bodies(open_pool(tmp_path / "*.parquet", "p")) == [[3], [1], [2]]


def test_several_columns_of_numbers_are_asked_about(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"attention_mask": [[1, 1]], "input_ids": [[5, 6]], "text": ["x"]}), path)
    with pytest.raises(RecipeError, match="say which: column: input_ids"):
        open_pool(path, "p")
    assert bodies(open_pool(path, "p", form=Form(column="input_ids"))) == [[5, 6]]
    with pytest.raises(RecipeError, match="no column ids"):
        open_pool(path, "p", form=Form(column="ids"))
    with pytest.raises(RecipeError, match="a column text of string"):
        open_pool(path, "p", form=Form(column="text"))


@pytest.mark.parametrize(
    ("kind", "rows", "message"),
    [
        (pa.list_(pa.int32()), [[1], None], "nothing in column input_ids of row 1"),
        (pa.list_(pa.int32()), [[1], [2], [3, None]], "a missing id in column input_ids of row 2"),
        (pa.list_(pa.float32()), [[1.0]], "a column of lists of ids"),
        (pa.list_(pa.int64()), [[1, 1 << 40]], "id 1099511627776 at token 1"),
    ],
)
def test_what_is_no_id_is_refused_by_place(tmp_path, kind, rows, message):
    with pytest.raises(RecipeError, match=message):
        open_pool(table(tmp_path / "a.parquet", kind, rows), "p")


def test_texts_are_sent_to_prepare(tmp_path):
    pq.write_table(pa.table({"text": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(RecipeError, match="recipe prepare"):
        open_pool(tmp_path, "p")


def test_ids_are_kept_in_the_type_that_the_recipe_says_if_they_fit(tmp_path):
    path = table(tmp_path / "a.parquet", pa.list_(pa.int64()), [[1, 300]])
    assert open_pool(path, "p", form=Form(dtype="uint16")).token_dtype.name == "uint16"
    with pytest.raises(RecipeError, match=r"id 300 at token 1\n    expected  ids of uint8"):
        open_pool(path, "p", form=Form(dtype="uint8"))


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("cut", [0, 30])
def test_F02_a_file_cut_short_is_named(tmp_path, ending, cut):
    path = table(tmp_path / f"a.{ending}", pa.list_(pa.int32()))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(RecipeError, match=rf"a\.{ending}\n    given     a file that cannot be read"):
        open_pool(path, "p")


def test_rows_without_an_id_at_all_are_no_pool(tmp_path):
    table(tmp_path / "a.parquet", pa.list_(pa.int32()), [[], []])
    with pytest.raises(RecipeError, match="no token"):
        open_pool(tmp_path, "p")


def test_parts_are_files_in_sorted_order(tmp_path):
    for name, first in (("b", 10), ("a", 20)):
        table(tmp_path / f"{name}.parquet", pa.list_(pa.int32()), [[first], [first + 1]])
    pool = open_pool(tmp_path, "p")
    assert bodies(pool) == [[20], [21], [10], [11]]
    assert pool.layout.part_names == ("a.parquet", "b.parquet")
    assert np.diff(pool.part_documents).tolist() == [2, 2]
