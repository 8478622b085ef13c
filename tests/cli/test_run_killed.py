"""Killed at any touch of its folder, a run goes on with the same command and leaves the same bytes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

STRIDE = 7
"""Every seventh touch is tried, to keep this test short; 1 tries them all."""


def test_kill_9_at_any_touch_leaves_the_same_bytes_after_a_second_run(small):
    program = Path(__file__).with_name("killed.py")
    done = subprocess.run(
        [sys.executable, str(program), str(small.parent), str(STRIDE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    whole, *cut = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"kill_at"')]
    assert whole["code"] == 0
    assert len(cut) > 100 // STRIDE
    for line in cut:
        assert line["again"] == 0, line
        assert line["digest"] == whole["digest"], line
