"""``recipe run``: one command that starts, goes on, and says what was spent against what was promised."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import recipe
from recipe.cli.main import main
from recipe.integrations.job import only_writer, write_run
from recipe.integrations.parquet import files_in
from recipe.run.manifest import latest_path, read_manifest


def contents(run: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for _, _, path in files_in(run / "sequences")}


def answer(capsys, *words: str) -> dict:
    assert main(["run", *words, "--json"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    return json.loads(said.out)


def test_a_run_ends_with_what_was_spent_against_what_was_promised(small, capsys):
    assert main(["run", "small.yaml"]) == 0
    out = capsys.readouterr().out
    assert "share promised" in out
    assert "61.6 %" in out
    assert "recipe audit runs/small" in out


def test_json_is_pure_and_exact(small, capsys):
    said = answer(capsys, "small.yaml")
    assert said["complete"] is True
    assert said["step"] == said["num_steps"] == 16
    assert said["stages"]["short"]["a"]["share"] == "77/125"
    spent = sum(pool["spent"] for stage in said["stages"].values() for pool in stage.values())
    owed = sum(pool["owed"] for stage in said["stages"].values() for pool in stage.values())
    assert spent == owed > 0


def test_the_files_hold_the_stream_in_schedule_order(small, capsys):
    answer(capsys, "small.yaml")
    table = pq.read_table("runs/small/sequences")
    stream = recipe.open_run("runs/small").stream()
    rows = table.to_pylist()
    for step in range(stream.num_steps):
        batch = stream.batch(step)
        here = [row for row in rows if row["step"] == step]
        assert [row["row"] for row in here] == list(range(len(batch["pool"])))
        assert [row["pool"] for row in here] == [stream.pools[index] for index in batch["pool"]]
        for name in ("input_ids", "labels", "position_ids", "segment_ids"):
            assert [row[name] for row in here] == batch[name].tolist()


def test_there_is_a_checkpoint_at_every_close_of_a_chunk(small, capsys):
    answer(capsys, "small.yaml")
    rows = [json.loads(line) for line in Path("runs/small/ledger.jsonl").read_text().splitlines()]
    closes = [row["steps"][1] for row in rows if row["kind"] == "chunk"]
    checkpoints = [row["step"] for row in rows if row["kind"] == "checkpoint"]
    assert closes == checkpoints == [3, 6, 8, 12, 16]


def test_a_second_run_says_it_is_complete_and_changes_nothing(small, capsys):
    answer(capsys, "small.yaml")
    before = {path: path.read_bytes() for path in Path("runs/small").rglob("*") if path.is_file()}
    assert main(["run", "small.yaml"]) == 0
    assert "complete, 16 steps" in capsys.readouterr().err
    after = {path: path.read_bytes() for path in Path("runs/small").rglob("*") if path.is_file()}
    assert after == before


def test_two_runs_of_one_recipe_hold_the_same_sequences(small, capsys):
    answer(capsys, "small.yaml")
    answer(capsys, "small.yaml", "--name", "twin")
    assert pq.read_table("runs/small/sequences").equals(pq.read_table("runs/twin/sequences"))


def test_a_run_goes_on_from_a_checkpoint_that_a_program_wrote(small, capsys):
    """Steps that no file holds are named and written too: the same stream as without the program."""
    with recipe.start_run(recipe.load_recipe("small.yaml"), "runs/small") as run:
        run.checkpoint(step=5)
    assert main(["run", "small.yaml"]) == 0
    assert "runs/small/sequences: sequences, steps 0 to 4: no file" in capsys.readouterr().err
    answer(capsys, "small.yaml", "--name", "whole")
    assert pq.read_table("runs/small/sequences").equals(pq.read_table("runs/whole/sequences"))


def test_a_changed_recipe_is_refused_with_the_difference(small, capsys):
    answer(capsys, "small.yaml")
    assert main(["run", "small.yaml", "seed=6"]) == 2
    said = capsys.readouterr()
    assert "seed" in said.err
    assert "5 → 6" in said.err
    assert "another --name" in said.err
    assert said.out == ""


def test_a_sweep_is_a_run_a_value_each_in_its_folder(small, capsys):
    said = answer(capsys, "small.yaml", "-m", "seed=1,2")
    assert [run["run"] for run in said["runs"]] == ["runs/small-seed=1", "runs/small-seed=2"]
    assert contents(Path("runs/small-seed=1")) != contents(Path("runs/small-seed=2"))


def test_a_sweep_without_m_is_refused(small, capsys):
    assert main(["run", "small.yaml", "seed=1,2"]) == 2
    assert "-m" in capsys.readouterr().err
    assert not Path("runs").exists()


def test_a_fault_in_any_job_of_a_sweep_starts_none(small, capsys):
    assert main(["run", "small.yaml", "-m", "seed=1,-2"]) == 2
    assert not Path("runs").exists()


def test_the_seed_suggested_next_has_no_run_and_a_name_like_this_one(small, capsys):
    def suggested(*words: str) -> list[str]:
        assert main(["run", "small.yaml", *words]) == 0
        lines = capsys.readouterr().out.splitlines()
        return [line.split("  ")[1] for line in lines if "another seed, in its own folder" in line]

    seed = recipe.load_recipe("small.yaml").seed
    first = f"recipe run small.yaml seed={seed + 1} --name small-{seed + 1}"
    assert suggested() == [first]
    assert suggested(*first.split()[3:]) == [f"recipe run small.yaml seed={seed + 2} --name small-{seed + 2}"]
    both = suggested("-m", "seed=11,12")
    assert both == ["recipe run small.yaml seed=13 --name small-seed=13"] * 2
    elsewhere = suggested("--runs-dir", "other dir")
    assert elsewhere == [f"{first} --runs-dir 'other dir'"]


def test_G10_one_run_is_written_by_one_process_at_a_time(small, capsys):
    """Started twice in one moment, the later one fails or finds the run complete."""
    command = [sys.executable, "-m", "recipe", "run", "small.yaml", "--json"]
    pair = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = [process.communicate() for process in pair]
    assert {process.returncode for process in pair} <= {0, 2}
    assert not any("Traceback" in err for _, err in said)
    assert answer(capsys, "small.yaml")["complete"]
    answer(capsys, "small.yaml", "--name", "alone")
    assert pq.read_table("runs/small/sequences").equals(pq.read_table("runs/alone/sequences"))


def test_a_run_that_another_process_writes_is_refused_with_its_owner(small, capsys):
    with recipe.start_run(recipe.load_recipe("small.yaml"), "runs/small"):
        pass
    with only_writer(Path("runs/small")):
        assert main(["run", "small.yaml"]) == 2
    said = capsys.readouterr().err
    assert f"process {os.getpid()} on " in said
    for way in (
        "let it finish",
        f"kill {os.getpid()}",
        "goes on from its last checkpoint",
        "recipe status runs/small",
    ):
        assert way in said
    assert "--name" in said
    assert answer(capsys, "small.yaml")["complete"] is True


def test_a_missing_pool_is_named_and_starts_nothing(small, capsys):
    """C05: nothing is renormalised over the pools that are there."""
    assert main(["run", "small.yaml", "pools.b.path=pools/none"]) == 2
    said = capsys.readouterr().err
    assert "pools.b" in said
    assert "pools/none" in said
    assert not Path("runs/small").exists()


def test_a_pool_that_runs_dry_is_told_first_and_ends_the_run_whole(small, capsys):
    words = ["small.yaml", "on_exhausted=stop", "max_epochs=1", "stages.long.tokens=8Ki"]
    assert main(["run", *words]) == 0
    said = capsys.readouterr()
    assert "warning: pool 'a' runs dry" in said.err
    ended = answer(capsys, *words)
    assert ended["complete"] is True
    assert 16 < ended["step"] < ended["num_steps"]
    assert files_in(Path("runs/small/sequences"))[-1][1] == ended["step"]
    assert main(["run", *words]) == main(["audit", "runs/small"]) == main(["status", "runs/small"]) == 0
    said = capsys.readouterr()
    assert f"ended early at step {ended['step']}: " in said.err
    assert "ended early: " in said.out
    assert "(on_exhausted: stop)" in said.out and "(on_exhausted: stop)" in said.err


def test_C07_changed_data_is_refused_with_the_option_and_accepted_with_it(small, capsys):
    """What went before stays; the new data is read on record, and the same command repeats nothing."""

    def stop(step: int) -> None:
        if step == 5:
            raise KeyboardInterrupt

    with recipe.start_run(recipe.load_recipe("small.yaml"), "runs/small") as run, only_writer(run.path):
        with pytest.raises(KeyboardInterrupt):
            write_run(run, stop)
        assert run.step == 3
    shutil.rmtree("pools/b")
    recipe.write_pool("pools/b", [[1, 2, 3, 4, 5, 6, 7]] * 90, vocab_size=100, eos=99)
    assert main(["run", "small.yaml"]) == 2
    said = capsys.readouterr().err
    assert "--accept-data-change" in said and "accept_data_change=True" in said
    assert main(["run", "small.yaml", "--accept-data-change"]) == 0
    assert "pool b changed; it is read from its beginning" in capsys.readouterr().err
    latest = read_manifest(latest_path(Path("runs/small")))
    assert [(change["step"], list(change["pools"])) for change in latest["accepted_data_changes"]] == [
        (3, ["b"])
    ]
    assert main(["run", "small.yaml"]) == main(["audit", "runs/small"]) == 0


@pytest.mark.parametrize("name", ["a/b", "..", "."])
def test_a_name_is_one_folder(small, capsys, name):
    assert main(["run", "small.yaml", "--name", name]) == 2
    assert "--name" in capsys.readouterr().err


def test_a_recipe_of_stocks_alone_cannot_run(in_tmp, capsys):
    assert main(["run", "ten_trillion"]) == 2
    assert "stock" in capsys.readouterr().err


def test_a_changed_recipe_is_refused_with_the_ways_to_go_on(small: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["run", str(small)]) == 0
    assert main(["run", str(small), "seed=7"]) == 2
    err = capsys.readouterr().err
    assert "5 → 7  (the run's → yours)" in err
    for way in ("`recipe run runs/small`", "`recipe amend runs/small", "another --name"):
        assert way in err
    assert main(["run", "runs/small"]) == 0
