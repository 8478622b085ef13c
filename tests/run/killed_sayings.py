"""Run as a program: kill an attach at every write, and check that its row is there whole or not at all."""

from __future__ import annotations

import sys
from pathlib import Path

import recipe
from recipe.run import writes
from recipe.run.ledger import read_rows
from tests.run.faulty import FaultyOs, copy, cuts_of, in_child


def attach(path: Path) -> None:
    recipe.attach_metrics(path, {"code": {"loss": 2.5}})


def num_said(path: Path) -> int:
    return sum(row.kind == "metrics" for row in read_rows(path / "ledger.jsonl"))


def enumerate_kills(path: Path, folder: Path) -> int:
    """The number of cuts made."""
    step = recipe.run_status(path).step
    cuts = cuts_of(lambda: attach(copy(path, folder / "count")))
    for fault, at in cuts:
        cut = copy(path, folder / "cut")
        assert in_child(lambda p=cut: attach(p), FaultyOs(fault, at))
        assert recipe.run_status(cut).step == step
        before = num_said(cut)
        assert before in (0, 1)
        attach(cut)
        assert num_said(cut) == before + 1
        recipe.open_run(cut).checkpoint(step + 1)
    return len(cuts)


if __name__ == "__main__":
    writes.os = FaultyOs(None)  # type: ignore[assignment]
    print(enumerate_kills(Path(sys.argv[1]), Path(sys.argv[2])))
