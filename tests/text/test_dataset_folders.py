"""Folders that the ``datasets`` library saved, and folders of tables."""

from __future__ import annotations

import json
import shutil

import datasets
import pytest

from recipe.errors import RecipeError
from recipe.text.sources import ReadOptions, list_sources
from tests.text.stored import RECORDS, read, write_arrow, write_parquet


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A dataset in two files, and a dictionary of two splits."""
    datasets.disable_progress_bars()
    folder = tmp_path_factory.mktemp("saved")
    rows = datasets.Dataset.from_list(RECORDS)
    rows.save_to_disk(str(folder / "one"), num_shards=2)
    splits = datasets.DatasetDict({"train": rows, "test": rows.select(range(5))})
    splits.save_to_disk(str(folder / "splits"))
    return folder


def test_a_saved_dataset_is_its_rows_in_order(saved):
    documents, _, _ = read(saved / "one", tag_keys=("lang",))
    assert [(d.id, d.text) for d in documents] == [(r["id"], r["text"]) for r in RECORDS]
    assert documents[13].place == "data-00001-of-00002.arrow:1"


def test_files_that_the_dataset_does_not_list_are_not_read(saved, tmp_path):
    """``map`` leaves its cache beside the data: rows of it would be read twice."""
    shutil.copytree(saved / "one", tmp_path / "one")
    write_arrow(tmp_path / "one" / "cache-0123456789abcdef.arrow")
    assert len(read(tmp_path / "one")[0]) == 25


def test_a_dataset_without_one_of_its_files_is_refused(saved, tmp_path):
    shutil.copytree(saved / "one", tmp_path / "one")
    (tmp_path / "one" / "data-00001-of-00002.arrow").unlink()
    with pytest.raises(RecipeError, match=r"data-00001-of-00002\.arrow, which is missing"):
        read(tmp_path / "one")


def test_V01_several_splits_of_a_dataset_are_no_pool(saved):
    with pytest.raises(RecipeError, match=r"splits test, train of one dataset[\s\S]*splits/train"):
        read(saved / "splits")
    assert len(read(saved / "splits" / "train")[0]) == 25
    assert len(read(saved / "splits", exclude=("test/*",))[0]) == 25
    assert len(read(saved / "splits" / "test")[0]) == 5


def test_rows_selected_by_indices_are_told(saved, tmp_path):
    """Older versions saved a selection as a table of indices beside all the rows."""
    shutil.copytree(saved / "one", tmp_path / "one")
    state = json.loads((tmp_path / "one" / "state.json").read_text())
    state["_indices_data_files"] = [{"filename": "indices.arrow"}]
    (tmp_path / "one" / "state.json").write_text(json.dumps(state))
    with pytest.raises(RecipeError, match="flatten_indices"):
        read(tmp_path / "one")


def test_a_cache_folder_of_the_library_is_its_arrow_files(tmp_path):
    rows = datasets.Dataset.from_list(RECORDS)
    (tmp_path / "cache").mkdir()
    write_arrow(tmp_path / "cache" / "corpus-train.arrow", rows.data.table)
    (tmp_path / "cache" / "dataset_info.json").write_text("{}")
    assert len(read(tmp_path / "cache")[0]) == 25


def test_other_files_of_these_names_are_texts(tmp_path):
    for name in ("state.json", "dataset_info.json", "dataset_dict.json"):
        (tmp_path / name).write_text('{"text": "a state of mind"}')
    assert [file.kind for file in list_sources([tmp_path], ReadOptions())] == ["text"] * 3


def test_S04_a_folder_of_parquet_is_its_files_in_the_order_of_their_names(tmp_path):
    (tmp_path / "data").mkdir()
    for name in ("b", "a", "c"):
        write_parquet(tmp_path / "data" / f"train-{name}.parquet", [{"text": name}])
    (tmp_path / "README.md").write_text("a card")
    documents, _, _ = read(tmp_path, include=("*.parquet",))
    assert [d.text for d in documents] == ["a", "b", "c"]
