"""Rows that only say something: they change nothing, and count as long as their manifest does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe import RecipeError
from recipe.run import lease, writes
from recipe.run.comparing.history import read_history
from recipe.run.comparing.measured import metrics_at
from recipe.run.folder import RunFolder
from recipe.run.ledger import read_rows
from tests.run.conftest import Build, served
from tests.run.faulty import FaultyOs, full_from_then_on, full_once

ROOT = Path(__file__).parents[2]
LOSS = {"code": {"loss": 2.5}}


@pytest.fixture
def path(build: Build, tmp_path: Path) -> Path:
    """A run with checkpoints at 6 (manifest 1) and 12 (manifest 2)."""
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(6, gpu_hours=1)
        run.checkpoint(12, gpu_hours=2)
    return tmp_path / "run"


def kinds(path: Path) -> list[str]:
    return [row.kind for row in read_rows(path / "ledger.jsonl") if row.kind not in ("created", "chunk")]


def test_an_open_handle_goes_on_after_what_was_said_meanwhile(path: Path):
    with recipe.open_run(path) as run:
        recipe.attach_metrics(path, LOSS)
        run.checkpoint(14)
        recipe.attach_metrics(path, LOSS)
        assert run.checkpoint(15) == 4
    assert kinds(path) == ["checkpoint", "checkpoint", "metrics", "checkpoint", "metrics", "checkpoint"]


def test_a_handle_that_will_rewind_goes_on_after_what_was_said_meanwhile(path: Path):
    with recipe.open_run(path, step=6) as run:
        recipe.attach_metrics(path, LOSS)
        run.checkpoint(8)
    assert kinds(path)[2:] == ["metrics", "rewind", "checkpoint"]
    assert recipe.run_status(path).step == 8


def test_a_run_opens_where_it_would_have_without_them(path: Path):
    with recipe.open_run(path) as run:
        truth = served(run.stream(), 12), run.state()
    before = recipe.run_status(path).to_plain()
    recipe.attach_metrics(path, LOSS)
    assert recipe.run_status(path).to_plain() == before
    with recipe.open_run(path) as run:
        assert (served(run.stream(), 12), run.state()) == truth
    assert recipe.open_run(path, step=6).step == 6


def test_metrics_of_a_discarded_checkpoint_no_longer_count(path: Path):
    recipe.attach_metrics(path, LOSS, step=12)
    recipe.attach_metrics(path, {"code": {"loss": 3}}, step=6)
    recipe.open_run(path, step=6).checkpoint(7)
    history = read_history(path)
    assert [row.data["manifest"] for row in history.said("metrics")] == [1]
    assert metrics_at(history, 6) == {"code": {"loss": 3}}
    assert metrics_at(history, 12) == {}
    with pytest.raises(RecipeError, match="1 at step 6, 3 at step 7"):
        recipe.attach_metrics(path, LOSS, 2)


def test_what_was_said_of_a_checkpoint_that_is_written_again_does_not_count_for_the_new_one(path: Path):
    recipe.attach_metrics(path, LOSS)
    with recipe.open_run(path, step=6) as run:
        run.checkpoint(12)
    assert metrics_at(read_history(path), 12) == {}


def test_an_unfinished_last_line_is_cut_off_first(path: Path):
    ledger = path / "ledger.jsonl"
    whole = ledger.read_bytes()
    ledger.write_bytes(whole + b'{"format":1,"ki')
    recipe.attach_metrics(path, LOSS)
    assert ledger.read_bytes().startswith(whole)
    assert kinds(path)[-1] == "metrics"
    ledger.write_bytes(ledger.read_bytes().removesuffix(b"\n"))
    recipe.attach_metrics(path, LOSS)
    assert kinds(path)[-2:] == ["metrics", "metrics"]


def test_a_checkpoint_that_was_cut_short_is_still_told(path: Path):
    """Whole chunk rows without the checkpoint row after them stay, whatever is said after them."""
    ledger = path / "ledger.jsonl"
    rows = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(rows[:-1]))
    (path / "manifests" / "latest.yaml").unlink()
    recipe.attach_metrics(path, LOSS)
    assert "no checkpoint after it" in str(recipe.run_status(path).unfinished)
    with recipe.open_run(path) as run:
        assert run.step == 6
        run.checkpoint(12)


@pytest.mark.parametrize("fault", [full_once, full_from_then_on])
def test_F06_a_full_disk_is_told_and_leaves_the_record_whole(
    fault: Any, path: Path, monkeypatch: pytest.MonkeyPatch
):
    before = kinds(path)
    told = 0
    for at in range(40):
        stand_in = FaultyOs(fault, at)
        monkeypatch.setattr(writes, "os", stand_in)
        try:
            recipe.attach_metrics(path, LOSS)
        except RecipeError as error:
            told += 1
            assert "No space left on device" in str(error)
        monkeypatch.setattr(writes, "os", FaultyOs(None))
        added = kinds(path)[len(before) :]
        assert added in ([], ["metrics"])
        before = kinds(path)
        if len(stand_in.calls) <= at:
            break
    assert told > 5
    assert added == ["metrics"]
    recipe.open_run(path).checkpoint(13)


def test_invariant_12_killed_at_every_write_a_row_is_there_whole_or_not_at_all(path: Path, tmp_path: Path):
    """In a process of its own: it forks, and this one has threads."""
    command = [sys.executable, "-m", "tests.run.killed_sayings", "attach", str(path), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 8


def test_X01_several_processes_at_once_lose_no_row(path: Path):
    patient = "import sys; from recipe.cli.main import main; from recipe.run import lease; "
    patient += "lease.WAIT_SECONDS = 600.0; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", patient, "attach", str(path), "--set", "code", "loss=2"]
    workers = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) for _ in range(4)]
    assert [worker.wait() for worker in workers] == [0] * 4
    assert kinds(path).count("metrics") == 4


def test_a_live_writer_is_named(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(lease, "WAIT_SECONDS", 0.0)
    with lease.held(RunFolder(path).lease), pytest.raises(RecipeError, match="is being written"):
        recipe.attach_metrics(path, LOSS)
    assert "metrics" not in kinds(path)


def test_lost_rows_are_told_and_nothing_is_appended(path: Path):
    ledger = path / "ledger.jsonl"
    rows = ledger.read_bytes().splitlines(keepends=True)
    cut = b"".join(rows[:-1])
    ledger.write_bytes(cut)
    with pytest.raises(RecipeError, match="rows are missing"):
        recipe.attach_metrics(path, LOSS)
    assert ledger.read_bytes() == cut


@pytest.mark.parametrize("cut", range(1, 8))
def test_every_way_of_going_on_after_a_saying_serves_the_same(path: Path, build: Build, cut: int):
    """Attach after each checkpoint: a run cut there goes on as the unbroken one."""
    step = 12 + cut
    with recipe.open_run(path) as run:
        truth = served(run.stream(), step)
        run.checkpoint(step)
    recipe.attach_metrics(path, LOSS)
    with recipe.open_run(path) as run:
        assert served(run.stream(), step) == truth
        run.checkpoint(run.num_steps)
    assert recipe.run_status(path).complete


def test_history_takes_what_counts_in_order(path: Path):
    recipe.attach_metrics(path, LOSS, 1)
    history = read_history(path)
    assert [(point.manifest, point.step, point.gpu_hours) for point in history.points] == [
        (1, 6, 1),
        (2, 12, 2),
    ]
    assert (history.name, history.parent, history.base, history.turns) == ("run", None, 0, ())
    assert history.manifest(history.points[0])["number"] == 1
    assert history.row(history.points[1]).end_step == 12
