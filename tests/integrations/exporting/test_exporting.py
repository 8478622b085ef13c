"""Exports read back by the packages they are for; every row is the stream's."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import recipe
from recipe.config import load_recipe
from recipe.errors import RecipeError
from recipe.integrations.exporting import Wanted, export, of_recipe, of_run
from tests.cli.conftest import write_small

ARRAYS = ("input_ids", "labels", "position_ids", "segment_ids")


def exported(run_folder: Path, folder: Path, **wanted):
    with of_run(run_folder) as subject:
        return export(subject, folder, Wanted(**wanted))


def manifests(folder: Path) -> list[dict]:
    index = json.loads((folder / "_manifest.json").read_bytes())
    return [json.loads((folder / line["manifest"]).read_bytes()) for line in index["manifests"]]


def streamed(run_folder: Path, *deal: int) -> list[dict[str, np.ndarray]]:
    """Every row of a rank, in order."""
    with of_run(run_folder) as subject:
        stream = subject.stream
        found = []
        for step in range(stream.num_steps):
            batch = stream.batch(step, *deal)
            found += [
                {name: batch[name][row] for name in (*ARRAYS, "pool")} for row in range(len(batch["pool"]))
            ]
        return found


def same(rows, expected) -> bool:
    pairs = list(zip(rows, expected, strict=True))
    return all(np.array_equal(row[name], other[name]) for row, other in pairs for name in ARRAYS)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_parquet_reads_with_pandas_as_the_stream(run_folder, tmp_path):
    exported(run_folder, tmp_path / "out", format="parquet", rows_per_file=8)
    rows = pd.read_parquet(tmp_path / "out").sort_values(["step", "row"])
    assert same(rows.to_dict("records"), streamed(run_folder))


@pytest.mark.parametrize("deal", [(0, 2), (1, 2), (1, 2, 1)])
def test_a_ranks_files_hold_its_rows_and_say_which_of_the_batch(run_folder, tmp_path, deal):
    rank = dict(zip(("dp_rank", "dp_size", "micro_batch"), deal, strict=False))
    exported(run_folder, tmp_path / "out", format="parquet", **rank)
    rows = pq.read_table(tmp_path / "out").to_pylist()
    assert same(rows, streamed(run_folder, *deal))
    with of_run(run_folder) as subject:
        for row in rows:
            whole = subject.stream.batch(row["step"])
            assert row["input_ids"] == whole["input_ids"][row["row"]].tolist()


def test_npy_arrays_are_the_stream(run_folder, tmp_path):
    exported(run_folder, tmp_path / "out", format="npy", rows_per_file=8)
    rows = []
    for manifest in manifests(tmp_path / "out"):
        stem = "steps-{:09d}-{:09d}".format(*manifest["steps"])
        arrays = {name: np.load(tmp_path / "out" / f"{stem}.{name}.npy") for name in (*ARRAYS, "pool")}
        assert arrays["input_ids"].shape == (manifest["rows"], manifest["context"])
        rows += [{name: array[i] for name, array in arrays.items()} for i in range(manifest["rows"])]
    assert same(rows, streamed(run_folder))


READ_MEGATRON = """\
import json, sys
from megatron.core.datasets.indexed_dataset import IndexedDataset
print(json.dumps([[row.tolist() for row in IndexedDataset(stem)] for stem in sys.argv[1:]]))
"""


def test_megatrons_own_reader_finds_inputs_and_the_last_label(run_folder, tmp_path):
    """In a process of its own: to import Megatron is to be warned of what is not installed."""
    done = exported(run_folder, tmp_path / "out", format="megatron", rows_per_file=8, lossy=True)
    stems = [str(path.with_suffix("")) for path in sorted((tmp_path / "out").glob("*.bin"))]
    words = [sys.executable, "-W", "ignore", "-c", READ_MEGATRON, *stems]
    seen = subprocess.run(words, capture_output=True, text=True, check=True)
    read = json.loads(seen.stdout.splitlines()[-1])
    assert [len(rows) for rows in read] == [manifest["rows"] for manifest in manifests(tmp_path / "out")]
    rows = streamed(run_folder)
    expected = [[*row["input_ids"].tolist(), max(int(row["labels"][-1]), 0)] for row in rows]
    assert [row for rows in read for row in rows] == expected
    assert done.lost["positions_without_label"] == sum(int((row["labels"] == -100).sum()) for row in rows)


def test_megatron_without_lossy_is_refused_where_something_would_be_lost(run_folder, tmp_path):
    with pytest.raises(RecipeError, match="add --lossy"):
        exported(run_folder, tmp_path / "out", format="megatron")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("fails_at", [0, 2])
def test_a_refused_export_leaves_nothing_also_where_files_were_finished(
    run_folder, tmp_path, monkeypatch, fails_at
):
    """And then goes as it is told to: with --lossy, into the same folder, new or not."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own/notes.txt").write_text("mine")
    taken = iter(range(99))

    def nothing_lost(batch, *, shifted):
        return batch["input_ids"], {"positions_without_label": int(next(taken) // 2 >= fails_at)}

    for name in ("new/deep", "own"):
        taken = iter(range(99))
        with monkeypatch.context() as patch, pytest.raises(RecipeError, match="add --lossy"):
            patch.setattr("recipe.integrations.exporting.formats.megatron_rows", nothing_lost)
            exported(run_folder, tmp_path / name, format="megatron", rows_per_file=8)
    assert not (tmp_path / "new").exists()
    assert contents(tmp_path / "own") == {"notes.txt": b"mine"}
    assert exported(run_folder, tmp_path / "own", format="megatron", lossy=True).written


def test_what_was_begun_without_loss_goes_on_with_it(run_folder, tmp_path):
    out, wanted = tmp_path / "out", {"format": "npy", "rows_per_file": 8}
    exported(run_folder, out, **wanted)
    assert exported(run_folder, out, **wanted, lossy=True).written == 0
    with pytest.raises(RecipeError, match="lossy True, now False"):
        exported(run_folder, out, **wanted)


def test_another_export_that_is_refused_leaves_the_first_as_it_was(run_folder, tmp_path):
    exported(run_folder, tmp_path / "out", format="npy")
    before = contents(tmp_path / "out")
    with pytest.raises(RecipeError, match="another export"):
        exported(run_folder, tmp_path / "out", format="megatron")
    assert contents(tmp_path / "out") == before


READ_MDS = """\
import json, sys
import numpy as np
from streaming import StreamingDataset
dataset = StreamingDataset(local=sys.argv[1], shuffle=False, batch_size=1)
rows = [dataset[i] for i in range(len(dataset))]
np.savez(sys.argv[2], **{f"{i}.{name}": row[name] for i, row in enumerate(rows) for name in row})
print(len(dataset))
"""


@pytest.mark.slow
def test_mds_reads_with_the_real_streaming_as_the_stream(run_folder, tmp_path, streaming_python):
    exported(run_folder, tmp_path / "out", format="mds", rows_per_file=8)
    words = [
        str(streaming_python),
        "-W",
        "ignore",
        "-c",
        READ_MDS,
        str(tmp_path / "out"),
        str(tmp_path / "r.npz"),
    ]
    seen = subprocess.run(words, capture_output=True, text=True, check=True)
    expected = streamed(run_folder)
    assert int(seen.stdout.split()[-1]) == len(expected)
    with np.load(tmp_path / "r.npz") as read:
        rows = [{name: read[f"{i}.{name}"] for name in (*ARRAYS, "pool")} for i in range(len(expected))]
    assert same(rows, expected)
    assert [int(row["pool"]) for row in rows] == [int(row["pool"]) for row in expected]


def test_a_manifest_says_what_its_files_are(run_folder, tmp_path):
    """Files never mix contexts or recipes; kinds sum to the positions; labels are those that are there."""
    exported(run_folder, tmp_path / "out", format="npy", rows_per_file=8)
    found = manifests(tmp_path / "out")
    assert [manifest["steps"] for manifest in found][:4] == [[0, 2], [2, 4], [4, 6], [6, 8]]
    prints = [manifest["fingerprint"] for manifest in found]
    assert len(set(prints)) == 2
    assert prints[2] != prints[3]
    for manifest in found:
        pools = manifest["tokens"].values()
        assert sum(pool["sequences"] for pool in pools) == manifest["rows"]
        for pool in pools:
            assert pool["body"] + pool["special"] + pool["padding"] == pool["positions"]
        stem = "steps-{:09d}-{:09d}".format(*manifest["steps"])
        labels = np.load(tmp_path / "out" / f"{stem}.labels.npy")
        assert sum(pool["labels"] for pool in pools) == int((labels != -100).sum())
        for name, file in manifest["files"].items():
            data = (tmp_path / "out" / name).read_bytes()
            assert hashlib.sha256(data).hexdigest() == file["sha256"]


def test_what_is_there_is_verified_and_not_written_twice(run_folder, tmp_path):
    out = tmp_path / "out"
    first = exported(run_folder, out, format="parquet", rows_per_file=8)
    before, times = contents(out), {path: path.stat().st_mtime_ns for path in out.glob("steps*")}
    again = exported(run_folder, out, format="parquet", rows_per_file=8)
    assert (first.kept, again.written) == (0, 0)
    assert {path: path.stat().st_mtime_ns for path in out.glob("steps*")} == times
    damaged = sorted(out.glob("steps*"))[2]
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    assert exported(run_folder, out, format="parquet", rows_per_file=8).written == 1
    assert contents(out) == before
    assert again.sha256 == first.sha256


def test_another_export_in_the_folder_is_refused(run_folder, tmp_path):
    exported(run_folder, tmp_path / "out", format="npy")
    with pytest.raises(RecipeError, match="another export: format npy, now parquet"):
        exported(run_folder, tmp_path / "out", format="parquet")


@pytest.mark.parametrize("format", ["parquet", "mds", "npy", "megatron"])
def test_killed_between_any_two_renames_it_goes_on_to_the_same_bytes(run_folder, tmp_path, format):
    wanted = {"format": format, "rows_per_file": 8, "lossy": True, "steps": (3, 10)}
    exported(run_folder, tmp_path / "whole", **wanted)
    expected = contents(tmp_path / "whole")
    for kill_at in range(1, 400, 5):
        out = tmp_path / f"out{kill_at}"
        pid = os.fork()
        if pid == 0:
            left = [kill_at]

            def hook(event, args, left=left):
                left[0] -= event == "os.rename"
                if event == "os.rename" and not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(hook)
            exported(run_folder, out, **wanted)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        exported(run_folder, out, **wanted)
        assert contents(out) == expected
        if code == 0:
            return
        assert code == -signal.SIGKILL
    raise AssertionError("the export never came to its end")


def test_a_full_disk_is_one_clear_error_and_leaves_whole_files(run_folder, tmp_path):
    """The system refuses files above a size: to the writer it is as a full disk."""
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
        try:
            exported(run_folder, tmp_path / "out", format="mds", rows_per_file=8)
        except RecipeError as error:
            os._exit(7 if "free space" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert not list((tmp_path / "out").glob("steps*"))
    exported(run_folder, tmp_path / "out", format="mds", rows_per_file=8)


def test_steps_that_are_not_there_are_refused(run_folder, tmp_path):
    with pytest.raises(RecipeError, match=r"steps within 0\.\.16"):
        exported(run_folder, tmp_path / "out", format="npy", steps=(0, 99))


def test_balanced_dealing_and_a_ramp_are_exported_as_they_are_dealt(tmp_path):
    """The ranks' files hold every row of the global batch once; no file mixes sizes of batch."""
    write_small(tmp_path)
    ramp = "stages.short.batch={ramp: {0: 4, 512: 8}}"
    loaded = load_recipe(tmp_path / "small.yaml", [f"pools_root='{tmp_path}'", "+deal=balanced", ramp])
    with of_recipe(loaded) as subject:
        for rank in range(2):
            wanted = Wanted(format="parquet", dp_rank=rank, dp_size=2, micro_batch=1)
            export(subject, tmp_path / f"rank{rank}", wanted)
            rows = pq.read_table(tmp_path / f"rank{rank}").to_pylist()
            steps = range(subject.stream.num_steps)
            dealt = [ids for step in steps for ids in subject.stream.batch(step, rank, 2, 1)["input_ids"]]
            assert [row["input_ids"] for row in rows] == [ids.tolist() for ids in dealt]
            for manifest in manifests(tmp_path / f"rank{rank}"):
                first, stop = manifest["steps"]
                assert len({subject.stream.curriculum.stretch(step).batch for step in (first, stop - 1)}) == 1
                assert manifest["tokens"].keys() == {
                    row["pool"] for row in rows if first <= row["step"] < stop
                }
    tables = [
        pq.read_table(tmp_path / f"rank{rank}").select(["step", "row"]).to_pylist() for rank in range(2)
    ]
    found = sorted((row["step"], row["row"]) for table in tables for row in table)
    with of_recipe(loaded) as subject:
        curriculum = subject.stream.curriculum
    assert found == [(s, r) for s in range(curriculum.num_steps) for r in range(curriculum.stretch(s).batch)]


@pytest.fixture
def weighted(run_folder: Path) -> Path:
    """From step 9 on a is half of what is sampled and a quarter of the loss: it weighs a half."""
    with recipe.open_run(run_folder) as run:
        run.amend(["stages.long.objective={a:25%,b:75%}"], reason="test")
    return run_folder


@pytest.mark.parametrize("kind", ["parquet", "npy"])
def test_rows_of_an_objective_have_their_weights_in_the_files(weighted, tmp_path, kind):
    exported(weighted, tmp_path / "out", format=kind, rows_per_file=8)
    with of_run(weighted) as subject:
        batches = dict(subject.stream.batches(0))
    assert "loss_weight" not in batches[8] and 0.5 in batches[9]["loss_weight"]
    for manifest in manifests(tmp_path / "out"):
        stem = "steps-{:09d}-{:09d}".format(*manifest["steps"])
        steps = range(*manifest["steps"])
        file = tmp_path / "out" / f"{stem}.loss_weight.npy"
        if kind == "parquet":
            table = pq.read_table(tmp_path / "out" / f"{stem}.parquet")
            found = table["loss_weight"].to_pylist() if "loss_weight" in table.column_names else None
        else:
            found = np.load(file).tolist() if file.is_file() else None
        expected = [weight for step in steps for weight in batches[step].get("loss_weight", [])]
        assert found == (expected or None), stem


def test_what_a_megatron_file_loses_of_an_objective_is_counted(weighted, tmp_path):
    done = exported(weighted, tmp_path / "out", format="megatron", lossy=True)
    with of_run(weighted) as subject:
        rows = [row for _, batch in subject.stream.batches(9) for row in batch["loss_weight"].tolist()]
    assert done.lost["rows_of_another_weight"] == sum(row != 1 for row in rows) > 0
