"""Threads and processes compute the same; a process that dies loses nothing."""

from __future__ import annotations

import os
import shutil

import pytest

import recipe
from recipe.audit import workers
from tests.audit.runs import forge


@pytest.mark.skipif(not workers._can_fork(), reason="no safe fork here")
@pytest.mark.parametrize("number", [2, 3])
def test_processes_find_what_one_thread_finds(recorded, tmp_path, monkeypatch, number):
    def change(rows):
        rows[4]["pools"]["web"]["labels"] += 1
        rows[7]["snapshot"]["pools"][0]["cursor"][3] += 1

    shutil.copytree(recorded, tmp_path / "run")
    forge(tmp_path / "run", change)
    alone = [recipe.audit_run(path, full=True, workers=1, seed=1) for path in (recorded, tmp_path / "run")]
    monkeypatch.setattr(workers, "PROCESSES_FROM", 0)
    for path, one in zip((recorded, tmp_path / "run"), alone, strict=True):
        assert recipe.audit_run(path, full=True, workers=number, seed=1) == one
    assert alone[0].ok and not alone[1].ok


@pytest.mark.skipif(not workers._can_fork(), reason="no safe fork here")
def test_what_a_killed_process_left_is_computed_in_threads(recorded, monkeypatch):
    here, parent = workers.recompute, os.getpid()

    def killed(bench, segments):
        if os.getpid() != parent:
            os._exit(9)
        return here(bench, segments)

    alone = recipe.audit_run(recorded, full=True, workers=1)
    monkeypatch.setattr(workers, "PROCESSES_FROM", 0)
    monkeypatch.setattr(workers, "recompute", killed)
    assert recipe.audit_run(recorded, full=True, workers=2).checked == alone.checked
