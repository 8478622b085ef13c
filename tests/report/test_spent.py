"""The table at a run's end: promised is what was in force, also where shares changed on the way."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import recipe
from recipe.cli.main import main
from recipe.cli.output import print_tables
from recipe.config import Recipe
from recipe.mixing.epochs import epochs_read
from recipe.report.datasheet import datasheet_of
from recipe.report.figures import readings
from recipe.report.spent import spent_tables
from recipe.run.changing.skip import skip_run
from recipe.run.ledger import read_rows
from tests.run.conftest import build, pools_root  # noqa: F401 - fixtures


def test_what_was_passed_over_unread_is_in_no_epoch(build: Callable[..., Recipe]):  # noqa: F811
    """By hand: 30 served fresh and 10 dropped while read are 2/5 of 100; the other 67 were not read."""
    dropped = {"tail": 4, "withdrawn": 6, "skipped": 60, "unread": 7}
    assert epochs_read(build(), 100, 30, dropped) == Fraction(2, 5)
    assert epochs_read(build(), 0, 0, {}) is None


def test_report_and_datasheet_tell_the_same_epochs_behind_a_skip(
    tmp_path: Path,
    build: Callable[..., Recipe],  # noqa: F811
    capsys,
):
    with recipe.start_run(build(), tmp_path / "run") as run:
        run.checkpoint(4)
        run.checkpoint(8)
    skip_run(tmp_path / "run", (4, 8), reason="a spike")
    with recipe.open_run(tmp_path / "run") as run:
        run.checkpoint(run.num_steps)
    facts = datasheet_of(tmp_path / "run", share="none")
    assert facts["dropped"]["skipped"] > 0
    assert main(["report", str(tmp_path / "run")]) == 0
    lines = capsys.readouterr().out.split("the whole run")[1].splitlines()
    shown = {line.split()[0]: line.split()[-1] for line in lines if line.split()}
    for name, pool in facts["pools"].items():
        assert shown[name] == readings(pool["epochs"])


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
