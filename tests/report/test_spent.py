"""The table at a run's end: promised is what was in force, also where shares changed on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import recipe
from recipe.cli.output import print_tables
from recipe.config import Recipe
from recipe.report.spent import spent_tables
from recipe.run.ledger import read_rows
from tests.run.conftest import build, pools_root  # noqa: F401 - fixtures


def test_an_amended_stage_shows_what_all_its_shares_came_to(
    tmp_path: Path,
    build: Callable[..., Recipe],  # noqa: F811
    capsys,
):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(8)
        run.amend(["stages.one.quotas.rest=80%"], from_pool="a", reason="test")
        run.checkpoint(run.num_steps)
        settled = run.recipe
    rows = [row.data for row in read_rows(tmp_path / "run" / "ledger.jsonl")]
    print_tables(spent_tables(settled, rows, {}))
    text = capsys.readouterr().out
    one, two = text.split("stage two")
    assert "its shares changed on the way" in one
    assert "its shares changed" not in two
    owed = sum(row["pools"]["a"]["owed"] for row in rows if row["kind"] == "chunk" and row["stage"] == "one")
    total = sum(row["counted"] for row in rows if row["kind"] == "chunk" and row["stage"] == "one")
    assert f"{100 * owed / total:.2f} %" in one
    assert "20 %" in one, "the share at the end"
