"""The Parquet sink: same steps, same bytes, wherever it was cut."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from recipe.errors import RecipeError
from recipe.integrations.parquet import SCHEMA, FileRules, ParquetSink, files_in

RULES = FileRules(pools=("web", "代码"), about={"run": "trial", "recipe": "f00d"}, rows_per_file=6)


def batch(step: int, rows: int = 2, context: int = 4) -> dict[str, np.ndarray]:
    ids = np.arange(rows * context).reshape(rows, context) + 100 * step
    return {
        "input_ids": ids,
        "labels": ids + 1,
        "position_ids": np.tile(np.arange(context), (rows, 1)),
        "segment_ids": np.zeros((rows, context), dtype=np.int64),
        "pool": np.arange(rows) % 2,
    }


def write(folder: Path, start: int, stop: int, checkpoints: tuple[int, ...] = ()) -> None:
    with ParquetSink(folder, RULES, start=start) as sink:
        for step in range(start, stop):
            sink.write(step, "short", batch(step))
            if sink.step in checkpoints:
                sink.close_file()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_row_is_a_sequence_and_says_its_step_row_and_pool(tmp_path):
    write(tmp_path, 0, 2)
    table = pq.read_table(tmp_path)
    assert table.schema.equals(SCHEMA)
    assert table.select(["step", "row", "pool"]).to_pylist() == [
        {"step": 0, "row": 0, "pool": "web"},
        {"step": 0, "row": 1, "pool": "代码"},
        {"step": 1, "row": 0, "pool": "web"},
        {"step": 1, "row": 1, "pool": "代码"},
    ]
    assert table["input_ids"].to_pylist()[2] == [100, 101, 102, 103]


def test_a_file_says_its_run_its_recipe_and_its_steps(tmp_path):
    write(tmp_path, 0, 2)
    [(first, stop, path)] = files_in(tmp_path)
    about = pq.read_metadata(path).metadata
    assert (first, stop) == (0, 2)
    assert about[b"recipe.run"] == b"trial"
    assert about[b"recipe.recipe"] == b"f00d"
    assert about[b"recipe.steps"] == b"0:2"
    assert about[b"recipe.stage"] == b"short"


def test_files_end_after_a_fixed_number_of_rows_and_at_checkpoints(tmp_path):
    write(tmp_path, 0, 9, checkpoints=(4,))
    assert [(first, stop) for first, stop, _ in files_in(tmp_path)] == [(0, 3), (3, 4), (4, 7), (7, 9)]


@pytest.mark.parametrize("cut", range(10))
def test_a_run_cut_at_any_step_goes_on_to_the_same_bytes(tmp_path, cut):
    checkpoints = (4, 8)
    write(tmp_path / "whole", 0, 9, checkpoints)
    sink = ParquetSink(tmp_path / "cut", RULES, start=0)
    for step in range(cut):
        sink.write(step, "short", batch(step))
        if sink.step in checkpoints:
            sink.close_file()
    del sink  # killed: nothing is finished or dropped
    resumed = max(mark for mark in (0, *checkpoints) if mark <= cut)
    write(tmp_path / "cut", resumed, 9, checkpoints)
    assert contents(tmp_path / "cut") == contents(tmp_path / "whole")


def test_a_new_stage_starts_a_file_and_both_contexts_read_as_one_table(tmp_path):
    with ParquetSink(tmp_path, RULES, start=0) as sink:
        sink.write(0, "short", batch(0, context=4))
        sink.write(1, "long", batch(1, context=8))
    assert [(first, stop) for first, stop, _ in files_in(tmp_path)] == [(0, 1), (1, 2)]
    assert [len(ids) for ids in pq.read_table(tmp_path)["input_ids"].to_pylist()] == [4, 4, 8, 8]


def test_an_error_leaves_no_half_file(tmp_path):
    with pytest.raises(KeyError), ParquetSink(tmp_path, RULES, start=0) as sink:
        sink.write(0, "short", batch(0))
        sink.write(1, "short", {})
    assert contents(tmp_path) == {}


def test_steps_follow_one_another(tmp_path):
    sink = ParquetSink(tmp_path, RULES, start=5)
    with pytest.raises(ValueError, match="step 6 was written where step 5 follows"):
        sink.write(6, "short", batch(6))


def test_going_on_inside_a_file_is_refused_with_the_file_named(tmp_path):
    write(tmp_path, 0, 3)
    with pytest.raises(RecipeError, match=r"steps-000000000-000000003\.parquet"):
        ParquetSink(tmp_path, RULES, start=2)


def test_a_full_disk_is_told_with_the_path_and_leaves_no_half_file(tmp_path):
    """The system refuses files above a size: to the writer it is as a full disk."""
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from recipe.errors import RecipeError\n"
        "from tests.integrations.test_parquet import write\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))\n"
        "try:\n"
        "    write(Path(sys.argv[1]), 0, 9)\n"
        "except RecipeError as error:\n"
        "    print(error)\n"
    )
    words = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert f"{tmp_path}/" in done.stdout
    assert "File too large" in done.stdout
    assert contents(tmp_path) == {}


def test_steps_that_a_file_is_missing_for_leave_the_others_alone(tmp_path):
    write(tmp_path, 0, 9)
    before = contents(tmp_path)
    (tmp_path / "steps-000000003-000000006.parquet").unlink()
    with ParquetSink(tmp_path, RULES, start=3, keep_later=True) as sink:
        for step in range(3, 6):
            sink.write(step, "short", batch(step))
    assert contents(tmp_path) == before
    assert [path.name for path in sink.finished] == ["steps-000000003-000000006.parquet"]


def test_rows_of_a_recipe_with_an_objective_have_a_weight_more(tmp_path):
    """A batch of an earlier recipe, which had none, counts every label once."""
    rules = FileRules(pools=("web", "code"), about={}, weighted=True)
    with ParquetSink(tmp_path, rules, start=0) as sink:
        sink.write(0, "short", batch(0))
        sink.write(1, "short", batch(1) | {"loss_weight": np.array([1.5, 0.25], np.float32)})
    assert pq.read_table(tmp_path)["loss_weight"].to_pylist() == [1.0, 1.0, 1.5, 0.25]
