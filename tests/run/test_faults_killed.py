"""Invariant 12, for processes: operations of runs killed by SIGKILL wherever it finds them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_invariant_12_operations_killed_at_random_touches_leave_runs_that_go_on(tmp_path: Path):
    command = [sys.executable, "-m", "tests.run.killed_operations", str(tmp_path), "7", "6"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sum(json.loads(done.stdout).values()) > 14, done.stdout
