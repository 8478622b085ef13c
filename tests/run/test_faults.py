"""Invariant 12: a process killed at any write, or a disk that is full, leaves a run that resumes."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recipe
from recipe import RecipeError
from recipe.config import recipe_from_plain
from recipe.run import writes
from tests.run import faulty
from tests.run.faulty import Checker, FaultyOs, copy, full_from_then_on, full_once

ROOT = Path(__file__).parents[2]


def enumerate_in_process(what: str, folder: Path, pools_root: Path) -> Any:
    """In a process of its own: it forks, and this one has threads."""
    command = [sys.executable, "-m", "tests.run.faulty", what, str(folder), str(pools_root)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_invariant_12_kill_at_every_write(tmp_path: Path, pools_root: Path):
    made = enumerate_in_process("kills", tmp_path, pools_root)
    assert all(cuts > 20 for cuts in made.values()), made


def test_invariant_12_kill_again_while_going_on_after_a_kill(tmp_path: Path, pools_root: Path):
    assert enumerate_in_process("second", tmp_path, pools_root) > 20


@pytest.fixture
def checker(tmp_path: Path, pools_root: Path) -> Checker:
    return Checker(tmp_path, pools_root)


@pytest.mark.parametrize("fault", [full_once, full_from_then_on])
def test_F06_a_disk_full_at_any_write_is_told_and_the_same_handle_goes_on(
    fault: Any, checker: Checker, tmp_path: Path, pools_root: Path, monkeypatch: pytest.MonkeyPatch
):
    faulty.start(tmp_path / "base", pools_root)
    faulty.first(tmp_path / "base", pools_root)
    told = 0
    monkeypatch.setattr(writes, "os", FaultyOs(None))
    for at in range(60):
        path = copy(tmp_path / "base", tmp_path / "run")
        with recipe.open_run(path) as run:
            stand_in = FaultyOs(fault, at)
            monkeypatch.setattr(writes, "os", stand_in)
            try:
                run.checkpoint(9)
            except RecipeError as error:
                told += 1
                assert "No space left on device" in str(error)
                assert "bytes needed" in str(error)
            monkeypatch.setattr(writes, "os", FaultyOs(None))
            if len(stand_in.calls) <= at:
                break
            assert not list(path.rglob(f"*{writes.TEMPORARY}*"))
            run.checkpoint(9)
        checker.check(path, "second")
    assert told > 10


def test_F06_a_disk_full_while_starting_leaves_nothing_and_the_second_try_succeeds(
    tmp_path: Path, pools_root: Path, monkeypatch: pytest.MonkeyPatch
):
    wanted = recipe_from_plain(faulty.plain_recipe(pools_root), source="test")
    at = 0
    while True:
        path = tmp_path / str(at) / "run"
        path.parent.mkdir()
        stand_in = FaultyOs(full_from_then_on, at)
        monkeypatch.setattr(writes, "os", stand_in)
        try:
            recipe.start_run(wanted, path).close()
        except RecipeError:
            assert list(path.parent.iterdir()) == []
        monkeypatch.setattr(writes, "os", os)
        if len(stand_in.calls) <= at:
            break
        if not path.exists():
            recipe.start_run(wanted, path).close()
        assert recipe.open_run(path).step == 0
        at += 1
    assert at > 10


def refusing(code: int) -> Callable[..., None]:
    def fault(stand_in: FaultyOs, *call: Any) -> None:
        stand_in._at = len(stand_in.calls)
        raise OSError(code, os.strerror(code))

    return fault


@pytest.mark.parametrize("code", [errno.EROFS, errno.EACCES])
def test_a_read_only_folder_is_read_and_iterated_and_a_checkpoint_is_refused_clearly(
    code: int, tmp_path: Path, pools_root: Path, monkeypatch: pytest.MonkeyPatch
):
    faulty.start(tmp_path / "run", pools_root)
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    monkeypatch.setattr(writes, "os", FaultyOs(refusing(code), 0))
    with recipe.open_run(tmp_path / "run") as run:
        assert len(list(run.stream().batches())) == 12
        with pytest.raises(RecipeError, match=os.strerror(code)):
            run.checkpoint(3)
        assert run.step == 0
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before
