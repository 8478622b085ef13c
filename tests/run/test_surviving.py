"""Rows that no rewind discarded, read backwards."""

from __future__ import annotations

from pathlib import Path

from recipe.run.ledger import read_tail
from recipe.run.surviving import surviving
from tests.run.rows import body, ledger


def test_a_rewind_discards_what_ends_after_it(tmp_path: Path):
    chunk = [body("chunk", steps=[a, a + 10]) for a in range(0, 40, 10)]
    bodies = [
        *chunk,
        body("rewind", from_step=40, to_step=25),
        body("chunk", steps=[20, 30]),
    ]
    path = ledger(tmp_path / "ledger.jsonl", bodies)
    kept = [row.data["steps"] for row in surviving(path, read_tail(path)) if row.kind == "chunk"]
    assert kept == [[20, 30], [10, 20], [0, 10]]
    earlier = [row.data["steps"] for row in surviving(path, read_tail(path), 15) if row.kind == "chunk"]
    assert earlier == [[0, 10]]


def test_a_checkpoint_committed_late_outlives_a_rewind_behind_its_step(tmp_path: Path):
    """After a rewind to step 5, what was said late of step 3 still counts; what was said of 8 no longer."""
    late = {"late": True, "turn": {"row": 0, "offset": 0, "step": 0}}
    bodies = [
        body("checkpoint", step=9, manifest=1),
        body("checkpoint", step=3, manifest=2, **late),
        body("checkpoint", step=8, manifest=3, **late),
        body("rewind", from_step=9, to_step=5),
    ]
    path = ledger(tmp_path / "ledger.jsonl", bodies)
    kept = [row.data["manifest"] for row in surviving(path, read_tail(path)) if row.kind == "checkpoint"]
    assert kept == [2]
